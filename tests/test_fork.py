"""Forks and multiprocessing: parent and child both continue to compute."""

import os
import signal
import time

import gt
import pytest
from processes import embedded_only, output_of

pytestmark = embedded_only


def test_a_forked_child_computes_with_inherited_and_new_tensors():
    inherited = gt.randn(200, 200)
    expected = (inherited @ inherited).sum().item()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            same = (inherited @ inherited).sum().item() == expected
            fresh = (gt.ones(400, 400) @ gt.ones(400, 400)).sum().item() == 400**3
            os.write(write, b"ok" if same and fresh else b"wrong")
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    deadline = time.monotonic() + 30
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        time.sleep(0.01)
    assert os.read(read, 10) == b"ok"
    os.close(read)
    assert (inherited @ inherited).sum().item() == expected


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    assert output_of("forks/pool", method) == "[8.0, 27000.0, 27000000.0]\n3.0\n"


without_threads = pytest.mark.skipif(
    os.environ.get("GT_BACKEND") in ("pytorch", "jax"),
    reason="threads of these engines do not survive a fork",
)


@without_threads
def test_a_fork_while_other_threads_compute():
    """The child must not inherit locks of the runtime that a thread holds at the moment."""
    # Python 3.12 and later warn of forks while other threads run.
    codes = output_of("forks/while_threads_compute", PYTHONWARNINGS="ignore")
    assert codes == f"{[0] * 20}\n"


@without_threads
def test_a_fork_while_another_thread_ends():
    """The end of a thread, which does not hold the GIL, takes no lock that the child needs."""
    codes = output_of("forks/when_threads_end", PYTHONWARNINGS="ignore")
    assert codes == f"{[0] * 30}\n"


@without_threads
def test_a_fork_while_hooks_are_dropped():
    """Objects of hooks are released with the GIL, so without PyO3's lock."""
    codes = output_of("forks/when_hooks_are_dropped", PYTHONWARNINGS="ignore")
    assert codes == f"{[0] * 30}\n"


def test_a_child_that_exits_normally():
    out = output_of("forks/child_exits_normally")
    assert out == "[2.0, 2.0, 2.0]\n5 [2.0, 2.0, 2.0]\n"
