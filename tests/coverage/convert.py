"""Conversion of PyTorch's arguments to GT's, and of GT's results to PyTorch's."""

import gt
import torch
from counterpart import TORCH, Missing, in_gt

# Layouts and formats that are dropped, as they are GT's only ones; the mark of a dropped argument.
_PLAIN = {torch.strided, torch.contiguous_format, torch.preserve_format}
_DROPPED = object()
# Dtypes that NumPy lacks, and dtypes that can hold their values.
_FOR_NUMPY = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64}


def dtype_name(dtype) -> str:
    """Return the name of a dtype, which is the same in GT and PyTorch."""
    return str(dtype).rpartition(".")[2]


def walk(value, leaf):
    """Return a copy of nested lists, tuples, dicts and slices, with `leaf` applied to the rest."""
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(walk(item, leaf) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(walk(item, leaf) for item in value)
    if isinstance(value, dict):
        made = {name: walk(item, leaf) for name, item in value.items()}
        return {name: item for name, item in made.items() if item is not _DROPPED}
    if isinstance(value, slice):
        return slice(*(walk(item, leaf) for item in (value.start, value.stop, value.step)))
    return leaf(value)


def tensors_in(value, kind=torch.Tensor) -> list:
    """Return all tensors in nested lists, tuples, dicts and slices, in order."""
    found = []
    _walk_over(value, lambda item: found.append(item) if isinstance(item, kind) else None)
    return found


def _walk_over(value, visit) -> None:
    if isinstance(value, (list, tuple)):
        for item in value:
            _walk_over(item, visit)
    elif isinstance(value, dict):
        _walk_over(list(value.values()), visit)
    elif isinstance(value, slice):
        _walk_over([value.start, value.stop, value.step], visit)
    else:
        visit(value)


def copy(value, grad: bool = True):
    """Return nested containers with all PyTorch tensors copied.

    Without `grad`, none of the copies requires gradients.
    """
    return walk(value, lambda item: _copy(item, grad) if isinstance(item, torch.Tensor) else item)


def _copy(tensor: torch.Tensor, grad: bool) -> torch.Tensor:
    plain = tensor.detach().clone(memory_format=torch.contiguous_format)
    return plain.requires_grad_(grad and tensor.requires_grad)


class ToGt:
    """Converts arguments to GT's; the same tensor is always converted to the same one."""

    def __init__(self, grad: bool = True):
        self.grad = grad
        self.pairs: dict[int, tuple[torch.Tensor, gt.Tensor]] = {}

    def __call__(self, value):
        """Return GT's counterpart of an argument or of nested arguments."""
        return walk(value, self._leaf)

    def needing_grad(self) -> list[tuple[torch.Tensor, gt.Tensor]]:
        """Return the tensors that require gradients, with their counterparts."""
        return [pair for pair in self.pairs.values() if pair[0].requires_grad]

    def _leaf(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.pairs:
                self.pairs[id(value)] = (value, tensor_to_gt(value, self.grad))
            return self.pairs[id(value)][1]
        if isinstance(value, torch.dtype):
            return gt_dtype(value)
        if isinstance(value, torch.device):
            return str(value.type)
        if isinstance(value, (torch.memory_format, torch.layout)):
            return _format(value)
        return in_gt(value) if callable(value) else value


def gt_dtype(dtype: torch.dtype):
    """Return GT's dtype of the same name."""
    name = dtype_name(dtype)
    try:
        return getattr(gt, name)
    except AttributeError:
        raise Missing(f"dtype missing: {name}") from None


def _format(value):
    """Return GT's memory format or layout, or `_DROPPED` for one that does not affect values."""
    name = str(value).removeprefix("torch.")
    if hasattr(TORCH, name):
        return getattr(TORCH, name)
    if value in _PLAIN or isinstance(value, torch.memory_format):
        return _DROPPED
    raise Missing(f"layout missing: {name}")


def tensor_to_gt(tensor: torch.Tensor, grad: bool = True) -> gt.Tensor:
    """Return a GT tensor with the same values and dtype."""
    dtype = gt_dtype(tensor.dtype)
    if tensor.layout != torch.strided:
        raise Missing(f"layout missing: {tensor.layout}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    plain = plain.to(_FOR_NUMPY.get(plain.dtype, plain.dtype))
    made = gt.tensor(plain.numpy().copy(), dtype=dtype)
    return made.requires_grad_() if grad and tensor.requires_grad else made


def tensor_to_torch(tensor: gt.Tensor) -> torch.Tensor:
    """Return a PyTorch tensor with the same values and dtype."""
    name = dtype_name(tensor.dtype)
    tensor = tensor.detach()
    if name == "bfloat16":
        return torch.tensor(tensor.float().numpy()).bfloat16()
    if name == "complex32":  # NumPy lacks it.
        return torch.tensor(tensor.to(gt_dtype(torch.complex64)).numpy()).chalf()
    return torch.tensor(tensor.numpy(), dtype=getattr(torch, name))
