"""Sessions are named by program, user, host and number, wherever people see them."""

import builtins
import json
import os
import re
import shlex
import subprocess
import sys
import time
import types

import gt
import pytest
from gt.session.program import program_name
from processes import (
    PROGRAMS,
    cluster,
    embedded_only,
    one_engine_only,
    program,
    run_gt,
    run_program,
    run_python,
)

pytestmark = [embedded_only, one_engine_only]

#: The user and the host of a name.
WHO = r"\S+@[^\s.]+"


@pytest.fixture(scope="module")
def served():
    with cluster(1) as (address, _):
        yield address


def named(done: subprocess.CompletedProcess) -> list[str]:
    """Return the name of a program's session and that of the program, as it has printed them."""
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.splitlines()


def test_a_session_has_the_name_of_its_script(served):
    for where in (served, "-"):
        name, of = named(run_program("sessions/named", where))
        assert of == "named.py"
        assert re.fullmatch(rf"named\.py {WHO} #\d+", name), name


def test_a_session_has_the_name_that_the_user_chooses(served):
    for where in (served, "-"):
        name, of = named(run_program("sessions/named", where, "run 12"))
        assert of == "run 12"
        assert re.fullmatch(rf"run 12 {WHO} #\d+", name), name


def test_other_ways_to_run_a_program_have_names(served):
    code = f"import gt; gt.connect({served!r}); print(gt.current_session().name)"
    assert re.fullmatch(rf"-c {WHO} #\d+\n", run_python(code).stdout)
    from_input = subprocess.run(
        [sys.executable, "-"], input=code, capture_output=True, text=True, timeout=60
    )
    assert re.fullmatch(rf"python {WHO} #\d+\n", from_input.stdout), from_input
    of_module = subprocess.run(
        [sys.executable, "-m", "sessions.named", served],
        cwd=PROGRAMS,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert named(of_module)[1] == "sessions.named"


def test_a_notebook_has_the_name_of_its_file(monkeypatch):
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(builtins, "get_ipython", lambda: None, raising=False)
    assert program_name() == "python", "IPython's terminal"
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    assert program_name() == "notebook"
    monkeypatch.setenv("JPY_SESSION_NAME", "console-1-2f0a")
    assert program_name() == "notebook"
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ada/work/train.ipynb")
    assert program_name() == "train.ipynb"
    monkeypatch.setattr(main, "__vsc_ipynb_file__", "/home/ada/lab.ipynb", raising=False)
    assert program_name() == "lab.ipynb"


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        ("", ValueError, "the name of the session is '', which is empty"),
        ("x" * 65, ValueError, "has 65 characters, 64 are allowed"),
        ("a\nb", ValueError, r"has the character '\n'"),
        ("\u202eb", ValueError, r"has the character '\u{202e}'"),
        ("a|b", ValueError, "has the character '|'"),
        (12, TypeError, "name is 12, expected a string such as 'run-12'"),
    ],
)
def test_a_bad_name_is_an_error(served, name, error, reason):
    for function, call in (("connect", gt.connect), ("Session", gt.Session)):
        with pytest.raises(error, match=re.escape(reason)) as raised:
            call(served, name=name)
        assert str(raised.value).startswith(f"{function}: "), raised.value


def test_top_trace_and_log_show_names_operations_and_lines(tmp_path):
    log = tmp_path / "server.log"
    with cluster(1, "--log-file", str(log)) as (address, _):
        port = address.split(":")[1]
        with program(address, name="watching/hot_loop"):
            until = time.monotonic() + 20
            waits = ""
            while time.monotonic() < until and "hot_loop.py" not in waits:
                shown = json.loads(run_gt("top", "--once", "--json", "--port", port).stdout)
                (session,) = shown["sessions"]
                waits = session["waits_for"]
            assert re.match(r"sum at hot_loop\.py:\d+, on w0, \d", waits), waits
            assert re.fullmatch(rf"hot_loop\.py {WHO} #1", session["name"]), session
            text = run_gt("top", "--once", "--port", port).stdout
            assert f"session {session['name']}: " in text, text
            options = ("--port", port, "--dir", str(tmp_path), "-o", "t.log")
            assert run_gt("trace", "-s", "1", *options).returncode == 0
        drawn = run_gt("visualize", str(tmp_path / "t.log"), "-o", str(tmp_path / "t.json"))
        assert drawn.returncode == 0, drawn
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    rows = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert session["name"] in rows, rows
    spans = [event["args"] for event in events if event.get("cat") == "hot path"]
    assert spans
    for span in spans:
        # Long lists end with the number of the others.
        steps, lines = (re.sub(r",\+\d+$", "", span[of]).split(",") for of in ("steps", "lines"))
        assert set(steps) <= {"matmul", "relu", "mul", "sum", "sub"}, span
        assert all(re.fullmatch(r"hot_loop\.py:\d+", line) for line in lines), span
        assert span["session"] == session["name"], span
    connected = [line for line in log.read_text().splitlines() if "| CONNECT" in line]
    assert f"CLIENT {session['name'].replace(' ', '/')}" in connected[0], connected


