"""`gt top`, `gt trace`, `gt visualize` and `gt.status()`, as their users run them."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import gt
import numpy as np
import pytest
from processes import HEED_CTRL_C, WAIT_FOR_CHILD, cluster, embedded_only, run_python

pytestmark = [
    embedded_only,
    pytest.mark.skipif(bool(os.environ.get("GT_BACKEND")), reason="the same with every engine"),
]

LINE = re.compile(
    r"\d+\.\d{3}s \| #\d{4,} \| [A-Z_]+ *\| (CLIENT|WORKER) \S+ *\| \w+ *\| *\d+B \| ?"
    r"((\w+=\S+)( \w+=\S+)*)?$"
)

#: Computes until it is told to end.
LOOP = """
import gt, sys, threading
gt.gpu_workers({workers})
stop = []
threading.Thread(target=lambda: stop.append(sys.stdin.readline()), daemon=True).start()
x = gt.randn(300, 300)
(x + 1).sum().item()
print("at work", flush=True)
while not stop:
    (x @ x).relu().sum().item()
"""


def run(*command: str, timeout: float = 60, **environment: str):
    return subprocess.run(
        [sys.executable, "-m", "gt", *command],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
    )


@contextmanager
def program(code: str = LOOP.format(workers=1), **environment: str):
    """Run a program that is at work; give its process."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEED_CTRL_C + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        line = process.stdout.readline()
        assert line == "at work\n", (line, process.stderr.read())
        yield process
        _, errors = process.communicate("end\n", timeout=30)
        assert (process.returncode, errors) == (0, "")
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A trace of a program."""
    folder = tmp_path_factory.mktemp("traces")
    with program() as process:
        done = run("trace", "-s", "0.5", "--pid", str(process.pid), "--dir", str(folder))
    assert (done.returncode, done.stderr) == (0, ""), done
    (path,) = folder.iterdir()
    assert re.fullmatch(r"trace_\d{8}_\d{6}\.log", path.name)
    assert str(path) in done.stdout and "events of process" in done.stdout
    return path


def test_a_trace_has_the_format_of_the_log(log):
    lines = log.read_text().splitlines()
    assert len(lines) > 20
    for line in lines:
        assert LINE.fullmatch(line), line
    numbers = [int(line.split(" | ")[1][1:]) for line in lines]
    assert numbers == list(range(1, len(lines) + 1))
    times = [float(line.split("s | ")[0]) for line in lines]
    assert times == sorted(times)


def test_a_trace_tells_every_step_of_an_instruction(log):
    events = {line.split(" | ")[2].strip() for line in log.read_text().splitlines()}
    assert {"ISSUE", "RECV", "PLAN", "WORKER_SEND", "WORKER_RECV", "SEND"} <= events


def test_times_of_all_parts_are_on_one_clock(log):
    spans = re.findall(r"begin=(\S+) end=(\S+)", log.read_text())
    assert spans
    elapsed = [float(line.split("s | ")[0]) for line in log.read_text().splitlines()]
    for begin, end in spans:
        assert elapsed[0] - 1 < float(begin) <= float(end) <= elapsed[-1] + 0.001


@pytest.mark.parametrize("name", ["timeline.png", "timeline.svg", "timeline.json"])
def test_a_trace_is_drawn(log, tmp_path, name):
    path = tmp_path / name
    done = run("visualize", str(log), "-o", str(path), "--dpi", "60", "--width", "8")
    assert (done.returncode, done.stderr) == (0, ""), done
    assert str(path) in done.stdout and "lanes" in done.stdout
    if name.endswith("png"):
        import matplotlib.image

        pixels = matplotlib.image.imread(path)
        assert pixels.shape[:2] == (600, 480)
        assert np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0).shape[0] > 10
    elif name.endswith("svg"):
        import xml.etree.ElementTree as xml

        text = "".join(xml.parse(path).getroot().itertext())
        assert "matmul" in text or "hot path" in text
    else:
        events = json.loads(path.read_text())["traceEvents"]
        check_nesting(events)


def check_nesting(events):
    """Slices of a thread nest, and flows begin and end within slices."""
    threads = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    assert threads
    for slices in threads.values():
        open_until = []
        for item in sorted(slices, key=lambda item: (item["ts"], -item["dur"])):
            begin, end = item["ts"], item["ts"] + item["dur"]
            while open_until and open_until[-1] <= begin + 1e-3:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-3, item
            open_until.append(end)
    for event in events:
        if event["ph"] in "sf":
            slices = threads[event["pid"], event["tid"]]
            at = event["ts"]
            assert any(s["ts"] - 1e-3 <= at <= s["ts"] + s["dur"] + 1e-3 for s in slices), event


def test_moves_between_workers_are_flows(tmp_path):
    code = LOOP.format(workers=2).replace("(x @ x)", "(gt.signal.tensor(x, name='cut') @ x)")
    code = code.replace(
        "x = gt.randn",
        "from gt import ShardConfig, SignalConfig\n"
        "gt.register_config('cut', SignalConfig(shard=ShardConfig(axis=0)))\n"
        "x = gt.randn",
    )
    log, picture = tmp_path / "moves.log", tmp_path / "moves.json"
    with program(code) as process:
        done = run(
            "trace",
            "-s",
            "0.5",
            "--pid",
            str(process.pid),
            "--dir",
            str(tmp_path),
            "-o",
            "moves.log",
        )
    assert done.returncode == 0, done
    done = run("visualize", str(log), "-o", str(picture))
    assert done.returncode == 0, done
    events = json.loads(picture.read_text())["traceEvents"]
    check_nesting(events)
    begins = [event["id"] for event in events if event["ph"] == "s"]
    ends = [event["id"] for event in events if event["ph"] == "f"]
    assert begins and sorted(begins) == sorted(ends)


def test_the_instruction_log_is_drawn_too(tmp_path):
    log, picture = tmp_path / "gt.log", tmp_path / "gt.svg"
    done = run_python(
        "import gt; x = gt.randn(200, 200); (x @ x).relu().sum().item()",
        GT_INSTRUCTION_LOG=str(log),
    )
    assert done.returncode == 0, done
    done = run("visualize", str(log), "-o", str(picture))
    assert done.returncode == 0, done
    assert "matmul" in picture.read_text()


def test_a_log_without_times_is_drawn_from_what_was_sent_and_answered(tmp_path):
    log, picture = tmp_path / "old.log", tmp_path / "old.svg"
    log.write_text(
        "1.608s | #0011 | RECV | CLIENT 006b8b4568 | BinaryOp | 117B | result=2 op=add\n"
        "1.608s | #0012 | WORKER_SEND | WORKER auto_worker | WorkerBinaryOp | 152B | op=add\n"
        "1.613s | #0013 | WORKER_RECV | WORKER auto_worker | WorkerBinaryOp | 91B | success=True\n"
    )
    done = run("visualize", str(log), "-o", str(picture))
    assert done.returncode == 0, done
    assert "5.00 ms" in picture.read_text() and "auto_worker" in picture.read_text()


def test_a_log_that_was_cut_off_is_drawn_and_told(log, tmp_path):
    cut = tmp_path / "cut.log"
    cut.write_bytes(log.read_bytes()[:-60])
    done = run("visualize", str(cut), "-o", str(tmp_path / "cut.svg"))
    assert done.returncode == 0 and "cut off" in done.stderr, done


@pytest.mark.parametrize(
    "text,expected",
    [
        ("hello\nworld\n", "line 1: 'hello' is no time"),
        ("", "has no events"),
        ("1.000s | #0001 | RECV | CLIENT x | BinaryOp | 1B | \nnonsense\nmore\n", "line 2"),
        (
            "1.000s | #0001 | ISSUE | CLIENT x | Batch | 1B | begin=nan end=1\nmore\n",
            "line 1: begin=NaN",
        ),
        ("[TAPE 0.003s] RECV | 127.0.0.1 | BinaryOp | result=2\n", "line 1"),
    ],
)
def test_what_is_no_log_is_told_by_its_line(tmp_path, text, expected):
    path = tmp_path / "bad.log"
    path.write_text(text)
    done = run("visualize", str(path), "-o", str(tmp_path / "bad.png"))
    assert done.returncode == 1 and expected in done.stderr and "hint" in done.stderr, done
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "bad.png").exists()


def test_bad_options_and_paths_are_told(log, tmp_path):
    missing = run("visualize", str(tmp_path / "none.log"))
    assert missing.returncode == 1 and "none.log" in missing.stderr, missing
    unwritable = run("visualize", str(log), "-o", str(tmp_path / "no" / "x.png"))
    assert unwritable.returncode == 1 and "x.png" in unwritable.stderr, unwritable
    unknown = run("visualize", str(log), "-o", str(tmp_path / "picture.gif"))
    assert unknown.returncode == 1 and "--format" in unknown.stderr, unknown
    for option in (["--dpi", "0"], ["--width", "-1"], ["--height", "1e9"], ["--dpi", "nan"]):
        bad = run("visualize", str(log), "-o", str(tmp_path / "x.png"), *option)
        assert bad.returncode == 1 and "expected" in bad.stderr, bad


def test_a_picture_does_not_take_the_place_of_its_log(log, tmp_path):
    path = tmp_path / "trace.log"
    path.write_bytes(log.read_bytes())
    done = run("visualize", str(path), "-o", str(path), "--format", "svg")
    assert done.returncode == 1 and "is the log itself" in done.stderr, done
    assert path.read_bytes() == log.read_bytes()
    picture = tmp_path / "picture.svg"
    picture.write_text("the one before")
    done = run("visualize", str(tmp_path / "none.log"), "-o", str(picture))
    assert done.returncode == 1 and picture.read_text() == "the one before", done
    assert run("visualize", str(path), "-o", str(picture)).returncode == 0
    assert sorted(tmp_path.iterdir()) == [picture, path]


def test_what_is_told_of_a_foreign_file_is_fit_for_a_terminal(tmp_path):
    path = tmp_path / "foreign.log"
    path.write_bytes(b"\x1b[31m\x00\x7f|\n" * 3)
    done = run("visualize", str(path), "-o", str(tmp_path / "a.svg"))
    assert done.returncode == 1 and "line 1" in done.stderr, done
    assert all(letter.isprintable() or letter == "\n" for letter in done.stderr), done.stderr


def test_the_clocks_of_processes_agree(tmp_path):
    with cluster(1) as (address, _):
        port = address.split(":")[1]
        with program(LOOP.replace("gt.gpu_workers({workers})", f"gt.connect('{address}')")):
            done = run("trace", "-s", "1", "--port", port, "--dir", str(tmp_path), "-o", "t.log")
            assert (done.returncode, done.stderr) == (0, ""), done
    text = (tmp_path / "t.log").read_text()
    read = dict(re.findall(r"WorkerRead .* tensor=(\d+) .*end=(\S+)", text))
    sent = re.findall(r"(\S+)s \| #\d+ \| SEND .* tensor=(\d+) ", text)
    # The dispatcher passes on what a worker has read before: at once, or when it has its turn.
    late = sorted(float(at) - float(read[tensor]) for at, tensor in sent if tensor in read)
    assert len(late) > 5 and late[0] > -0.02 and late[len(late) // 2] < 0.5, late


def test_nobody_to_watch_is_told(tmp_path):
    # Another runtime folder: nothing of this user's is seen.
    for command in (["trace", "-s", "0"], ["top", "--once"]):
        done = run(*command, XDG_RUNTIME_DIR=str(tmp_path))
        assert done.returncode == 1 and "no dispatcher of yours runs" in done.stderr, done
        done = run(*command, "--port", "1")
        assert done.returncode == 1 and "nothing answers at localhost:1" in done.stderr, done
        done = run(*command, "--pid", "1")
        assert done.returncode == 1 and "process 1" in done.stderr, done
        done = run(*command, "--port", "99999")
        assert done.returncode == 2 and "99999" in done.stderr, done
    done = run("trace", "-s", "-1")
    assert done.returncode == 1 and "-1" in done.stderr, done
    for options in (["--pid", "-1"], ["--pid", "5000000000"], ["-n", "0"], ["-n", "9" * 20]):
        done = run("trace", *options)
        assert done.returncode == 2 and "expected 1 to" in done.stderr, done
    done = run("trace", "-s", "1e19", "--dir", str(tmp_path))
    assert done.returncode == 1 and "Traceback" not in done.stderr, done
    assert not list(tmp_path.glob("*.log"))
    done = run("top", "--ema-alpha", "2")
    assert done.returncode == 1 and "--ema-alpha" in done.stderr, done


def test_a_trace_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with program() as process:
        done = run("trace", "-s", "1", "--pid", str(process.pid), "--dir", str(tmp_path / "file"))
    assert done.returncode == 1 and str(tmp_path / "file") in done.stderr, done


def test_a_trace_ends_at_its_number_of_events(tmp_path):
    with program() as process:
        done = run(
            "trace",
            "-s",
            "30",
            "-n",
            "50",
            "--pid",
            str(process.pid),
            "--dir",
            str(tmp_path),
            "-o",
            "t.log",
        )
    assert done.returncode == 0 and "50 events" in done.stdout, done
    assert len((tmp_path / "t.log").read_text().splitlines()) == 50


def test_a_server_is_watched_with_all_its_parts(tmp_path):
    with cluster(2) as (address, _):
        port = address.split(":")[1]
        code = LOOP.replace("gt.gpu_workers({workers})", f"gt.connect('{address}')")
        with program(code):
            shown = run("top", "--once", "--json", "--port", port)
            assert shown.returncode == 0, shown
            done = run("trace", "-s", "0.5", "--port", port, "--dir", str(tmp_path), "-o", "t.log")
            assert (done.returncode, done.stderr) == (0, ""), done
        told = json.loads(shown.stdout)
        assert told["dispatcher"] == f"server {address}"
        assert sorted(worker["name"] for worker in told["workers"]) == ["w0", "w1"]
        (session,) = told["sessions"]
        assert session["rate"] > 0 and session["instructions"] > 0
        busy = [worker for worker in told["workers"] if worker["idle"] < 0.9]
        assert len(busy) == 1 and busy[0]["activities"]["matmul"] > 0.05
        text = (tmp_path / "t.log").read_text()
        assert "| ISSUE" in text and "| WORKER_RECV" in text
        assert "op=matmul" in text or "WorkerHotPath" in text
        spans = [
            (line.split(" | ")[2].strip(), float(begin), float(end))
            for line in text.splitlines()
            for begin, end in re.findall(r"begin=(\S+) end=(\S+)", line)
        ]
        # What the dispatcher has planned runs on the worker some milliseconds later.
        first_plan = min(begin for event, begin, _ in spans if event == "PLAN")
        last_run = max(end for event, _, end in spans if event == "WORKER_RECV")
        assert 0.2 < last_run - first_plan < 5


def test_the_signal_is_told_wherever_its_instructions_run(tmp_path):
    code = LOOP.format(workers=2).replace("while not stop:", SIGNAL_LOOP)
    with program(code) as process:
        done = run(
            "trace", "-s", "0.5", "--pid", str(process.pid), "--dir", str(tmp_path), "-o", "t.log"
        )
    assert (done.returncode, done.stderr) == (0, ""), done
    lines = [line for line in (tmp_path / "t.log").read_text().splitlines() if "op=exp" in line]
    ran = [line for line in lines if "WORKER_RECV" in line]
    assert ran and all("signal=part_one" in line for line in ran)


#: Instructions within a scope, and too few of a kind to become a hot path.
SIGNAL_LOOP = """
from gt import ShardConfig, SignalConfig
gt.register_config("part one", SignalConfig(ShardConfig(axis=0)))
while not stop:
    with gt.signal.context("part one"):
        y = gt.randn(64, 64).exp()
    y.sum().item()
    import time
    time.sleep(0.02)
