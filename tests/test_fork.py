"""Forks and multiprocessing: parent and child both compute on."""

import os
import signal
import subprocess
import sys
import time

import gt
import pytest
from processes import WAIT_FOR_CHILD, embedded_only, run_python

pytestmark = embedded_only


def test_a_forked_child_computes_on():
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
def test_multiprocessing(method, tmp_path):
    # spawn imports the program again, so it must be a file.
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, gt\n"
        "def work(n): return (gt.ones(n, n) @ gt.ones(n, n)).sum().item()\n"
        "if __name__ == '__main__':\n"
        "    gt.ones(3).sum().item()\n"
        f"    context = multiprocessing.get_context('{method}')\n"
        "    with context.Pool(2) as pool: print(pool.map(work, [2, 30, 300]))\n"
        "    print(gt.ones(3).sum().item())\n"
    )
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "[8.0, 27000.0, 27000000.0]\n3.0\n" and done.stderr == "", done


@pytest.mark.skipif(
    os.environ.get("GT_BACKEND") in ("pytorch", "jax"),
    reason="their own threads do not survive a fork",
)
def test_a_fork_while_other_threads_compute():
    """A thread may hold the runtime's locks while it drives it: the child must not inherit them."""
    done = run_python(
        "import gt, os, signal, threading, time\n"
        "stop = False\n"
        "def work():\n"
        "    x = gt.ones(100)\n"
        "    while not stop: x = x + 1; x.sum().item()\n"
        f"{WAIT_FOR_CHILD}"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "for thread in threads: thread.start()\n"
        "codes = []\n"
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    if child == 0: os._exit((gt.ones(3) * 2).tolist() != [2, 2, 2])\n"
        "    codes.append(wait(child))\n"
        "    if any(codes): break\n"
        "stop = True\n"
        "for thread in threads: thread.join()\n"
        "print(codes)\n",
        PYTHONWARNINGS="ignore",  # newer Pythons warn of such forks
    )
    assert done.stdout == f"{[0] * 20}\n" and done.stderr == "", done


def test_a_child_that_ends_as_programs_do():
    done = run_python(
        "import gt, os, sys\n"
        "x = gt.ones(3, requires_grad=True)\n"
        "loss = (x * x).sum()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    loss.backward()\n"
        "    print(x.grad.tolist(), flush=True)\n"
        "    sys.exit(5)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "loss.backward()\n"
        "print(code, x.grad.tolist())\n"
    )
    assert done.stdout == "[2.0, 2.0, 2.0]\n5 [2.0, 2.0, 2.0]\n" and done.stderr == "", done
