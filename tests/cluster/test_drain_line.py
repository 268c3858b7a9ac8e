"""Workers that a supervisor and a scheduler ask to leave at the same time."""

import os
import signal

import gt
import gt.cluster
from processes import linux_only
from slurm import processes_with
from slurm_running import SMALL, eventually

pytestmark = linux_only


def test_sigterm_and_the_line_are_one_request(tmp_path):
    options = [*SMALL["worker_options"]]
    with gt.cluster.Local(2, engine="native", worker_options=options, folder=tmp_path) as cluster:
        with gt.Session(cluster.address):
            kept = gt.rand(1000)
            bits = kept.tolist()
            (leaving,) = (
                pid for pid, command in processes_with(str(tmp_path)).items() if "--id 1" in command
            )
            # SLURM signals all processes of a step.
            os.kill(leaving, signal.SIGTERM)
            cluster.scale(1)
            eventually("its end", lambda: leaving not in processes_with(str(tmp_path)))
            assert kept.tolist() == bits
        assert "gt worker: 1 drained" in cluster.logs()["worker-1"]
        cluster.scale(2)
        eventually("another", lambda: len(cluster.status().workers) == 2)
        cluster.scale(1)
        eventually("its end", lambda: len(cluster.status().workers) == 1)
    eventually("all to end", lambda: not processes_with(str(tmp_path)))
