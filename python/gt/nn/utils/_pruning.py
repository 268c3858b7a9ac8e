"""How a mask is put on a parameter, and several, one on what another has left."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.module import Module


class BasePruningMethod(ABC):
    """A way to prune; subclasses define `compute_mask` and `PRUNING_TYPE`.

    On a module, it is a hook that computes the pruned tensor anew before each forward.
    """

    #: "unstructured" for single elements, "structured" for slices, "global" for whole tensors.
    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the pruned tensor of a module."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give a mask: `default_mask` with more zeros.

        Args:
            t: how important elements are.
            default_mask: what earlier pruning has left.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """Give the pruned tensor of a module: mask times original."""
        mask, original = (getattr(module, self._tensor_name + end) for end in ("_mask", "_orig"))
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune a parameter of a module, on top of what has been pruned before.

        Args:
            module: the module.
            name: of the parameter.
            args: for the class.
            importance_scores: of the parameter's shape, instead of its values.
            kwargs: for the class, by name.

        Returns:
            The hook: of this class, or a container with the earlier ones.
        """
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            raise ValueError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {original.shape}"
            )
        scores = original if importance_scores is None else importance_scores
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        earlier = pruning_hooks(module, name)
        if earlier:
            before = earlier[0][1]
            method = (
                PruningContainer(*before, method)
                if isinstance(before, PruningContainer)
                else PruningContainer(before, method)
            )
            mask = method.compute_mask(scores, getattr(module, f"{name}_mask").detach().clone())
            setattr(module, f"{name}_mask", mask)
            del module._forward_pre_hooks[earlier[0][0]]
        else:
            mask = method.compute_mask(scores, gt.ones_like(original))
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
            module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """Give a tensor, pruned.

        Args:
            t: the tensor.
            default_mask: what is pruned already; by default nothing.
            importance_scores: of the tensor's shape, instead of its values.
        """
        if importance_scores is not None and importance_scores.shape != t.shape:
            raise ValueError(
                "importance_scores should have the same shape as tensor t, got "
                f"{importance_scores.shape} vs {t.shape}"
            )
        scores = t if importance_scores is None else importance_scores
        default_mask = gt.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor a parameter again, with the values that it has now."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        delattr(module, f"{name}_mask")
        original.data = weight
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several ways to prune one tensor, each applied to what those before it have left.

    Args:
        args: pruning methods, of the same tensor.
    """

    def __init__(self, *args: Any):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Put one more at the end."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is None:
            return
        own = getattr(self, "_tensor_name", method._tensor_name)
        if own != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{own}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._tensor_name = own
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Give the mask of the latest method, applied to what the mask so far has left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        left = mask != 0
        if method.PRUNING_TYPE == "unstructured":
            computed = method.compute_mask(t[left], default_mask=mask[left])
            return mask.masked_scatter(left, computed.to(dtype=mask.dtype))
        if method.PRUNING_TYPE == "structured":
            axis = method.dim % t.dim()  # type: ignore[attr-defined]
            others = [other for other in range(t.dim()) if other != axis]
            kept = left.any(dim=others).nonzero().flatten()
            computed = method.compute_mask(
                t.index_select(axis, kept), default_mask=mask.index_select(axis, kept)
            )
            return mask.index_copy(axis, kept, computed.to(dtype=mask.dtype))
        if method.PRUNING_TYPE == "global":
            return method.compute_mask(t, default_mask=mask)
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")


def pruning_hooks(module: Module, name: str | None = None) -> list[tuple[int, Any]]:
    """Give a module's pruning methods by the keys of their hooks; those of one tensor, or all."""
    hooks = ((key, hook.function) for key, hook in module._forward_pre_hooks.items())
    return [
        (key, hook)
        for key, hook in hooks
        if isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name)
    ]
