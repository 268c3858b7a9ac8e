"""The deprecated location of `gt.func.functional_call`."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt._lines import warn


def functional_call(
    module: Any,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call `gt.func.functional_call`, and warn that this name is deprecated."""
    import gt.func  # it needs gt.nn

    warn(
        "`gt.nn.utils.stateless.functional_call` is deprecated; please use "
        "`gt.func.functional_call` instead, which is a drop-in replacement.",
        FutureWarning,
    )
    return gt.func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