while False:
""".strip()


def test_a_trace_of_one_that_ends_is_kept_and_told(tmp_path):
    with program() as process:
        command = ["trace", "-s", "60", "--pid", str(process.pid), "--dir", str(tmp_path)]
        tracer = subprocess.Popen(
            [sys.executable, "-m", "gt", *command, "-o", "t.log"],
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(1.5)
    _, errors = tracer.communicate(timeout=30)
    assert tracer.returncode == 0 and "ended early" in errors, errors
    assert "| WORKER_RECV" in (tmp_path / "t.log").read_text()


def test_a_watcher_that_speaks_otherwise_is_told_so():
    import socket
    import struct

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


def test_a_worker_at_long_instructions_is_not_idle():
    code = """
import gt, sys
gt.connect(sys.argv[1])
x = gt.randn(1500, 1500)
x.sum().item()
print("at work", flush=True)
while True:
    (x @ x).sum().item()
"""
    with cluster(1) as (address, _):
        command = [sys.executable, "-c", code, address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "at work\n"
            time.sleep(0.5)
            try:
                for _ in range(3):
                    done = run("top", "--once", "--json", "--port", address.split(":")[1])
                    (worker,) = json.loads(done.stdout)["workers"]
                    assert worker["idle"] < 0.5, worker
                    most = max(worker["activities"].items(), key=lambda of: of[1])
                    assert worker["untold"] > 0.3 or most[0] == "matmul", worker
            finally:
                process.kill()
                process.stdout.read()


def test_an_idle_server_is_shown_as_it_is():
    with cluster(1) as (address, _):
        for _ in range(2):
            done = run("top", "--once", "--port", address.split(":")[1])
            assert done.returncode == 0 and ", 0 instructions/s" in done.stdout, done
            assert "idle 100 %" in done.stdout, done


def test_the_only_program_is_found_and_of_several_one_is_chosen(tmp_path):
    runtime = {"XDG_RUNTIME_DIR": str(tmp_path)}
    with program(**runtime) as first:
        done = run("top", "--once", **runtime)
        assert done.returncode == 0 and f"process {first.pid}" in done.stdout, done
        assert "worker" in done.stdout and "session" in done.stdout
        with program(**runtime) as second:
            done = run("trace", "-s", "0", **runtime)
            assert done.returncode == 1, done
            assert str(first.pid) in done.stderr and str(second.pid) in done.stderr
            done = run("top", "--once", "--json", "--pid", str(second.pid), **runtime)
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
    done = run("top", "--once", **runtime)
    assert done.returncode == 1 and "no dispatcher of yours runs" in done.stderr, done
    assert not list((tmp_path / "gt").glob("*.sock"))


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
            before = json.loads(run("top", "--once", "--json", "--pid", str(process.pid)).stdout)
            time.sleep(0.5)
            after = json.loads(run("top", "--once", "--json", "--pid", str(process.pid)).stdout)
            assert after["sessions"][0]["instructions"] > before["sessions"][0]["instructions"]
        finally:
            watcher.kill()
            watcher.communicate()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_top_adapts_to_its_terminal_and_heeds_keys(tmp_path):
    """In a real terminal, at several sizes."""
    socket = str(tmp_path / "tmux")

    def tmux(*command: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", socket, *command], capture_output=True, text=True, timeout=20
        )
        return done.stdout

    def shows(wanted, refused: str = "\0") -> str:
        """Wait until the screen has what is wanted; give the screen."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            screen = tmux("capture-pane", "-p", "-t", "top")
            if wanted in screen and refused not in screen:
                return screen
            time.sleep(0.1)
        pytest.fail(f"{wanted!r} is not shown:\n{screen}")

    with program() as process:
        command = f"{sys.executable} -m gt top --pid {process.pid}; echo left $?; sleep 60"
        tmux("new-session", "-d", "-s", "top", "-x", "110", "-y", "24", command)
        try:
            screen = shows("auto_worker_0")
            assert f"process {process.pid}" in screen and "engine" in screen
            shows("█████")
            tmux("resize-window", "-t", "top", "-x", "60", "-y", "10")
            shows("auto_worker_0", refused="engine")
            tmux("resize-window", "-t", "top", "-x", "30", "-y", "5")
            shows("the terminal is 30 x")
            tmux("resize-window", "-t", "top", "-x", "80", "-y", "24")
            shows("auto_worker_0")
            tmux("send-keys", "-t", "top", "p")
            shows("paused")
            tmux("send-keys", "-t", "top", "p", "s")
            shows("sort by rate", refused="paused")
            tmux("send-keys", "-t", "top", "/", "nobody", "Enter")
            shows("filter 'nobody'", refused="auto_worker_0")
            tmux("send-keys", "-t", "top", "q")
            shows("left 0")
        finally:
            tmux("kill-server")


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


