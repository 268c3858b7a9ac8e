"""The end of sessions: with their process, with their last tensor, and in forks."""

import os

import pytest
from processes import embedded_only, run_program, run_python

pytestmark = embedded_only


def test_new_tensors_raise_after_a_disconnect():
    done = run_program("sessions/after_disconnect")
    hint = "  hint: call gt.connect(...), or compute inside `with gt.Session(...):`"
    assert done.stdout.splitlines() == [
        "this thread disconnected from its workers in this process",
        f"{hint}; gt.gpu_workers(n) lets the next tensor start workers in this process",
        "this thread uses the main thread's session, which disconnected from its workers in this "
        "process",
        hint,
        "[1.0]",
        "[1.0] <gt.Session 3: this process, 2 worker(s)>",
    ], done
    assert done.stderr == ""


@pytest.mark.parametrize(
    "ending",
    [
        "session = gt.Session(workers=2)\nwith session.use(): x = gt.ones(500, 500) @ gt.ones(500)",
        "session = gt.Session(); session.__enter__(); x = gt.ones(3).exp()",
        "with gt.Session(): gt.ones(3).tolist(); sys.exit(0)",
        "def work():\n"
        "    with gt.Session():\n"
        "        while True: gt.ones(3).sum().item()\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.2)",
        "def work():\n"
        "    while True:\n"
        "        with gt.Session(): gt.ones(3).sum().item()\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.2)",
        "threads = [threading.Thread(target=lambda: kept.append(gt.Session())) for _ in range(3)]\n"
        "kept = []\n"
        "for thread in threads: thread.start()",
        "atexit.register(lambda: gt.Session().__enter__() and gt.ones(3).tolist())",
        "x = gt.ones(3); gt.disconnect(); gt.gpu_workers(1); y = gt.ones(3)",
    ],
)
def test_every_way_to_exit_is_silent(ending, tmp_path):
    code = "import atexit, gt, sys, threading, time\ngt.ones(3).tolist()\n"
    done = run_python(code + ending, TMPDIR=str(tmp_path), HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [file for _, _, files in os.walk(tmp_path) for file in files] == []


def test_the_last_tensor_ends_a_session_whose_engine_is_in_python():
    """The worker may be computing, and needs Python's lock to end."""
    done = run_program("sessions/dropped_while_computing", GT_BACKEND="numpy")
    assert (done.stdout, done.stderr) == ("done\n", ""), done


def test_computing_while_the_process_ends_raises():
    done = run_python(
        "import atexit\n"
        "def late():\n"
        "    try: gt.ones(3)\n"
        "    except ConnectionError as error: print(str(error).splitlines()[0])\n"
        "atexit.register(late)\n"
        "import gt\n"
    )
    assert done.stdout == "the process is ending, and all sessions have ended\n", done


def test_a_fork_inside_a_block():
    """The child has a copy of the session; closing it does not affect the parent."""
    done = run_program("forks/inside_a_block", PYTHONWARNINGS="ignore")
    expected = ["[2.0, 2.0] [1.0]", "closed", "0", "[1.0]", "0", "[3.0, 3.0]", "True"]
    assert done.stdout.splitlines() == expected and done.stderr == "", done


def test_forks_while_threads_open_and_close_sessions():
    done = run_program("forks/while_sessions_open_and_close", PYTHONWARNINGS="ignore")
    assert done.stdout == f"{[0] * 20}\n" and done.stderr == "", done
