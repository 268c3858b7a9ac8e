"""SLURM's own commands: what they are asked, and what their JSON says, of old and new versions."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gt.cluster.errors import ClusterError, said

#: How long a command may take, in seconds: a busy controller answers late.
_LIMIT = 60.0

#: The states of a job that has ended, or is about to, whatever else its state says.
_FINAL = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY"),
    *("PREEMPTED", "REVOKED", "TIMEOUT"),
}

#: The reasons for which a job waits that no waiting changes.
_HOPELESS = {
    *("AccountNotAllowed", "BadConstraints", "DependencyNeverSatisfied", "InvalidAccount"),
    *("InvalidQOS", "JobHeldAdmin", "PartitionConfig", "PartitionDown", "PartitionInactive"),
    *("PartitionNodeLimit", "PartitionTimeLimit", "QOSNotAllowed"),
}


class SlurmRefusal(ClusterError):
    """A command of SLURM failed; its words are the argument."""

    __module__ = "gt.cluster.slurm.commands"


@dataclass(frozen=True)
class JobState:
    """A job, as `squeue --json` shows it.

    Args:
        job: SLURM's ID.
        states: its state, such as RUNNING, and flags, such as COMPLETING.
        reason: why it waits; empty if it does not.
        nodes: its nodes, as SLURM writes lists of them.
    """

    job: int
    states: tuple[str, ...]
    reason: str = ""
    nodes: str = ""

    @property
    def is_over(self) -> bool:
        """Return whether nothing of it runs, or will."""
        return bool(_FINAL & set(self.states)) and "COMPLETING" not in self.states

    @property
    def has_ended(self) -> bool:
        """Return whether it has ended, though its last processes may be ending still."""
        return bool(_FINAL & set(self.states))

    @property
    def is_running(self) -> bool:
        """Return whether it runs."""
        return self.states == ("RUNNING",)

    @property
    def is_pending(self) -> bool:
        """Return whether it waits for nodes."""
        return "PENDING" in self.states

    @property
    def is_hopeless(self) -> bool:
        """Return whether it waits for something that does not happen by itself."""
        is_limit = self.reason.endswith("PerJobLimit")
        return self.is_pending and (is_limit or self.reason in _HOPELESS)

    def __str__(self) -> str:
        """Return a short text."""
        where = f" on {self.nodes}" if self.nodes else ""
        why = f" ({self.reason})" if self.reason else ""
        return f"job {self.job}: {'+'.join(self.states)}{where}{why}"


@dataclass(frozen=True)
class Partition:
    """A partition: its nodes, and the most GPUs that one of them has."""

    name: str
    nodes: int
    gpus: int

    def __str__(self) -> str:
        """Return a short text."""
        gpus = f" with up to {self.gpus} GPUs" if self.gpus else " without GPUs"
        return f"{self.name}: {self.nodes} node{'s' if self.nodes != 1 else ''}{gpus}"


def run(*command: str, text: str | None = None, environment: dict[str, str] | None = None) -> str:
    """Run a command; return what it prints.

    Raises:
        SlurmRefusal: it failed, or takes too long.
        ClusterError: it is not installed.
    """
    if shutil.which(command[0]) is None:
        raise ClusterError(
            f"SLURM is not found: there is no command '{command[0]}' here\n"
            "  hint: gt.cluster.Slurm runs where jobs are submitted, such as a login node"
        )
    try:
        done = subprocess.run(
            command, input=text or "", capture_output=True, text=True, timeout=_LIMIT,
            env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise SlurmRefusal(f"{command[0]} did not answer within {_LIMIT:g} s") from None
    if done.returncode != 0:
        raise SlurmRefusal(done.stderr or done.stdout or f"exit status {done.returncode}")
    return done.stdout


def submit_environment() -> dict[str, str]:
    """Return the environment in which a job is submitted, and which it has.

    It has no key, and nothing of a job that this program may run in.
    """
    kept = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT")
    return {
        name: value
        for name, value in os.environ.items()
        if name != "GT_KEY" and (name in kept or not name.startswith(("SLURM_", "SLURMD_")))
    }


def submit(script: str) -> int:
    """Submit a script; return the job's ID.

    Raises:
        SlurmRefusal: SLURM refuses it.
    """
    printed = run("sbatch", "--parsable", text=script, environment=submit_environment())
    # "ID", or "ID;CLUSTER"; site plugins may print lines before.
    found = re.fullmatch(
        r"(\d+)(;.*)?", printed.strip().splitlines()[-1] if printed.strip() else ""
    )
    if found is None:
        raise SlurmRefusal(f"sbatch printed no job ID: {printed!r}")
    return int(found[1])


def job_states(name: str) -> dict[int, JobState]:
    """Return this user's jobs of a name that SLURM knows, also those that ended lately, by ID."""
    printed = run("squeue", "--json", "--me", "--states=all", f"--name={name}")
    return {state.job: state for state in parse_squeue(printed)}