@pytest.mark.skipif(
    os.environ.get("GT_BACKEND") in ("pytorch", "jax"),
    reason="their own threads do not survive a fork",
)
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


def test_status_reads_well():
    x = gt.ones(100, 100)
    (x + 1).sum().item()
    status = gt.status()
    (worker, *_) = status.workers
    assert worker["engine"] and worker["tensors"] >= 1
    assert sum(worker["bytes"] for worker in status.workers) >= 40_000
    assert any(session["instructions"] > 0 for session in status.sessions)
    text = repr(status)
    assert text.startswith("this process") and "waits for" in text
    assert worker["name"] in text and worker["name"] in status._repr_html_()
    assert "<table>" in status._repr_html_()


#: Waits for a value that does not come.
WAITING = """
import gt, sys
gt.connect(sys.argv[1])
gt.ones(3).sum().item()
"""


def on_a_terminal(code: str, *args: str, until: str, seconds: float = 20) -> str:
    """Run code on a terminal until it says something; give all it has said."""
    import pty
    import select

    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *args], stdin=inside, stdout=inside, stderr=inside
    )
    os.close(inside)
    said = ""
    try:
        limit = time.monotonic() + seconds
        while until not in said and time.monotonic() < limit:
            if select.select([terminal], [], [], 0.1)[0]:
                said += os.read(terminal, 4096).decode()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return said


