"""The text of a tensor, as `repr` returns it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from gt._gt import public_function

if TYPE_CHECKING:
    from gt._gt import Tensor

#: The options of `gt.set_printoptions`. Tensors with more than `threshold` elements are shown with
#: `edgeitems` elements at each end of an axis.
options: dict[str, Any] = {
    "precision": None,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 75,
    "sci_mode": None,
}


@public_function
def tensor_text(tensor: Tensor) -> str:
    """Return `tensor([...], dtype=float32)`, summarised for long tensors."""
    from gt import _gt

    if _gt.is_batched(tensor):
        return f"tensor(<mapped over by vmap>, shape={tensor.shape}, dtype={tensor.dtype.name})"
    is_long, body = tensor.numel() > options["threshold"], None
    # If the program has imported NumPy, NumPy's print options apply.
    if not is_long and not _number_options() and "numpy" not in sys.modules:
        from gt import _numbers

        written = tensor.tolist(), tensor.shape, tensor.dtype.name
        body = _numbers.array_text(*written, "tensor(", options["linewidth"])
    if body is None:
        body = _numpys_text((_edges(tensor) if is_long else tensor).detach().numpy(), is_long)
    extra = ", requires_grad=True" if tensor.requires_grad else ""
    shape = f", shape={tensor.shape}" if tensor.numel() == 0 else ""
    return f"tensor({body}{shape}, dtype={tensor.dtype.name}{extra})"


def _numpys_text(values: Any, is_long: bool) -> str:
    """Return NumPy's text of an array, without its middle if it is long."""
    import numpy

    return numpy.array2string(
        values,
        separator=", ",
        prefix="tensor(",
        threshold=0 if is_long else values.size,
        edgeitems=options["edgeitems"],
        max_line_width=options["linewidth"],
        **_number_options(),
    )


def _number_options() -> dict[str, Any]:
    """Return the options for NumPy that differ from its defaults."""
    precision, sci_mode = options["precision"], options["sci_mode"]
    given = {"precision": precision, "floatmode": "fixed"} if precision is not None else {}
    if sci_mode:
        import numpy

        digits = 4 if precision is None else precision
        return {
            "formatter": {
                "float_kind": lambda value: numpy.format_float_scientific(
                    value, digits, unique=False, exp_digits=2
                )
            }
        }
    return given | ({"suppress_small": True} if sci_mode is False else {})


def _edges(tensor: Tensor) -> Tensor:
    """Return the elements of a long tensor that are shown.

    Each axis keeps its ends and one element of its middle, which makes NumPy print "...". The rest
    is not fetched, as that may be a large transfer over a network.
    """
    from gt import _gt

    tensor, edge = tensor.detach(), options["edgeitems"]
    for axis, length in enumerate(tensor.shape):
        if length > 2 * edge:
            ends = [*range(edge + 1), *range(length - edge, length)]
            tensor = tensor.index_select(axis, _gt.tensor_beside(tensor, ends, dtype=_gt.int64))
    return tensor
