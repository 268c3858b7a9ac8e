"""Declare a custom operation: the start of the programs about custom operations."""

import gt


def same(x, **attributes):
    """Return the dtype and the shape of a result like x."""
    return x.dtype, x.shape


def gradient(grads, inputs, outputs, factor=1.0):
    """Return the gradient of `scaled`."""
    return grads[0] * factor


scaled = gt.custom_op("lab:scaled", lambda x, factor=1.0: (x.dtype, x.shape), gradient)
x = gt.tensor([1.0, 2.0, 3.0])
