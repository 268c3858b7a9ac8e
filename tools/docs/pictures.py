"""Draw the pictures of the documentation: `make pictures`.

A server, two workers and some programs run; a screenshot of `gt top` is taken in tmux, and traces
are drawn.
"""

import io
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import animation
from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
PORT = "23457"
TOP_SIZE = (96, 13)

#: A program that trains a network on both workers, each with half of the batch.
TRAINING = f"""
import gt
from gt import ShardConfig, SignalConfig, nn

gt.connect("localhost:{PORT}")
gt.register_config("batch", SignalConfig(ShardConfig(axis=0)))
gt.register_config("copies", SignalConfig(ShardConfig(replicated=True)))
with gt.signal.context("copies"):
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 64))
optimizer = gt.optim.AdamW(model.parameters(), lr=0.01)
with gt.signal.context("batch"):
    x, y = gt.randn(512, 256), gt.randn(512, 64)
step = 0
while True:
    with gt.signal.context("batch"):
        loss = nn.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step % 10 == 0:
        loss.item()
"""

#: A program of another user, with pauses.
TRYING = f"""
import time
import gt

gt.connect("localhost:{PORT}")
x = gt.randn(400, 400)
while True:
    for _ in range(5):
        weights = ((x @ x.T) / 20).softmax(-1)
        (weights @ x).sum(0).tolist()
    time.sleep(0.05)
"""


def start(*arguments: str, user: str = "ada") -> subprocess.Popen:
    """Start Python with arguments as a user of this name, without output."""
    quiet, environment = subprocess.DEVNULL, {**os.environ, "USER": user, "LOGNAME": user}
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)


def without_host(text: str) -> str:
    """Return a text in which this machine has another name, of the same width."""
    host = socket.gethostname()
    return text.replace(f"@{host}", "@" + "pc".ljust(len(host)))


def gt(*arguments: str) -> subprocess.Popen:
    """Start one of GT's commands, without output."""
    return start("-m", "gt", *arguments)


def photograph(
    file: str, title: str, size: tuple[int, int], command: list[str], seconds: float
) -> None:
    """Save a screenshot of a command in a terminal after some seconds."""
    width, height = size

    def tmux(*arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", "gt-pictures", *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout

    tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), *command)
    try:
        time.sleep(seconds)
        screen = tmux("capture-pane", "-e", "-p")
    finally:
        tmux("kill-server")
    console = Console(record=True, width=width, height=height, file=io.StringIO())
    console.print(Text.from_ansi(without_host(screen)), end="")
    drawn = console.export_svg(title=title)
    # Remove the fonts that would be loaded from the network.
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    drawn = drawn.replace("Fira Code, monospace", "monospace")
    (FOLDER / f"{file}.svg").write_text(drawn)


def main() -> int:
    """Draw the pictures; return the exit status."""
    FOLDER.mkdir(exist_ok=True)
    with ExitStack() as stack, TemporaryDirectory() as folder:

        def keep(process: subprocess.Popen) -> None:
            stack.callback(process.communicate)
            stack.callback(process.terminate)

        keep(gt("server", "-p", PORT))
        time.sleep(1)
        for name in ("gpu0", "gpu1"):
            keep(gt("worker", "-p", PORT, "--id", name, "--threads", "1"))
        time.sleep(1)

        def run(name: str, user: str, program: str) -> subprocess.Popen:
            Path(folder, name).write_text(program)
            return start(f"{folder}/{name}", user=user)

        keep(run("train.py", "ada", TRAINING))
        time.sleep(3)
        # Programs need a moment to start, and so does the recording.
        second, third = (time.time() + 2.5 + later for later in animation.BEGIN)
        keep(run("explore.py", "ben", animation.at(second, TRYING)))
        multiplying = animation.MULTIPLYING.format(port=PORT)
        eve = run("multiply.py", "eve", animation.at(third, multiplying))
        time.sleep(2)
        log = f"{folder}/sharing.log"
        trace = ["trace", "-s", str(animation.RECORDED + 1), "-n", "1000000", "--port", PORT]
        assert gt(*trace, "-o", log).wait() == 0
        eve.terminate()
        eve.communicate()
        animation.draw_sharing(Path(log), FOLDER / "sharing.svg")
        time.sleep(1)
        top = [sys.executable, "-m", "gt", "top", "--port", PORT]
        photograph("top", f"gt top --port {PORT}", TOP_SIZE, top, 6)
        for name, seconds, events in (("timeline", "0.05", "10000"), ("overview", "1", "1000000")):
            log = f"{folder}/{name}.log"
            trace = ["trace", "-s", seconds, "-n", events, "--port", PORT, "-o", log]
            assert gt(*trace).wait() == 0
            Path(log).write_text(without_host(Path(log).read_text()))
            size = ["--width", "12", "--height", "5", "--dpi", "100"]
            picture = str(FOLDER / f"{name}.png")
            assert gt("visualize", log, "-o", picture, *size).wait() == 0
    print(f"{', '.join(sorted(path.name for path in FOLDER.iterdir()))} in {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
