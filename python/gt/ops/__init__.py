"""Operations in terms of others, one file for each family.

The primitives, which engines compute, are declared in Rust (`gt-ir/src/ops`) and come with their
functions and methods. Everything here is a short function of these and of each other; `registry`
makes it a function of `gt`, a method of `Tensor`, and where asked a form in place.
"""

from gt._gt import faces
from gt.ops import (  # noqa: F401
    aliases,
    axes,
    compare,
    convert,
    copies,
    create,
    diagonal,
    distance,
    draw,
    dtypes,
    einsum,
    elementwise,
    index,
    index_write,
    join,
    layout,
    likes,
    linalg_norms,
    linalg_products,
    masked,
    masked_softmax,
    math,
    matmul,
    matmul_add,
    matrices,
    matrix_exp,
    native,
    norms,
    old_windows,
    order,
    polynomials,
    random,
    reduce,
    regions,
    repeat,
    rounding,
    scatter,
    shape,
    special,
    split,
    strided,
    unique,
    windows,
)
from gt.ops.registry import exported

aliases.declare()


def namespace(name: str) -> dict:
    """Give all operations that users find in a namespace, by name; composites before primitives."""
    return {**faces.get(name, {}), **exported(name)}


globals().update(namespace("gt"))

__all__ = sorted(namespace("gt"))
