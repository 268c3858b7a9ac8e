"""`python -m gt.cluster.slurm.node`: the workers of a node of a SLURM job, as a task of `srun`.

It is `gt.cluster.node` with what SLURM has given to the job on this node: its name, GPUs, cores and
memory. Its options are those of `gt.cluster.node`, and the number of the job.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from gt.cluster import node
from gt.cluster.devices import gpus

#: The part of a job's memory that is for tensors.
_FOR_TENSORS = 0.9


def allocated_options(
    options: Sequence[str], environment: Mapping[str, str], devices: int, job: int = 0
) -> list[str]:
    """Return the options that a node's workers have besides the given ones.

    Args:
        options: those that are given.
        environment: that of the task.
        devices: the number of GPUs that the task has.
        job: the number of the job in the cluster.
    """
    given = {option.split("=")[0]: at for at, option in enumerate(options)}
    number = environment["SLURM_PROCID"]
    added = [] if "--number" in given else ["--number", number]
    if "--name" not in given:
        name = environment.get("SLURMD_NODENAME") or f"node-{number}"
        # Several jobs may have a node together.
        added += ["--name", f"{name}.{job}" if job else name]
    workers = int(options[given["--workers"] + 1]) if "--workers" in given else devices or 1
    if devices:
        return added
    cores = int(environment.get("SLURM_CPUS_ON_NODE") or 0)
    if cores and "--threads" not in given:
        added += ["--threads", str(max(1, cores // workers))]
    megabytes = int(environment.get("SLURM_MEM_PER_NODE") or 0) or cores * int(
        environment.get("SLURM_MEM_PER_CPU") or 0
    )
    if megabytes and "--memory" not in given:
        added += ["--memory", str(int((megabytes << 20) * _FOR_TENSORS) // workers)]
    return added


def main() -> int:
    """Run the workers; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m gt.cluster.slurm.node", allow_abbrev=False)
    parser.add_argument("--job", type=int, default=0, help="the number of the job in the cluster")
    args, given = parser.parse_known_args()
    return node.main([*allocated_options(given, os.environ, len(gpus()), args.job), *given])


if __name__ == "__main__":
    sys.exit(main())