def test_a_long_wait_says_what_for_on_a_terminal():
    with cluster(0) as (address, _):
        said = on_a_terminal(WAITING, address, until="hint: python -m gt.worker")
        assert re.search(r"gt: waiting for [2-4] s: no worker is connected", said), said
    with cluster(1) as (address, processes):
        processes[1].send_signal(19)  # It stands still.
        try:
            said = on_a_terminal(WAITING, address, until="instructions to run")
        finally:
            processes[1].send_signal(18)
        assert re.search(r"gt: waiting for [2-4] s: a value of w0, which has \d+", said), said


#: One operation of many seconds, in this process.
LONG = """
import gt, threading, time
x = gt.randn(4000, 4000)
y = x
for _ in range(50):
    y = x @ y
threading.Thread(target=y.sum().item, daemon=True).start()
time.sleep(0.5)
begin = time.monotonic()
status = gt.status()
print("in time" if time.monotonic() - begin < 2 else "late", status.workers[0]["queued"] > 0)
y.sum().item()
"""


def test_a_long_wait_in_this_process_is_told_too():
    said = on_a_terminal(LONG, until="instructions to run")
    assert "in time True" in said, said
    assert re.search(r"gt: waiting for [2-4] s: a value of auto_worker_0, which has \d+", said), (
        said
    )


