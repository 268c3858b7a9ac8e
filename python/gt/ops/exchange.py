"""Values for other packages: the protocols of pandas and Arrow, beside those of NumPy and DLPack."""

from __future__ import annotations

import sys
from typing import Any

from gt._gt import Tensor
from gt.ops.registry import extend_tensor
from gt.ops.sizes import method


@method
def to_numpy(input: Tensor) -> Any:
    """Return the values as an array, like `numpy()`: the name that pandas and plots look for.

    >>> gt.ones(2).to_numpy()
    array([1., 1.], dtype=float32)
    """
    return input.numpy()


def _column(name: str, input: Tensor) -> Any:
    """Return the values of a tensor that can be a column of Arrow, as an array."""
    if input.ndim == 0 or input.is_complex():
        given = "without axes" if input.ndim == 0 else f"of {input.dtype.name}"
        raise TypeError(
            f"{name}: a tensor {given} cannot be a column, expected one or more axes and real "
            "numbers or bools\n  hint: item(), or view_as_real(x)"
        )
    return input.numpy()


def _arrow_array(self: Tensor, type: Any = None) -> Any:
    """Return the values as an array of pyarrow; `pa.array(x)` calls this.

    Several axes become lists of fixed lengths, one for each row. bfloat16, which Arrow lacks,
    becomes float32.

    Args:
        type: the type of pyarrow; None for that of the dtype.
    """
    import pyarrow

    values = _column("pyarrow", self)
    array = pyarrow.array(values.reshape(-1))
    for length in values.shape[:0:-1]:
        array = pyarrow.FixedSizeListArray.from_arrays(array, length)
    return array if type is None else array.cast(type)


def _arrow_c_stream(self: Tensor, requested_schema: Any = None) -> Any:
    """Return the values as a stream of Arrow with one column; `pl.Series(x)` calls this.

    Polars makes it if it is imported, and else pyarrow.

    Args:
        requested_schema: the type that the importer prefers; it may cast the values itself.
    """
    polars = sys.modules.get("polars")
    if polars is not None:
        return polars.Series(_column("polars", self)).__arrow_c_stream__(requested_schema)
    import pyarrow

    return pyarrow.chunked_array([self]).__arrow_c_stream__(requested_schema)


extend_tensor(__arrow_array__=_arrow_array, __arrow_c_stream__=_arrow_c_stream)
