"""The base class of pruning methods, and the combination of several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

import gt
from gt._gt import Tensor

from ..module import Module


class BasePruningMethod(ABC):
    """A pruning method; subclasses define `compute_mask` and `PRUNING_TYPE`.

    Registered on a module, it is a hook that recomputes the pruned tensor before each forward.
    """

    #: "unstructured" for single elements, "structured" for slices, "global" for whole tensors.
    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the pruned tensor of a module."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return a mask: `default_mask` with more zeros.

        Args:
            t: the importance of each element.
            default_mask: the mask of earlier pruning.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """Return the pruned tensor of a module: mask times original."""
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
        """Prune a parameter of a module, in addition to earlier pruning.

        Args:
            module: the module.
            name: the name of the parameter.
            args: arguments of the constructor.
            importance_scores: scores that replace the parameter's values, of the same shape.
            kwargs: keyword arguments of the constructor.

        Returns:
            The hook: an instance of this class, or a container that also has the earlier methods.
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
        """Return a pruned tensor.

        Args:
            t: the tensor.
            default_mask: the mask of earlier pruning; by default ones.
            importance_scores: scores that replace the tensor's values, of the same shape.
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
        """Make the pruned tensor a parameter again, with its current values."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        delattr(module, f"{name}_mask")
        original.data = weight
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods for one tensor, each applied to what the previous ones have left.

    Args:
        args: pruning methods for the same tensor.
    """

    def __init__(self, *args: Any):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Append a pruning method."""
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
        """Return the mask of the last method, applied to elements that `default_mask` has left."""
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
    """Return the hook keys and pruning methods of a module, for one tensor or for all."""
    hooks = ((key, hook.function) for key, hook in module._forward_pre_hooks.items())
    return [
        (key, hook)
        for key, hook in hooks
        if isinstance(hook, BasePruningMethod) and name in (None, hook._tensor_name)
    ]
