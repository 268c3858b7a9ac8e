"""Operations that order values, for which the order of equal values is unspecified."""

# The position of the axis among the arguments after the input; None for operations without an axis.
_AXIS = {"argsort": 0, "kthvalue": 1, "mode": 0, "msort": None, "sort": 0, "topk": 1}


def free(name: str, sample) -> bool:
    """Return whether a sample has equal values whose order is unspecified."""
    if name not in _AXIS or sample.kwargs.get("stable"):
        return False
    input = sample.input.detach()
    return input.unique().numel() < input.numel()


def selected(name: str, given, result):
    """Return a result with its indices replaced by their shape, dtype and the values at them."""
    input, args, kwargs = given
    place = _AXIS[name]
    if place is None or input.ndim == 0:
        return result
    dim = kwargs.get("dim", args[place] if len(args) > place else -1)
    *values, indices = result if isinstance(result, (tuple, list)) else (result,)
    shape, dtype = tuple(indices.shape), indices.dtype
    indices = indices if indices.ndim == input.ndim else indices.unsqueeze(dim)
    return *values, shape, dtype, input.gather(dim, indices)
