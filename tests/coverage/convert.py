"""PyTorch's arguments as GT's, and GT's results as PyTorch's."""

import gt
import torch
from counterpart import TORCH, Missing, in_gt

# What GT has no need of, and what it leaves out where it has it not.
_PLAIN = {torch.strided, torch.contiguous_format, torch.preserve_format}
_DROPPED = object()
# What NumPy lacks, and what holds the same values.
_FOR_NUMPY = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64}


def dtype_name(dtype) -> str:
    """Give the name of a dtype, as both have it."""
    return str(dtype).rpartition(".")[2]


def walk(value, leaf):
    """Make lists, tuples, dicts and slices again, with a function applied to what is in them."""
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
    """Give all tensors in a nest of lists, tuples, dicts and slices, in order."""
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
    """Copy all tensors of PyTorch in a nest; without `grad`, none of them requires gradients."""
    return walk(value, lambda item: _copy(item, grad) if isinstance(item, torch.Tensor) else item)


def _copy(tensor: torch.Tensor, grad: bool) -> torch.Tensor:
    plain = tensor.detach().clone(memory_format=torch.contiguous_format)
    return plain.requires_grad_(grad and tensor.requires_grad)


class ToGt:
    """Gives GT's counterparts of arguments, the same one each time for the same tensor."""

    def __init__(self, grad: bool = True):
        self.grad = grad
        self.pairs: dict[int, tuple[torch.Tensor, gt.Tensor]] = {}

    def __call__(self, value):
        """Give GT's counterpart of an argument, or of a nest of them."""
        return walk(value, self._leaf)

    def needing_grad(self) -> list[tuple[torch.Tensor, gt.Tensor]]:
        """Give the tensors that require gradients, with their counterparts."""
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
    """Give GT's dtype of the same name."""
    name = dtype_name(dtype)
    try:
        return getattr(gt, name)
    except AttributeError:
        raise Missing(f"dtype missing: {name}") from None


def _format(value):
    """Give a memory format or layout as GT has it; those that change no value may be dropped."""
    name = str(value).removeprefix("torch.")
    if hasattr(TORCH, name):
        return getattr(TORCH, name)
    if value in _PLAIN or isinstance(value, torch.memory_format):
        return _DROPPED
    raise Missing(f"layout missing: {name}")


def tensor_to_gt(tensor: torch.Tensor, grad: bool = True) -> gt.Tensor:
    """Give a tensor of GT with the same values and dtype."""
    dtype = gt_dtype(tensor.dtype)
    if tensor.layout != torch.strided:
        raise Missing(f"layout missing: {tensor.layout}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    plain = plain.to(_FOR_NUMPY.get(plain.dtype, plain.dtype))
    made = gt.tensor(plain.numpy().copy(), dtype=dtype)
    return made.requires_grad_() if grad and tensor.requires_grad else made


def tensor_to_torch(tensor: gt.Tensor) -> torch.Tensor:
    """Give a tensor of PyTorch with the same values and dtype."""
    name = dtype_name(tensor.dtype)
    tensor = tensor.detach()
    if name == "bfloat16":
        return torch.tensor(tensor.float().numpy()).bfloat16()
    if name == "complex32":  # NumPy has no such numbers
        return torch.tensor(tensor.to(gt_dtype(torch.complex64)).numpy()).chalf()
    return torch.tensor(tensor.numpy(), dtype=getattr(torch, name))
