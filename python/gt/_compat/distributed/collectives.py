"""Collectives over a group of one process: results are the process's own tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from gt import no_grad
from gt._gt import Tensor

from .groups import ReduceOp, Work, check_rank, get_rank

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "irecv",
    "isend",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all processes, which leaves the tensor of one as it is.

    Args:
        tensor: the tensor.
        op: how to combine tensors.
        group: the process group; the default one by default.
        async_op: whether to return a `Work` to wait for.

    Raises:
        ValueError: there is no process group.
    """
    return _done("all_reduce", group, async_op, _tensor("all_reduce", tensor))


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Combine the tensors of all processes on one, which leaves the tensor as it is."""
    return _done("reduce", group, async_op, _tensor("reduce", tensor), dst, group_dst)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy the tensor of one process to all, which leaves it as it is."""
    return _done("broadcast", group, async_op, _tensor("broadcast", tensor), src, group_src)


def all_gather(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy the tensor of each process to a tensor in a list of one."""
    work = _done("all_gather", group, async_op, tensor)
    _copy(_only("all_gather", "tensor_list", tensor_list), tensor)
    return work


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Copy the tensors of all processes, one after another, to a tensor."""
    work = _done("all_gather_into_tensor", group, async_op, input_tensor)
    _copy(output_tensor, input_tensor.reshape(output_tensor.shape))
    return work


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Copy the tensor of each process to a tensor in a list of one process."""
    work = _done("gather", group, async_op, tensor, dst, group_dst)
    _copy(_only("gather", "gather_list", gather_list), tensor)
    return work


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copy a tensor from a list of one process to the tensor of each process."""
    work = _done("scatter", group, async_op, tensor, src, group_src)
    _copy(tensor, _only("scatter", "scatter_list", scatter_list))
    return work


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the lists of all processes, and copy one tensor to each process."""
    work = _done("reduce_scatter", group, async_op, output)
    _copy(output, _only("reduce_scatter", "input_list", input_list))
    return work


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the tensors of all processes, and copy a part to each process."""
    work = _done("reduce_scatter_tensor", group, async_op, output)
    _copy(output, input.reshape(output.shape))
    return work


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Copy a tensor of each process's list to each process."""
    work = _done("all_to_all", group, async_op)
    output = _only("all_to_all", "output_tensor_list", output_tensor_list)
    _copy(output, _only("all_to_all", "input_tensor_list", input_tensor_list))
    return work


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Copy a part of each process's tensor to each process."""
    work = _done("all_to_all_single", group, async_op, output)
    _copy(output, input)
    return work


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None
) -> Work | None:
    """Return at once: there is no other process to wait for."""
    return _done("barrier", group, async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Return at once: there is no other process to wait for."""
    _done("monitored_barrier", group, False)


def all_gather_object(
    object_list: list[Any], obj: Any, group: Any = None, weights_only: bool = False
) -> None:
    """Store the object of each process in a list of one."""
    _done("all_gather_object", group, False)
    _only("all_gather_object", "object_list", object_list)
    object_list[0] = obj


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
    weights_only: bool = False,
) -> None:
    """Store the object of each process in a list of one process."""
    _done("gather_object", group, False, None, dst, group_dst)
    _only("gather_object", "object_gather_list", object_gather_list)
    object_gather_list[0] = obj  # type: ignore[index]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Copy the objects of one process to all, which leaves the list as it is."""
    _done("broadcast_object_list", group, False, None, src, group_src)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
    weights_only: bool = False,
) -> None:
    """Store an object of one process's list in the list of each process."""
    _done("scatter_object_list", group, False, None, src, group_src)
    given = _only("scatter_object_list", "scatter_object_input_list", scatter_object_input_list)
    scatter_object_output_list[0] = given


def send(tensor: Tensor, dst: int | None = None, group: Any = None, **options: Any) -> NoReturn:
    """Raise ValueError: there is no other process to send to."""
    raise _no_other("destination", group)


def recv(tensor: Tensor, src: int | None = None, group: Any = None, **options: Any) -> NoReturn:
    """Raise ValueError: there is no other process to receive from."""
    raise _no_other("source", group)


isend, irecv = send, recv


def _no_other(what: str, group: Any) -> ValueError:
    get_rank(group)
    return ValueError(
        f"Invalid {what} rank: {what} rank should not be the same as the rank of the current "
        "process, which is the only one."
    )


def _done(
    name: str, group: Any, async_op: bool, tensor: Any = None, *ranks: int | None
) -> Work | None:
    """Check the group and ranks of a collective; return its `Work` if it is asked for."""
    for rank in ranks or (None,):
        check_rank(name, rank, group)
    return Work() if async_op else None


def _tensor(name: str, given: Any) -> Tensor:
    if not isinstance(given, Tensor):
        raise TypeError(f"{name}: tensor must be a tensor, not {type(given).__name__}")
    return given


def _only(name: str, parameter: str, given: Any) -> Any:
    """Return the item of a list that has one for each process."""
    length = len(given) if given is not None else 0
    if length != 1:
        raise ValueError(f"{name}: {parameter} has {length} items, expected 1, one per process")
    return given[0]


def _copy(output: Tensor, values: Tensor) -> None:
    with no_grad():
        output.copy_(values)
