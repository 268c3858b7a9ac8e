"""Run-ahead of a program over its workers: limited by time, not by the number of instructions."""

import pytest
from processes import cluster, embedded_only, one_engine_only, run_program, unsharded_only

pytestmark = [embedded_only, unsharded_only, one_engine_only]


def test_a_program_waits_for_a_stopped_worker():
    with cluster(1) as (address, processes):
        done = run_program("run_ahead/issues", address, processes[1].pid, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done


@pytest.mark.parametrize("is_remote", [False, True])
def test_out_of_memory_is_raised_while_the_program_waits_for_the_window(is_remote):
    """Each tensor is more work than may be in flight."""
    limits = {"GT_RUN_AHEAD": "0.000001", "GT_MEMORY": "100MB"}
    if not is_remote:
        done = run_program("run_ahead/full", **limits)
    else:
        with cluster(1, worker_options=("--memory", "100MB")) as (address, _):
            done = run_program("run_ahead/full", address, **limits)
    assert (done.returncode, done.stdout) == (0, "True\n3.0\n"), done


def test_a_long_wait_in_a_notebook_is_explained():
    with cluster(1) as (address, processes):
        done = run_program("run_ahead/notebook", address, processes[1].pid)
    assert (done.returncode, done.stdout) == (0, "True\n"), done
