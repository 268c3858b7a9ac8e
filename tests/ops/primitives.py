"""Helpers that issue primitives."""

import gt
from gt.engines.check.samples import OPERATIONS


def to_gt(value, dtype):
    """Return an operand as a tensor, or as it is if it has no dtype."""
    if dtype is None:
        return value
    return gt.tensor(value, dtype=dtype)


def apply(name: str, operands: list, **attributes):
    """Issue a primitive with its operands by position, and its attributes by name."""
    primitive, names = getattr(gt._gt.primitives, name), OPERATIONS[name]["operands"]
    if names == ["tensors"]:
        return primitive(operands, **attributes)
    return primitive(**dict(zip(names, operands, strict=True)), **attributes)
