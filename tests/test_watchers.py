"""Watchers of programs: they find programs, and never delay them."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

from processes import (
    embedded_only,
    one_engine_only,
    program,
    run_gt,
    run_program,
    start_program,
)

pytestmark = [embedded_only, one_engine_only]


def test_a_single_program_is_found_and_one_of_several_must_be_named(tmp_path):
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
    process = start_program("watching/loop", **runtime)
    process.stdout.readline()
    process.kill()
    process.communicate()
    assert list((tmp_path / "gt").glob("*.sock"))
    done = run_gt("top", "--once", **runtime)
    assert done.returncode == 1 and "no dispatcher of yours runs" in done.stderr, done
    assert not list((tmp_path / "gt").glob("*.sock"))


def test_a_missing_program_is_reported(tmp_path):
    # In an empty runtime folder no program of this user is found.
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


def test_a_watcher_with_another_protocol_receives_an_error():
    def answer(process, frame: bytes) -> bytes:
        folder = os.environ.get("XDG_RUNTIME_DIR")
        folder = f"{folder}/gt" if folder else f"/tmp/gt-{os.getuid()}"
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(10)
            link.connect(f"{folder}/embedded-{process.pid}.sock")
            link.sendall(struct.pack("<II", 1, len(frame)) + frame)
            return b"".join(iter(lambda: link.recv(4096), b""))

    with program() as process:
        got = answer(process, b"\xff something else")
        assert b"install the same version of gt on both sides" in got, got
        # The first fields of a hello are frozen: see gt-ir/src/message/protocol.rs.
        hello = b"GT\xff\x01" + struct.pack("<IQ", 1 << 31, 7) + b"\x059.9.9" + b"\x02 unknown"
        got = answer(process, hello)
        assert b"the program is older: install gt 9.9.9 there" in got, got


def test_a_watcher_that_does_not_read_delays_no_program():
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
        watcher.send_signal(signal.SIGSTOP)
        try:
            before = json.loads(run_gt("top", "--once", "--json", "--pid", str(process.pid)).stdout)
            time.sleep(0.5)
            after = json.loads(run_gt("top", "--once", "--json", "--pid", str(process.pid)).stdout)
            assert after["sessions"][0]["instructions"] > before["sessions"][0]["instructions"]
        finally:
            watcher.kill()
            watcher.communicate()


def test_a_forked_child_is_found_as_its_own_program(tmp_path):
    done = run_program("forks/watched_by_itself", XDG_RUNTIME_DIR=str(tmp_path))
    assert done.stdout == "[0, 0, 0]\n", done


def test_forks_while_a_watcher_is_connected(tmp_path):
    done = run_program("forks/while_watched", tmp_path, PYTHONWARNINGS="ignore")
    assert done.stdout == f"{[0] * 20} None\n", done
