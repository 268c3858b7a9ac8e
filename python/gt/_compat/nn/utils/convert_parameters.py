"""Conversion of parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import gt
from gt._gt import Tensor


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of tensors as one vector, with their history.

    >>> gt.nn.utils.parameters_to_vector([gt.zeros(1, 2), gt.ones(2)])
    tensor([0., 0., 1., 1.], dtype=float32)
    """
    return gt.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Set parameters to consecutive parts of a vector.

    Args:
        vec: a vector with as many elements as all parameters; further ones are ignored.
        parameters: the parameters to set; each keeps its shape.

    Raises:
        ValueError: the vector has fewer elements.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"vector_to_parameters: vec must be a tensor, not {type(vec).__name__}")
    parameters = list(parameters)
    wanted = sum(parameter.numel() for parameter in parameters)
    if vec.numel() < wanted:
        raise ValueError(
            f"vector_to_parameters: vec has {vec.numel()} elements, the parameters have {wanted}"
        )
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].reshape(parameter.shape).detach()
        start += count
