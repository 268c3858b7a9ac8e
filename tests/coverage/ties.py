"""Operations that put values into an order: which of several equal ones comes first is free."""

# Where each has the axis, behind its input; None where it has none.
_AXIS = {"argsort": 0, "kthvalue": 1, "mode": 0, "msort": None, "sort": 0, "topk": 1}


def free(name: str, sample) -> bool:
    """Whether equal values of a sample may come in any order."""
    if name not in _AXIS or sample.kwargs.get("stable"):
        return False
    input = sample.input.detach()
    return input.unique().numel() < input.numel()


def selected(name: str, given, result):
    """Give, instead of the indices in a result, their shape, dtype and the values they lead to."""
    input, args, kwargs = given
    place = _AXIS[name]
    if place is None or input.ndim == 0:
        return result
    dim = kwargs.get("dim", args[place] if len(args) > place else -1)
    *values, indices = result if isinstance(result, (tuple, list)) else (result,)
    shape, dtype = tuple(indices.shape), indices.dtype
    indices = indices if indices.ndim == input.ndim else indices.unsqueeze(dim)
    return *values, shape, dtype, input.gather(dim, indices)
