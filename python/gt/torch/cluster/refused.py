"""The names of `torch.cuda` and `torch.xpu` that the device does not have, with what to use.

They are not attributes, so that libraries that look for a name, by `hasattr`, do without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_STEPS = "GT records repeated steps itself: call the function as it is, or torch.compile it"
_MEMORY = "workers allocate memory: gt.status() and gt.debug.get_worker_stats() report it"
#: What limits memory, in place of `set_per_process_memory_fraction`.
QUOTA = "the memory quota in the policy of `gt server --policy` limits a user"
_HARDWARE = "workers may have different hardware, which their own machines' tools measure"
_ERRORS = "the errors of workers are gt.WorkerError"
_CUDA = "a worker on a GPU has its own CUDA context, and this process has none"
_STREAMS = "the session has one order of instructions: use torch.cluster.current_stream()"
_KERNELS = "workers' engines choose and tune kernels themselves"
_WORKERS = "one process uses all workers: shard tensors by gt.signal.context"
_TRACES = "torch.profiler records this process, and `gt trace` the workers"

#: (names, what to use instead).
_TABLE = (
    ("CUDAGraph XPUGraph graph graph_pool_handle graph_annotations export_dot", _STEPS),
    ("export_graph_data register_graph_capture_start_hook", _STEPS),
    ("register_graph_capture_end_hook register_graph_instantiate_hook", _STEPS),
    ("register_graph_replay_start_hook register_graph_replay_end_hook", _STEPS),
    ("register_graph_destroy_hook", _STEPS),
    ("CUDAPluggableAllocator XPUPluggableAllocator change_current_allocator", _MEMORY),
    ("caching_allocator_alloc caching_allocator_delete caching_allocator_disabled", _MEMORY),
    ("caching_allocator_enable memory_snapshot memory_usage", _MEMORY),
    ("MemPool use_mem_pool", _MEMORY),
    ("clock_rate power_draw temperature utilization", _HARDWARE),
    ("CudaError DeferredCudaCallError check_error cudaStatus", _ERRORS),
    ("cudart current_blas_handle current_solver_handle gds green_contexts", _CUDA),
    ("GreenContext", _CUDA),
    ("ExternalStream get_stream_from_external", _STREAMS),
    ("jiterator", "compose operators, and torch.compile them"),
    ("tunable", _KERNELS),
    ("nccl", _WORKERS),
    ("profiler", _TRACES),
    ("sparse", "torch.sparse_coo_tensor makes sparse tensors, on the CPU only"),
)
REFUSED = {name: instead for names, instead in _TABLE for name in names.split()}


def of(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which explains the names that the device lacks."""

    def explain(name: str) -> Any:
        instead = REFUSED.get(name)
        if instead is None:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        raise AttributeError(f"{module} has no '{name}': {instead}")

    return explain
