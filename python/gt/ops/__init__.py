"""Composite operations: functions of the primitives and of each other, one file per family.

The primitives, which engines compute, are declared in Rust (`gt-ir/src/ops`) and bring their own
functions and methods. `registry` makes each composite here a function of `gt`, a method of
`Tensor`, and where asked an in-place method.
"""

from gt._gt import faces
from gt.ops import (  # noqa: F401
    adaptive_pooling,
    aliases,
    axes,
    calculus,
    compare,
    complex,
    convert,
    convolutions,
    copies,
    create,
    diagonal,
    distance,
    draw,
    dtypes,
    einsum,
    elementwise,
    fourier,
    fourier_axes,
    functional_names,
    grids,
    histograms,
    in_place,
    index,
    index_write,
    join,
    layout,
    likes,
    linalg_checks,
    linalg_determinants,
    linalg_factors,
    linalg_lstsq,
    linalg_lu,
    linalg_norms,
    linalg_old,
    linalg_products,
    linalg_reflections,
    linalg_solve,
    linalg_spectra,
    masked,
    masked_averages,
    masked_softmax,
    math,
    matmul,
    matmul_add,
    matrices,
    matrix_exp,
    memory,
    native,
    norms,
    numpy_functions,
    old_windows,
    order,
    pixels,
    polynomials,
    pooling,
    pooling_gradient,
    random,
    reduce,
    regions,
    repeat,
    resampling,
    rounding,
    scatter,
    searching,
    shape,
    special,
    spectrogram,
    split,
    spread,
    strided,
    ternary,
    unique,
    windows,
)
from gt.ops.registry import exported

aliases.declare()


def namespace(name: str) -> dict:
    """Return all operations of a public namespace by name; a composite hides the primitive."""
    return {**faces.get(name, {}), **exported(name)}


globals().update(namespace("gt"))

__all__ = sorted(namespace("gt"))
