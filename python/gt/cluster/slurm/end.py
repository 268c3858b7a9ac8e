"""The end of a SLURM cluster's jobs."""

from __future__ import annotations

import time
from pathlib import Path

from gt.cluster.errors import ClusterError
from gt.cluster.slurm.commands import cancel, job_states
from gt.cluster.slurm.record import changed_record, read_record

#: How long jobs may take to end by themselves before they are killed, in seconds.
_BY_THEMSELVES = 2.5

#: How long SLURM may take to say that killed jobs have ended, in seconds: its `KillWait` is 30.
_LIMIT = 60.0

#: How often SLURM is asked, in seconds.
_EVERY = 0.2


def end_jobs(folder: Path) -> None:
    """End all jobs of a cluster, undrained, and wait until SLURM says that they have ended.

    Raises:
        ClusterError: a job does not end.
        SlurmRefusal: SLURM does not answer.
    """
    with changed_record(folder) as record:
        record.is_ended = True
    known = record.submitted()

    def living() -> dict[int, bool]:
        """Return the jobs that have not ended, and whether each is pending."""
        states = job_states(record.name)
        return {
            job: states[job].is_pending
            for job in known
            if job in states and not states[job].is_over
        }

    if not known:
        return
    # Those that wait begin no more. Those that run see the record.
    cancel([job for job, is_pending in living().items() if is_pending])
    start, is_killed = time.monotonic(), False
    while left := living():
        if time.monotonic() - start > _BY_THEMSELVES and not is_killed:
            is_killed = True
            cancel(left, "--full", "--signal=KILL")
            cancel(left)
        if time.monotonic() - start > _LIMIT:
            raise ClusterError(
                f"SLURM has not ended {', '.join(f'job {job}' for job in left)} within {_LIMIT:g} s"
            )
        time.sleep(_EVERY)


def end_orphans(folder: Path) -> None:
    """End all of a cluster if the job with its server is over.

    Such a job was cancelled, or has reached its wall time for the last time. Clients that wait for
    the server's next address learn that there is none.
    """
    record = read_record(folder)
    first = record.find(0)
    state = job_states(record.name).get(first.job or -1) if first is not None else None
    if state is None or not state.is_over:
        return
    (folder / "address").unlink(missing_ok=True)
    if not record.is_ended:
        end_jobs(folder)