def test_a_long_wait_says_nothing_elsewhere():
    with cluster(0, "--worker-wait", "3") as (address, _):
        done = run_python(WAITING, address)
        assert done.returncode == 1 and "waiting for" not in done.stderr, done.stderr


def test_a_progress_bar_shows_values_without_holding_up_the_loop():
    import io

    drawn = io.StringIO()
    bar = gt.progress(range(5), every=0, file=drawn, mininterval=0)
    assert len(bar) == 5
    for step in bar:
        bar.show(loss=gt.tensor(step / 4.0, requires_grad=True) * 1, step=step)
    assert "5/5" in drawn.getvalue() and "loss=1" in drawn.getvalue()

    silent = gt.progress(range(3), disable=True)
    for _ in silent:
        silent.show(loss=gt.ones(3))  # No single number: fetching it would be an error.


def test_a_progress_bar_ends_with_the_last_values():
    import io

    drawn = io.StringIO()
    bar = gt.progress(range(5), file=drawn)
    for step in bar:
        bar.show(loss=step)
    assert "5/5" in drawn.getvalue() and "loss=4" in drawn.getvalue()
    bar = gt.progress(range(5), file=io.StringIO())
    for _ in bar:
        bar.show(loss=gt.ones(3))  # No single number: but a loop that is left fetches nothing.
        break


def test_a_progress_bar_says_what_it_needs():
    code = """
import sys
sys.modules["tqdm"] = sys.modules["tqdm.auto"] = None
import gt
try:
    gt.progress([])
except ImportError as error:
    print(error)
"""
    done = run_python(code)
    assert done.stdout == "gt.progress needs the package tqdm\n  hint: pip install tqdm\n", done