def test_the_memory_of_a_session_that_left_is_not_shown(tmp_path):
    # With a log, workers report what they hold although no watcher is connected.
    with cluster(1, "--log-file", str(tmp_path / "log")) as (address, _):
        port = address.split(":")[1]

        def held() -> tuple[int, int]:
            shown = json.loads(run_gt("top", "--once", "--json", "--port", port).stdout)
            (worker,) = shown["workers"]
            return worker["bytes"] + worker["snapshot_bytes"], len(shown["sessions"])

        hold = (
            f"import gt, sys\ngt.connect({address!r})\nx = gt.ones(1000, 1000)\n"
            "print(x.sum().item(), flush=True)\nsys.stdin.readline()\n"
        )
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", hold], text=True, **pipes) as process:
            assert process.stdout.readline() == "1000000.0\n"
            assert held()[0] >= 4_000_000
            process.kill()
        until = time.monotonic() + 20
        while time.monotonic() < until and held() != (0, 0):
            time.sleep(0.1)
        assert held() == (0, 0)


def test_a_name_and_its_number_survive_a_restart_of_the_server(tmp_path):
    state = ("--state", str(tmp_path / "state"), "--worker-wait", "20")
    with cluster(1, *state) as (address, processes):
        port = address.split(":")[1]
        with gt.Session(address), gt.Session(address, name="run-12") as session:
            assert re.fullmatch(rf"run-12 {WHO} #2", session.name), session.name
            x = gt.ones(3) + 1
            assert x.sum().item() == 6.0
            processes[0].kill()
            processes[0].communicate()
            command = [sys.executable, "-m", "gt.server", "-p", port, *state]
            processes[0] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert processes[0].stdout.readline().startswith("gt server: ")
            assert (x + 1).sum().item() == 9.0
            assert session.name in {one["name"] for one in gt.status().sessions}


def test_server_and_worker_print_how_to_connect(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "GT_KEY"}

    def start(*command: str, lines: int) -> tuple[subprocess.Popen, list[str]]:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        return process, [process.stdout.readline().rstrip("\n") for _ in range(lines)]

    gt_command = [sys.executable, "-m", "gt"]
    server = worker = None
    try:
        address = f"ipc://{tmp_path}/socket"
        server, told = start(*gt_command, "server", "--ipc", f"{tmp_path}/socket", lines=4)
        assert told[0] == f"gt server: listening at {address}"
        assert told[1] == f'  a program:  gt.connect("{address}")'
        command = re.fullmatch(r"  a worker:   gt (worker .*)", told[2])[1]
        worker, has = start(
            *gt_command, *shlex.split(command), "--memory", "2GB", "--threads", "1", lines=2
        )
        assert re.fullmatch(r"gt worker: \S+ serves ipc://.*", has[0]), has
        assert re.fullmatch(r"  native \S+ on \S+ \S+, 1 thread, 2\.0 GB for tensors", has[1]), has
        call = told[1].split(":  ")[1]
        assert run_python(f"import gt\n{call}\nprint(gt.ones(2).sum().item())").stdout == "2.0\n"
        watcher = re.fullmatch(r"  a watcher:  gt (top .*)", told[3])[1]
        assert "worker " in run_gt(*shlex.split(watcher), "--once").stdout
    finally:
        for process in filter(None, (worker, server)):
            process.terminate()
            process.communicate(timeout=20)
