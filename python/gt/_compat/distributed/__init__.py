"""Process groups of one process, for programs that can also run in several.

One GT process drives all workers of its session, so its group has one process, and collectives
leave their tensors as they are. `gt.signal` shards tensors over workers.
"""

from __future__ import annotations

from typing import NoReturn

from gt._absent import add_absent_modules
from gt._paths import add_modules
from gt._public import show_callers

from . import collectives, groups
from .collectives import (
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    broadcast_object_list,
    gather,
    gather_object,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
)
from .groups import (
    Backend,
    DistBackendError,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    Work,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    new_group,
)

__all__ = [
    "Backend",
    "DistBackendError",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "collectives",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "groups",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"gt.distributed has no '{name}': one process drives all workers\n"
        "  hint: gt.signal shards tensors over workers"
    )


add_absent_modules(
    __name__,
    {
        "algorithms": "Join",
        "algorithms.ddp_comm_hooks": "default_hooks powerSGD_hook",
        "checkpoint": "FileSystemReader FileSystemWriter load save",
        "device_mesh": "DeviceMesh init_device_mesh",
        "fsdp": "CPUOffload FullStateDictConfig FullyShardedDataParallel MixedPrecision "
        "ShardingStrategy StateDictType fully_shard",
        "fsdp.wrap": "always_wrap_policy size_based_auto_wrap_policy transformer_auto_wrap_policy",
        "nn": "all_gather all_reduce all_to_all broadcast gather reduce reduce_scatter scatter",
        "optim": "DistributedOptimizer ZeroRedundancyOptimizer",
        "pipelining": "PipelineStage pipeline",
        "rpc": "init_rpc remote rpc_async rpc_sync shutdown",
        "tensor": "DTensor Partial Replicate Shard distribute_module distribute_tensor",
        "tensor.parallel": "ColwiseParallel RowwiseParallel parallelize_module",
    },
    "gt.signal.context shards parameters and batches over workers",
)
add_modules(__name__, {"distributed_c10d": "gt.distributed.groups gt.distributed.collectives"})


show_callers(globals())
