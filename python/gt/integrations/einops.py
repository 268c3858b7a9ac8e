"""The backend of einops for GT's tensors: einops finds it among the subclasses of its own."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def extend(backends: ModuleType) -> None:
    """Define the backend, as a subclass of einops's abstract one.

    Args:
        backends: the module `einops._backends`.
    """

    class GtBackend(backends.AbstractBackend):  # type: ignore[name-defined]
        framework_name = "gt"

        def __init__(self) -> None:
            import gt

            self.gt = gt

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, self.gt.Tensor)

        def from_numpy(self, x: Any) -> Any:
            return self.gt.from_numpy(x)

        def to_numpy(self, x: Any) -> Any:
            return x.detach().numpy()

        def arange(self, start: int, stop: int) -> Any:
            return self.gt.arange(start, stop)

        def transpose(self, x: Any, axes: Any) -> Any:
            return x.permute(tuple(axes))

        def reduce(self, x: Any, operation: str, axes: Any) -> Any:
            # `max(dim)` returns indices, too; `amax` shares the gradient among equal elements.
            name = {"min": "amin", "max": "amax"}.get(operation, operation)
            return getattr(x, name)(dim=tuple(axes))

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
            return self.gt.stack(tensors)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
            lengths = [-1] * n_axes
            for position, length in pos2len.items():
                x = x.unsqueeze(position)
                lengths[position] = length
            return x.expand(lengths)

        def tile(self, x: Any, repeats: Any) -> Any:
            return x.repeat(repeats)

        def concat(self, tensors: list[Any], axis: int) -> Any:
            return self.gt.cat(tensors, dim=axis)

        def is_float_type(self, x: Any) -> bool:
            return x.dtype.is_floating_point

        def layers(self) -> ModuleType:
            from gt.integrations import einops_layers

            return einops_layers

        def einsum(self, pattern: str, *x: Any) -> Any:
            return self.gt.einsum(pattern, *x)

    # einops knows only subclasses that are alive.
    backends.GtBackend = GtBackend  # type: ignore[attr-defined]