def parse_squeue(text: str) -> list[JobState]:
    """Return the jobs in the output of `squeue --json`."""
    found = []
    for job in _parsed(text)["jobs"]:
        reason = str(job.get("state_reason") or "")
        found.append(
            JobState(
                job=_number(job["job_id"]),
                states=tuple(_words(job["job_state"])),
                reason="" if reason == "None" else reason,
                nodes=str(job.get("nodes") or ""),
            )
        )
    return found


def partitions() -> list[Partition]:
    """Return the partitions that this user sees."""
    return parse_sinfo(run("sinfo", "--json"))


def parse_sinfo(text: str) -> list[Partition]:
    """Return the partitions in the output of `sinfo --json`.

    Up to 22.05 it lists nodes, each with the names of its partitions; later versions list groups of
    equal nodes, each with its partition.
    """
    parsed = _parsed(text)
    nodes: dict[str, int] = {}
    gpus: dict[str, int] = {}

    def add(name: str, count: int, gres: str) -> None:
        nodes[name] = nodes.get(name, 0) + count
        gpus[name] = max(gpus.get(name, 0), gpu_count(gres) if count else 0)

    for node in parsed.get("nodes", []):
        for name in node.get("partitions", []):
            add(name, 1, node.get("gres") or "")
    for group in parsed.get("sinfo", []):
        count = _number(group["nodes"]["total"])
        add(group["partition"]["name"], count, group.get("gres", {}).get("total") or "")
    return [Partition(name, nodes[name], gpus[name]) for name in sorted(nodes)]


def gpu_count(gres: str) -> int:
    """Return the GPUs in a node's resources, such as `gpu:a100:4(S:0-1),shard:8`."""
    count = 0
    # Sockets in parentheses may contain commas.
    for part in re.sub(r"\([^)]*\)", "", gres).split(","):
        kind, *words = part.strip().removeprefix("gres:").removeprefix("gres/").split(":")
        if kind == "gpu":
            # `gpu` and `gpu:a100` are one.
            count += int(words[-1]) if words and words[-1].isdigit() else 1
    return count


def requested_gpus(request: int | str | None) -> int:
    """Return the GPUs in what `--gpus-per-node` takes: 4, "4", "a100:2" or "a100:2,v100:1".

    Raises:
        ValueError: it is something else.
    """
    if request is None:
        return 0
    count = 0
    for part in str(request).split(","):
        found = re.fullmatch(r"(?:[A-Za-z][\w.+-]*:)?(\d+)|[A-Za-z][\w.+-]*", part.strip())
        if found is None:
            raise ValueError(f"gpus_per_node is {request!r}, expected a number or TYPE:NUMBER")
        count += int(found[1]) if found[1] else 1
    return count


def cancel(jobs: Iterable[int], *options: str) -> None:
    """Cancel jobs; those that have ended already are no error."""
    given: Sequence[str] = [str(job) for job in jobs]
    if not given:
        return
    try:
        run("scancel", *options, *given)
    except SlurmRefusal as refusal:
        if "nvalid job id" not in str(refusal) and "already" not in str(refusal):
            raise ClusterError(
                f"SLURM did not cancel the jobs {', '.join(given)}{said(str(refusal))}"
            ) from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise SlurmRefusal(f"no JSON (GT needs SLURM 21.08 or later):\n{text[:400]}") from None
    errors = [str(error.get("description") or error) for error in found.get("errors", [])]
    if errors:
        raise SlurmRefusal("\n".join(errors))
    return dict(found)


def _words(value: str | list[str]) -> list[str]:
    """Return states: a list of them, or a text; "RUNNING" up to 23.02, ["RUNNING"] later."""
    return [value] if isinstance(value, str) else [str(of) for of in value]


def _number(value: int | dict[str, Any]) -> int:
    """Return a number that newer versions write as {"set": true, "number": 3}."""
    return int(value["number"] if isinstance(value, dict) else value)
