"""Values for other packages, by the protocols of pandas and Arrow; `_gt` has those of NumPy."""

from __future__ import annotations

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


def _arrow_array(self: Tensor, type: Any = None) -> Any:
    """Return the values as an array of pyarrow; `pa.array(x)` calls this.

    Several axes become lists of fixed lengths, one for each row. bfloat16, which Arrow lacks,
    becomes float32.

    Args:
        type: the type of pyarrow; None for that of the dtype.
    """
    import pyarrow

    if self.ndim == 0 or self.is_complex():
        given = "without axes" if self.ndim == 0 else f"of {self.dtype.name}"
        raise TypeError(
            f"pyarrow: a tensor {given} cannot be a column, expected one or more axes and real "
            "numbers or bools\n  hint: item(), or view_as_real(x)"
        )
    values = self.numpy()
    array = pyarrow.array(values.reshape(-1))
    for length in values.shape[:0:-1]:
        array = pyarrow.FixedSizeListArray.from_arrays(array, length)
    return array if type is None else array.cast(type)


extend_tensor(__arrow_array__=_arrow_array)
