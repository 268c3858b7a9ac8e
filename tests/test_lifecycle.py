"""Start, threads, interrupts and exit of programs: none hangs or leaves anything behind."""

import os
import signal
import threading
import time

import gt
import pytest
from processes import embedded_only, linux_only, run_program, run_python

pytestmark = embedded_only


def test_a_program_prints_nothing_of_its_own():
    done = run_python(
        "import gt, threading\n"
        "x = gt.randn(300, 300)\n"
        "for _ in range(200): x = (x + 1) * 0.5\n"
        "print(x.shape)\n"
        "y = x @ x  # still running at exit\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "(300, 300)\n", "")


@linux_only
def test_import_starts_no_thread_and_opens_no_file():
    done = run_python(
        "import os, gt\n"
        "print(len(os.listdir('/proc/self/task')), len(os.listdir('/proc/self/fd')))\n"
    )
    tasks, files = map(int, done.stdout.split())
    assert tasks == 1 and files <= 5, done


@linux_only
def test_many_starts_and_stops_leave_no_thread_and_no_file():
    def once():
        with gt.Session():
            x = gt.ones(300, 300)
            (x @ x).sum().item()

    once()
    tasks, files = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    for _ in range(1_000):
        once()
    assert len(os.listdir("/proc/self/task")) <= tasks
    assert len(os.listdir("/proc/self/fd")) <= files


@pytest.mark.parametrize(
    "ending",
    [
        "import threading; threading.Thread(target=work, daemon=True).start()",
        "import atexit; atexit.register(lambda: (gt.ones(3) + 1).tolist())",
        "kept = [gt.ones(10) for _ in range(1000)]",
        "gt.disconnect(); gt.disconnect()",
        "import sys; sys.exit(0)",
        "x = gt.ones(500, 500); y = [x @ x for _ in range(50)]",
        "a = gt.ones(3, requires_grad=True); b = (a * 2).sum(); b.backward()",
    ],
)
def test_every_way_to_exit_is_silent(ending, tmp_path):
    code = (
        "import gt\n"
        "def work():\n"
        "    x = gt.ones(10)\n"
        "    while True: x = x + 1; x.sum().item()\n"
        "gt.ones(3).tolist()\n"
    )
    done = run_python(code + ending, TMPDIR=str(tmp_path), HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # All programs share the user's runtime folder; none may leave files in it.
    left = [file for _, _, files in os.walk(tmp_path) for file in files]
    assert left == []


def test_exit_does_not_wait_for_results_that_are_not_fetched():
    """The program exits after Ctrl-C, although minutes of work are queued."""
    done = run_python(
        "import gt, os, signal, threading\n"
        "x = gt.randn(1500, 1500)\n"
        "for _ in range(4000): x = (x @ x) * 0.026\n"
        "timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "timer.start()\n"
        "try: x.sum().item()\n"
        "except KeyboardInterrupt: print('interrupted')\n",
        timeout=20,
        GT_RUN_AHEAD="1000",
    )
    assert (done.stdout, done.stderr) == ("interrupted\n", ""), done


def test_tensors_of_a_closed_session_raise():
    done = run_program("lifecycle/closed_session")
    assert done.stdout.splitlines() == [
        "ConnectionError the session is closed",
        "RuntimeError add: the tensors belong to different sessions",
        "[1.0, 1.0]",
    ], done


def test_threads_compute_concurrently():
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


def test_an_interrupt_ends_a_wait_but_not_the_session():
    # A process that is started in the background ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    x = gt.randn(1200, 1200)
    for _ in range(40):
        x = (x @ x) * 0.029  # keeps the magnitude of the elements
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        x.sum().item()
        time.sleep(30)  # On a very fast machine the interrupt arrives here.
    timer.join()
    signal.signal(signal.SIGINT, before)
    assert gt.ones(2).tolist() == [1, 1]


def test_training_uses_bounded_memory():
    """A step leaves neither tensors on the worker nor graphs."""
    model = gt.nn.Sequential(gt.nn.Linear(20, 30), gt.nn.Tanh(), gt.nn.Linear(30, 2))
    optimizer = gt.optim.Adam(model.parameters())
    x, y = gt.randn(16, 20), gt.randint(0, 2, (16,))

    def step():
        optimizer.zero_grad()
        loss = gt.nn.cross_entropy_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    step()
    tensors, tape = total_tensors(), len(gt.debug.get_tape())
    for _ in range(20):
        step()
    assert total_tensors() == tensors and len(gt.debug.get_tape()) == tape


def test_second_derivatives_free_their_tensors_and_graphs():
    x = gt.ones(3, requires_grad=True)
    gt.synchronize()
    tensors = total_tensors()
    for _ in range(5):
        (first,) = gt.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = gt.autograd.grad(first.sum(), x)
        assert second.tolist() == [6, 6, 6]
    del first, second
    assert total_tensors() == tensors and gt.debug.get_tape() == []


def total_tensors() -> int:
    return sum(stats["memory"]["tensors"] for stats in gt.debug.get_worker_stats().values())


def memory() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(
    os.environ.get("GT_BACKEND", "native") != "native", reason="other engines make one more copy"
)
def test_values_are_copied_at_most_once_each_way():
    done = run_program("lifecycle/peak_memory")
    there, back = map(int, done.stdout.split())
    assert there < 250e6 and back < 250e6, done


@linux_only
def test_issuing_without_fetching_uses_bounded_memory():
    x = gt.ones(1000)
    gt.synchronize()
    before = memory()
    kept = x
    for _ in range(1_000_000):
        kept = kept + x
    assert memory() - before < 200 << 20
    assert kept[0].item() == 1_000_001
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
