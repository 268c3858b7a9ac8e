"""`torch.fx` for PyTorch programs: GT does not trace modules to graphs."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "Graph GraphModule Interpreter Node Proxy Tracer Transformer replace_pattern "
        "symbolic_trace wrap",
        "call the module itself; gt.debug.explain(function) shows what it computes",
    )
)
