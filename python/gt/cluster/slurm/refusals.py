"""Why SLURM refuses a job, in a line."""

from __future__ import annotations

from gt.cluster.errors import ClusterError, said
from gt.cluster.slurm.commands import Partition, partitions, requested_gpus
from gt.cluster.slurm.script import JobRequest


def why_refused(request: JobRequest, nodes: int, words: str) -> str:
    """Return what was asked and what is wrong, with SLURM's own words below.

    Args:
        request: what was asked.
        nodes: for how many nodes.
        words: what SLURM said.
    """
    try:
        known = partitions()
    except ClusterError:
        known = []
    why = explained(request, nodes, known) or _last_line(words)
    return f"SLURM does not run {_asked(request, nodes)}: {why}{said(words)}"


def explained(request: JobRequest, nodes: int, known: list[Partition]) -> str | None:
    """Return what is wrong with a request, as far as the partitions show it."""
    if not known:
        return None
    if request.partition is None:
        candidates = known
    else:
        named = request.partition.split(",")
        missing = [name for name in named if name not in [of.name for of in known]]
        if missing:
            there = ", ".join(of.name for of in known)
            return f"it has no partition '{missing[0]}', but {there}"
        candidates = [of for of in known if of.name in named]
    have = "; ".join(str(of) for of in candidates)
    if nodes > max(of.nodes for of in candidates):
        return f"there are not as many nodes ({have})"
    if requested_gpus(request.gpus_per_node) > max(of.gpus for of in candidates):
        return f"no node has as many GPUs ({have})"
    return None


def _asked(request: JobRequest, nodes: int) -> str:
    gpus = "" if request.gpus_per_node is None else f" with {request.gpus_per_node} GPUs each"
    named = {
        "partition": request.partition,
        "account": request.account,
        "qos": request.qos,
        "constraint": request.constraint,
        "time": request.time,
    }
    given = "".join(f", {name} '{value}'" for name, value in named.items() if value is not None)
    return f"{nodes} node{'s' if nodes != 1 else ''}{gpus}{given}"


def _last_line(words: str) -> str:
    lines = [line for line in words.splitlines() if line.strip()]
    # Others are advice.
    errors = [line for line in lines if "error:" in line] or lines[:1]
    last = errors[-1] if errors else "it does not say why"
    return last.removeprefix("sbatch: ").removeprefix("error: ").strip()
