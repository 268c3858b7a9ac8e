"""`gt demo`: the command, its plot and its data set."""

import hashlib
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import gt
import numpy as np
import pytest
from gt.__main__ import _COMMANDS
from gt.__main__ import main as run_command
from gt.demo.__main__ import _check
from gt.demo.curve import ASCII, draw
from gt.demo.screen import Screen
from gt.demo.train import Result
from processes import (
    HONOUR_CTRL_C,
    embedded_only,
    one_engine_only,
    run_gt,
    run_program,
    unsharded_only,
)

pytestmark = [embedded_only, one_engine_only, unsharded_only]

#: The demo, with a handler of Ctrl-C also when the tests run in the background.
DEMO = HONOUR_CTRL_C + "import sys; from gt.demo.__main__ import main; sys.exit(main(sys.argv[1:]))"


def test_the_demo_trains_embedded_and_on_a_server_and_needs_only_numpy(tmp_path):
    others = tmp_path / "others"
    others.mkdir()
    for name in ("matplotlib", "sklearn", "tqdm"):
        (others / f"{name}.py").write_text(f"raise ImportError('{name} is hidden')")
    folder = tmp_path / "a folder with blanks"
    folder.mkdir(mode=0o500)
    paths = [str(others), str(Path(gt.__file__).parent.parent)]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "gt", "demo"],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("accuracy on the test set 9") == 2
    assert "2. On a server with 2 workers\n" in done.stdout
    assert "both curves are the same" in done.stdout
    assert not {"\r", "\x1b"} & set(done.stdout)
    assert not list(folder.iterdir())


def test_the_curves_are_saved_only_with_the_option(tmp_path):
    path = tmp_path / "curves.json"
    done = run_gt("demo", "--workers", "1", "--epochs", "20", "--save", str(path))
    assert done.returncode == 0, done.stderr
    saved = json.loads(path.read_text())
    assert list(saved) == ["in this process", "on the server"]
    here, there = saved.values()
    assert here["accuracy"] == there["accuracy"] >= 0.97
    assert np.allclose(here["losses"], there["losses"], rtol=0, atol=1e-6)
    assert len(here["losses"]) == 20

    done = run_gt("demo", "--save", str(tmp_path / "missing" / "curves.json"))
    assert done.returncode == 2 and "there is no folder" in done.stderr


def test_a_low_accuracy_is_a_failure():
    done = run_gt("demo", "--epochs", "1", "--no-server")
    assert done.returncode == 1
    assert "the accuracy in this process is " in done.stderr
    assert "expected 97% or more" in done.stderr


def test_curves_that_differ_are_a_failure():
    screen = Screen(io.StringIO())
    for losses in ([1.0, 0.5 + 2e-6], [1.0, float("nan")], [float("nan"), 0.5]):
        results = {"here": Result(0.98, [1.0, 0.5]), "there": Result(0.98, losses)}
        assert "the loss curves differ" in _check(results, screen)[0]
    results = {"here": Result(0.98, [1.0]), "there": Result(float("nan"), [1.0 + 1e-7])}
    assert "the accuracy there is nan" in _check(results, screen)[0]


def test_a_server_that_cannot_start_is_a_failure():
    done = run_gt("demo", "--epochs", "1", GT_KEY="no key")
    assert done.returncode == 1
    assert done.stderr.startswith("gt demo: the server exited at start with status 1: gt server")


@pytest.mark.parametrize(
    ("sent", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_the_demo_ends_its_processes(sent, status):
    command = [sys.executable, "-c", DEMO, "--epochs", "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as demo:
        while b"is ready after" not in (line := demo.stdout.readline()):
            assert line, demo.stderr.read()
        children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()
        handles = [os.pidfd_open(int(pid)) for pid in children]
        demo.send_signal(sent)
        demo.communicate(timeout=30)
        assert demo.returncode == status
        assert len(handles) == 3
        for handle in handles:
            ended, _, _ = select.select([handle], [], [], 30)
            assert ended
            os.close(handle)


def in_a_terminal(columns: int, **environment: str) -> str:
    """Run the demo without a server in a terminal; return its output."""
    terminal, end = pty.openpty()
    ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", 50, columns, 0, 0))
    env = {"TERM": "xterm", "PYTHONIOENCODING": "utf-8", **os.environ, **environment}
    for name in {"COLUMNS", "NO_COLOR"} - set(environment):
        env.pop(name, None)
    command = [sys.executable, "-m", "gt", "demo", "--no-server"]
    written = b""
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=env) as demo:
        os.close(end)
        while True:
            try:
                written += os.read(terminal, 4096)
            except OSError:  # The demo has closed its end.
                break
        assert demo.wait(30) == 0, written
    os.close(terminal)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 80])
