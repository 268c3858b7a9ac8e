"""Starting, forking, threads, interrupts, ends: nothing hangs and nothing is left behind."""

import os
import signal
import threading
import time

import gt
import pytest
from processes import embedded_only, run_python

pytestmark = embedded_only


def test_a_program_says_nothing_and_leaves_nothing():
    done = run_python(
        "import gt, threading\n"
        "x = gt.randn(300, 300)\n"
        "for _ in range(200): x = (x + 1) * 0.5\n"
        "print(x.shape)\n"
        "y = x @ x  # still under way at the end\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(300, 300)\n", "")


def test_import_starts_nothing():
    done = run_python(
        "import os, gt\n"
        "print(len(os.listdir('/proc/self/task')), len(os.listdir('/proc/self/fd')))\n"
    )
    tasks, files = map(int, done.stdout.split())
    assert tasks == 1 and files <= 5, done


def test_many_starts_and_stops_leave_no_thread_and_no_file():
    def once():
        x = gt.ones(300, 300)
        (x @ x).sum().item()
        gt.disconnect()

    once()
    tasks, files = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    for _ in range(200):
        once()
    assert len(os.listdir("/proc/self/task")) <= tasks
    assert len(os.listdir("/proc/self/fd")) <= files


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


def test_multiprocessing_by_fork_and_spawn():
    code = (
        "import multiprocessing, sys, gt\n"
        "def work(n): return (gt.ones(n, n) @ gt.ones(n, n)).sum().item()\n"
        "if __name__ == '__main__':\n"
        "    gt.ones(3).sum().item()\n"
        "    context = multiprocessing.get_context('fork')\n"
        "    with context.Pool(2) as pool: print(pool.map(work, [2, 30, 300]))\n"
    )
    done = run_python(code)
    assert done.stdout == "[8.0, 27000.0, 27000000.0]\n" and done.stderr == "", done


def test_threads_compute_at_once():
    failures = []

    def work(number):
        try:
            x = gt.full((50,), float(number))
            for _ in range(200):
                x = x + 1
            assert x.tolist() == [number + 200.0] * 50
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_an_interrupt_ends_a_wait_and_the_session_goes_on():
    x = gt.randn(1500, 1500)
    for _ in range(40):
        x = (x @ x) * 1e-3
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        x.sum().item()
        time.sleep(30)  # a very fast machine is interrupted here
    timer.join()
    assert gt.ones(2).tolist() == [1, 1]


def memory() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_issuing_without_fetching_holds_memory_bounded():
    x = gt.ones(1000)
    gt.synchronize()
    before = memory()
    kept = x
    for _ in range(200_000):
        kept = kept + x
    assert memory() - before < 200 << 20
    assert kept[0].item() == 200_001
    del kept
    held = [gt.ones(1000, 1000) for _ in range(50)]
    gt.synchronize()
    assert total_bytes() >= 50 * 4_000_000
    del held
    assert total_bytes() < 4_000_000


def total_bytes() -> int:
    return sum(stats["memory"]["bytes"] for stats in gt.debug.get_worker_stats().values())


def test_several_workers():
    done = run_python(
        "import gt\n"
        "gt.gpu_workers(3)\n"
        "print((gt.ones(10) * 2).sum().item(), len(gt.debug.get_worker_stats()))\n"
    )
    assert done.stdout == "20.0 3\n", done
