"""How a tensor prints."""


def tensor_text(tensor) -> str:
    """`tensor([...], dtype=float32)`, long ones with their middle left out."""
    import numpy

    values = tensor.detach().numpy()
    body = numpy.array2string(values, separator=", ", prefix="tensor(", threshold=1000)
    extra = ", requires_grad=True" if tensor.requires_grad else ""
    shape = f", shape={tensor.shape}" if tensor.numel() == 0 else ""
    return f"tensor({body}{shape}, dtype={tensor.dtype.name}{extra})"
