"""`torch.fx` for PyTorch programs: GT does not trace modules to graphs."""

from typing import Any

from gt._absent import absent_names

__all__ = ["wrap"]


def wrap(fn_or_name: Any) -> Any:
    """Return a function or its name unchanged: nothing is traced that could go into it."""
    return fn_or_name


globals().update(
    absent_names(
        __name__,
        "Graph GraphModule Interpreter Node Proxy Tracer Transformer replace_pattern "
        "symbolic_trace",
        "call the module itself; gt.debug.explain(function) shows what it computes",
    )
)
