"""`torch.cuda.nvtx` for PyTorch programs: there is no GPU here to mark ranges of."""

from gt._absent import absent_names

__all__: list[str] = []

globals().update(
    absent_names(
        __name__,
        "mark range range_end range_pop range_push range_start",
        "with gt.profiler.record_function(name): records a named part",
    )
)
