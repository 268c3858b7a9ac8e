"""Primitives, issued in a session."""

import gt
from gt.engines.check.samples import OPERATIONS


def to_gt(value, dtype):
    """Give an operand as GT takes it."""
    if dtype is None:
        return value
    return gt.tensor(value, dtype=dtype)


def apply(name: str, operands: list, **attributes):
    """Issue a primitive with its operands in their order, and its attributes by name."""
    primitive, names = getattr(gt._gt.primitives, name), OPERATIONS[name]["operands"]
    if names == ["tensors"]:
        return primitive(operands, **attributes)
    return primitive(**dict(zip(names, operands, strict=True)), **attributes)