def test_a_terminal_shows_a_progress_bar_and_lines_that_fit(columns):
    written = in_a_terminal(columns)
    assert "━ 30/30 loss 0.0" in written and "\x1b[1m1. In this process\x1b[0m" in written
    plain = written.replace("\x1b[1m", "").replace("\x1b[0m", "")
    commands = (
        "     less",
        "     /",
        '     gt.connect("',
    )  # Not wrapped, so that users can copy them.
    for line in plain.replace("\r", "\n").split("\n"):
        assert len(line) <= columns or line.startswith(commands), line


def test_no_color_and_other_encodings_leave_plain_text():
    assert "\x1b" not in in_a_terminal(80, NO_COLOR="1")
    written = in_a_terminal(80, PYTHONIOENCODING="ascii")
    assert written.isascii() and "# 30/30 loss" in written and " +---" in written
    assert not {"\r", "\x1b"} & set(in_a_terminal(80, TERM="dumb"))


def test_the_plot_of_two_curves():
    curves = {"here": [1.0, 0.1, 0.01], "there": [1.0, 0.01, 0.01]}
    assert draw(curves, width=20, height=5, characters=ASCII) == [
        "   1 +*o",
        "     | x*oo",
        " 0.1 +   xxoooo",
        "     |     x   ooo",
        "0.01 +      xxxxxx**",
        "     +--------------",
        "      epoch 1      3",
        "o here",
        "x there",
        "* here and there",
    ]


def test_the_plot_leaves_out_values_without_a_logarithm():
    nan = float("nan")
    assert draw({"loss": [nan, 0.0, -1.0]}) == ["(no loss that is positive and finite)"]
    flat = ["2 +ooooooooo", "  |", "  |", "  +---------"]
    lines = draw({"loss": [nan, 2.0, 2.0, 0.0]}, width=12, height=3, characters=ASCII)
    assert lines == [*flat, "   epoch 1 4", "o loss"]
    lines = draw({"loss": [2.0]}, width=12, height=3, characters=ASCII)
    assert lines == [*flat, "   epoch 1", "o loss"]


def test_a_time_limit_names_what_the_demo_waited_for():
    # As a process, since the time limit of a test uses the same timer.
    done = run_program("demo/time_limit")
    assert (done.stdout, done.stderr) == ("waited 0.01 s for the moon\n", "")


def test_the_digits():
    arrays = gt.demo.load_digits()
    assert [array.shape for array in arrays] == [(1438, 64), (1438,), (359, 64), (359,)]
    assert [array.dtype for array in arrays] == [np.float32, np.int64] * 2
    assert (arrays[0].min(), arrays[0].max()) == (0, 1)
    assert np.bincount(np.concatenate(arrays[1::2])).tolist() == [
        *(178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
    ]
    # The data of scikit-learn, in the order of `default_rng(0).permutation(1797)`.
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    assert digest[:16] == "39b5386261716e0d"

    first = gt.demo.load_digits(test=2)
    assert len(first[0]) == 1795 and (first[2] == arrays[2][:2]).all()
    with pytest.raises(ValueError, match="test=1798 given, expected 0 to 1797"):
        gt.demo.load_digits(test=1798)


@pytest.mark.parametrize("command", sorted(set(_COMMANDS) - {"version"}))
def test_each_command_has_a_program(command, capsys):
    with pytest.raises(SystemExit) as ended:
        run_command([command, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: gt {command} ")
