"""Watchers of programs: whom they find, and that they hold up nobody."""

import json
import os
import socket
import struct
import subprocess
import sys
import time

from processes import (
    LOOP,
    WAIT_FOR_CHILD,
    embedded_only,
    one_engine_only,
    program,
    run_gt,
    run_python,
)

pytestmark = [embedded_only, one_engine_only]


def test_the_only_program_is_found_and_of_several_one_is_chosen(tmp_path):
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path)}
    with program(**runtime) as first:
        done = run_gt("top", "--once", **runtime)
        assert done.returncode == 0 and f"process {first.pid}" in done.stdout, done
        assert "worker" in done.stdout and "session" in done.stdout
        with program(**runtime) as second:
            done = run_gt("trace", "-s", "0", **runtime)
            assert done.returncode == 1, done
            assert str(first.pid) in done.stderr and str(second.pid) in done.stderr
            done = run_gt("top", "--once", "--json", "--pid", str(second.pid), **runtime)
            assert f"process {second.pid}" in json.loads(done.stdout)["dispatcher"]
    assert not list((tmp_path / "gt").glob("*.sock")), "programs leave no socket behind"


def test_a_program_that_was_killed_is_not_found(tmp_path):
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", LOOP.format(workers=1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **runtime},
    )
    process.stdout.readline()
    process.kill()
    process.communicate()
    assert list((tmp_path / "gt").glob("*.sock"))
    done = run_gt("top", "--once", **runtime)
    assert done.returncode == 1 and "no dispatcher of yours runs" in done.stderr, done
    assert not list((tmp_path / "gt").glob("*.sock"))


def test_nobody_to_watch_is_told(tmp_path):
    # Another runtime folder: nothing of this user's is seen.
    for command in (["trace", "-s", "0"], ["top", "--once"]):
        done = run_gt(*command, XDG_RUNTIME_DIR=str(tmp_path))
        assert done.returncode == 1 and "no dispatcher of yours runs" in done.stderr, done
        done = run_gt(*command, "--port", "1")
        assert done.returncode == 1 and "nothing answers at localhost:1" in done.stderr, done
        done = run_gt(*command, "--pid", "1")
        assert done.returncode == 1 and "process 1" in done.stderr, done
        done = run_gt(*command, "--port", "99999")
        assert done.returncode == 2 and "99999" in done.stderr, done
    done = run_gt("trace", "-s", "-1")
    assert done.returncode == 1 and "-1" in done.stderr, done
    for options in (["--pid", "-1"], ["--pid", "5000000000"], ["-n", "0"], ["-n", "9" * 20]):
        done = run_gt("trace", *options)
        assert done.returncode == 2 and "expected 1 to" in done.stderr, done
    done = run_gt("trace", "-s", "1e19", "--dir", str(tmp_path))
    assert done.returncode == 1 and "Traceback" not in done.stderr, done
    assert not list(tmp_path.glob("*.log"))
    done = run_gt("top", "--ema-alpha", "2")
    assert done.returncode == 1 and "--ema-alpha" in done.stderr, done


def test_a_watcher_that_speaks_otherwise_is_told_so():
    with program() as process:
        folder = os.environ.get("XDG_RUNTIME_DIR")
        folder = f"{folder}/gt" if folder else f"/tmp/gt-{os.getuid()}"
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(10)
            link.connect(f"{folder}/embedded-{process.pid}.sock")
            frame = b"\xff something else"
            link.sendall(struct.pack("<II", 1, len(frame)) + frame)
            told = b""
            while part := link.recv(4096):
                told += part
        assert b"install the same version of gt on both sides" in told, told


def test_a_watcher_that_does_not_read_stops_nobody():
    with program() as process:
        watcher = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "gt",
                "trace",
                "-s",
                "60",
                "--pid",
                str(process.pid),
                "-o",
                os.devnull,
                "--dir",
                "/",
            ],
            stdout=subprocess.PIPE,
        )
        time.sleep(1)
        watcher.send_signal(19)  # It stands still.
        try:
            before = json.loads(run_gt("top", "--once", "--json", "--pid", str(process.pid)).stdout)
            time.sleep(0.5)
            after = json.loads(run_gt("top", "--once", "--json", "--pid", str(process.pid)).stdout)
            assert after["sessions"][0]["instructions"] > before["sessions"][0]["instructions"]
        finally:
            watcher.kill()
            watcher.communicate()


def test_a_forked_child_is_seen_for_itself(tmp_path):
    done = run_python(
        "import gt, os, subprocess, sys\n"
        "def seen():\n"
        "    command = [sys.executable, '-m', 'gt', 'top', '--once', '--pid', str(os.getpid())]\n"
        "    return subprocess.run(command, capture_output=True, text=True).returncode\n"
        "x = gt.randn(300, 300)\n"
        "(x @ x).sum().item()\n"
        "codes = [seen()]\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    (x @ x).sum().item()\n"
        "    os._exit(seen())\n"
        "codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "codes.append(seen())\n"
        "print(codes)\n",
        XDG_RUNTIME_DIR=str(tmp_path),
    )
    assert done.stdout == "[0, 0, 0]\n", done


def test_forks_while_somebody_watches(tmp_path):
    done = run_python(
        "import gt, os, signal, subprocess, sys, threading, time\n"
        "command = [sys.executable, '-m', 'gt', 'trace', '-s', '60', '--pid', str(os.getpid())]\n"
        "command += ['--dir', sys.argv[1]]\n"
        "x = gt.ones(100)\n"
        "x.sum().item()\n"
        "watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL)\n"
        "time.sleep(1)\n"
        "stop = False\n"
        "def work():\n"
        "    y = gt.ones(100)\n"
        "    while not stop: y = y * 0.5; y.sum().item()\n"
        f"{WAIT_FOR_CHILD}"
        "def compute(): return (gt.ones(3) * 2).tolist() != [2, 2, 2]\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "codes = []\n"
        "for _ in range(20):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        grandchild = os.fork()\n"
        "        if grandchild == 0: os._exit(compute())\n"
        "        os._exit(compute() or wait(grandchild) != 0)\n"
        "    codes.append(wait(child))\n"
        "    if any(codes): break\n"
        "stop = True\n"
        "thread.join()\n"
        "print(codes, watcher.poll())\n"
        "watcher.terminate(); watcher.wait()\n",
        str(tmp_path),
        PYTHONWARNINGS="ignore",  # newer Pythons warn of such forks
    )
    assert done.stdout == f"{[0] * 20} None\n", done
