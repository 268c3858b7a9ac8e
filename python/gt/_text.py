"""How a tensor prints."""

#: Of tensors with more elements, only so many at each end of an axis are shown.
LONG = 1000
EDGE = 3


def tensor_text(tensor) -> str:
    """`tensor([...], dtype=float32)`, long ones with their middle left out."""
    import numpy

    is_long = tensor.numel() > LONG
    values = (_edges(tensor) if is_long else tensor).detach().numpy()
    body = numpy.array2string(
        values, separator=", ", prefix="tensor(", threshold=0 if is_long else LONG, edgeitems=EDGE
    )
    extra = ", requires_grad=True" if tensor.requires_grad else ""
    shape = f", shape={tensor.shape}" if tensor.numel() == 0 else ""
    return f"tensor({body}{shape}, dtype={tensor.dtype.name}{extra})"


def _edges(tensor):
    """Give what is shown of a long tensor; of each axis's middle one element stands for the rest.

    All of it would have to come here otherwise, perhaps over a network.
    """
    from gt import _gt

    tensor = tensor.detach()
    for axis, length in enumerate(tensor.shape):
        if length > 2 * EDGE:
            ends = [*range(EDGE + 1), *range(length - EDGE, length)]
            tensor = tensor.index_select(axis, _gt.tensor_beside(tensor, ends, dtype=_gt.int64))
    return tensor
