"""How sessions end: with their process, with their last tensor, and in forks."""

import os

import pytest
from processes import embedded_only, run_python

pytestmark = embedded_only


def test_after_the_end_a_tensor_is_an_error():
    done = run_python(
        "import gt, threading\n"
        "gt.disconnect()\n"  # nothing is there to end
        "gt.ones(1).item()\n"
        "gt.disconnect()\n"
        "gt.disconnect()\n"
        "gt.synchronize()\n"
        "def tell():\n"
        "    try: gt.ones(1)\n"
        "    except ConnectionError as error: print(str(error))\n"
        "    gt.disconnect()\n"
        "tell()\n"
        "thread = threading.Thread(target=tell); thread.start(); thread.join()\n"
        "with gt.Session(): print(gt.ones(1).tolist())\n"
        "gt.gpu_workers(2)\n"
        "print(gt.ones(1).tolist(), gt.current_session())\n"
    )
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
def test_every_ending_is_silent(ending, tmp_path):
    code = "import atexit, gt, sys, threading, time\ngt.ones(3).tolist()\n"
    done = run_python(code + ending, TMPDIR=str(tmp_path), HOME=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [file for _, _, files in os.walk(tmp_path) for file in files] == []


def test_the_last_tensor_ends_a_session_whose_engine_is_in_python():
    """Its worker may be at work then, and need Python's lock to come to an end."""
    done = run_python(
        "import gt\n"
        "for _ in range(20):\n"
        "    session = gt.Session()\n"
        "    with session.use():\n"
        "        x = gt.ones(300, 300)\n"
        "        for _ in range(20): x = x @ x * 0.001\n"
        "    del session\n"
        "    del x\n"
        "print('done')\n",
        GT_BACKEND="numpy",
    )
    assert (done.stdout, done.stderr) == ("done\n", ""), done


def test_what_computes_after_the_end_is_told():
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
    """The child has a copy of the session, and ending it is nothing to the parent."""
    done = run_python(
        "import gt, os, threading\n"
        "def child(act):\n"
        "    process = os.fork()\n"
        "    if process == 0: act(); os._exit(0)\n"
        "    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])\n"
        "def check():\n"
        "    print((x + 1).tolist(), gt.ones(1).tolist(), flush=True)\n"
        "    session.close()\n"
        "    try: gt.ones(1)\n"
        "    except ConnectionError: print('closed', flush=True)\n"
        "with gt.Session() as session:\n"
        "    x = gt.ones(2)\n"
        "    print(child(check), flush=True)\n"
        "    def work():\n"
        "        with gt.Session(): print(child(lambda: print(gt.ones(1).tolist(), flush=True)))\n"
        "    thread = threading.Thread(target=work); thread.start(); thread.join()\n"
        "    print((x + 2).tolist())\n"
        "print(session.closed)\n",
        PYTHONWARNINGS="ignore",
    )
    expected = ["[2.0, 2.0] [1.0]", "closed", "0", "[1.0]", "0", "[3.0, 3.0]", "True"]
    assert done.stdout.splitlines() == expected and done.stderr == "", done


def test_forks_while_others_open_and_close_sessions():
    done = run_python(
        "import gt, os, signal, threading, time\n"
        "from processes import WAIT_FOR_CHILD\n"
        "exec(WAIT_FOR_CHILD)\n"
        "stop = False\n"
        "def work():\n"
        "    while not stop:\n"
        "        with gt.Session(): gt.ones(100).sum().item()\n"
        "threads = [threading.Thread(target=work) for _ in range(2)]\n"
        "for thread in threads: thread.start()\n"
        "codes = []\n"
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        with gt.Session(): os._exit((gt.ones(3) * 2).tolist() != [2, 2, 2])\n"
        "    codes.append(wait(child))\n"
        "    if any(codes): break\n"
        "stop = True\n"
        "for thread in threads: thread.join()\n"
        "print(codes)\n",
        PYTHONWARNINGS="ignore",
        PYTHONPATH=os.path.dirname(__file__),
    )
    assert done.stdout == f"{[0] * 20}\n" and done.stderr == "", done
