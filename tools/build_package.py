"""Build GT into the virtual environment `.venv`: `make build` runs this.

Each stage prints one line; long stages show their progress. If a stage fails, the end of its
program's output is printed, followed by one line of advice.
"""

import argparse
import fcntl
import io
import os
import re
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"

#: The packages for building and running; those for tests and examples are in pyproject.toml.
TOOLS = ["maturin>=1.9,<2", "numpy>=1.24", "tqdm"]

#: Seconds between two lines of progress if the output is not a terminal.
PACE = 15

#: Cargo's progress: `Building [====>  ] 12/301: faer, gt-ir`.
PROGRESS = re.compile(r"Building \[[=> ]*\] (\d+)/(\d+)(?:: (.*))?")

#: Messages of programs that have no network, or whose proxy refuses the connection.
NO_NETWORK = re.compile(
    r"(?i)could not resolve|dns error|name resolution|network is unreachable|connection refused"
    r"|timed? ?out|failed to connect|newconnectionerror|proxyerror|couldn't connect"
    r"|no route to host|spurious network"
    r"|failed to download|could not find a version"
)


class Failed(Exception):
    """A stage has failed: advice, and the last lines of its program's output."""

    def __init__(self, advice: str, lines=()):
        super().__init__(advice)
        self.lines = list(lines)


class Stage:
    """One line of output: the title of a stage, its progress, and its duration."""

    def __init__(self, title: str):
        self.title = title
        self.began = time.monotonic()
        self.told = self.began
        self.is_terminal = sys.stdout.isatty()
        if self.is_terminal:
            print(f"  {title} ...", end="", flush=True)

    def show(self, text: str) -> None:
        """Show the stage's progress: at once on a terminal, every `PACE` seconds elsewhere."""
        now = time.monotonic()
        line = f"  {self.title}: {text}, {now - self.began:.0f} s"
        if self.is_terminal:
            width = os.get_terminal_size().columns - 1
            print(f"\r\033[K{line[:width]}", end="", flush=True)
        elif now - self.told >= PACE:
            self.told = now
            print(line, flush=True)

    def done(self, result: str = "") -> None:
        """End the line."""
        seconds = time.monotonic() - self.began
        start = "\r\033[K" if self.is_terminal else ""
        print(f"{start}  {self.title}: {result or 'done'}, {seconds:.1f} s", flush=True)


def take(raw: bytes, stage: Stage, lines: deque) -> None:
    """Show a line of cargo's progress; add any other line to `lines`."""
    line = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", raw.decode(errors="replace")).strip()
    if found := PROGRESS.search(line):
        done, total, names = found.groups()
        stage.show(f"{done} of {total} crates ({names or 'linking'})")
    elif line:
        lines.append(line)


def follow(stage: Stage, command: list[str], environment: dict[str, str]) -> deque:
    """Run a program and show its progress. Return its last lines.

    Raises:
        Failed: The program fails.
    """
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert isinstance(process.stdout, io.BufferedReader)
    lines: deque = deque(maxlen=60)
    rest = b""
    with process:
        # Progress ends with a carriage return, everything else with a newline.
        while chunk := process.stdout.read1(1 << 16):
            *whole, rest = re.split(rb"[\r\n]", rest + chunk)
            for line in whole:
                take(line, stage, lines)
        take(rest, stage, lines)
    if process.returncode:
        raise Failed(f"{command[0]} {command[1]} failed", lines)
    return lines


def download_advice(what: str, lines) -> str:
    """Return advice for a failed download."""
    if not NO_NETWORK.search("\n".join(lines)):
        return f"{what} could not be downloaded: see the reason above"
    proxies = [name for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY") if os.environ.get(name)]
    if proxies:
        given = f"{proxies[0]}={os.environ[proxies[0]]}"
        return f"{what} could not be downloaded through {given}: correct the proxy, or unset it"
    return (
        f"{what} could not be downloaded: there is no network, or it needs a proxy "
        "(HTTPS_PROXY=http://host:port), or a mirror in the settings of cargo and pip"
    )


def make_environment() -> None:
    """Create `.venv` with the tools that the build needs."""
    stamp = VENV / ".tools"
    wanted = "\n".join(TOOLS)
    if stamp.exists() and stamp.read_text() == wanted:
        return
    stage = Stage("virtual environment and tools")
    if not (BIN / "python").exists():
        follow(stage, [sys.executable, "-m", "venv", str(VENV)], dict(os.environ))
    command = [str(BIN / "python"), "-m", "pip", "install", "--quiet", "--retries", "1"]
    try:
        follow(stage, [*command, "--disable-pip-version-check", *TOOLS], dict(os.environ))
    except Failed as error:
        raise Failed(download_advice("Python packages", error.lines), error.lines) from None
    stamp.write_text(wanted)
    stage.done()


def fetch_sources() -> None:
    """Download the sources of all crates."""
    stage = Stage("sources of the libraries")
    environment = {"CARGO_NET_RETRY": "1", "CARGO_HTTP_TIMEOUT": "20", **os.environ}
    try:
        follow(stage, ["cargo", "fetch"], environment)
    except Failed as error:
        raise Failed(download_advice("crates", error.lines), error.lines) from None
    stage.done()


def compile_library(profile: str) -> None:
    """Compile the module, and install the package in editable form."""
    stage = Stage("compile and install")
    environment = {
        **os.environ,
        "VIRTUAL_ENV": str(VENV),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "CARGO_TERM_PROGRESS_WHEN": "always",
        "CARGO_TERM_PROGRESS_WIDTH": "120",
        # pip would report each extra that is not installed, and maturin each step.
        "PIP_QUIET": "2",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    command = [str(BIN / "maturin"), "develop", "--profile", profile]
    try:
        follow(stage, command, environment)
    except Failed as error:
        lines = "\n".join(error.lines)
        advice = "the compilation failed: see the reason above"
        if "No space left on device" in lines:
            advice = "the disk is full: make room, or set CARGO_TARGET_DIR to another disk"
        elif "signal: 9" in lines:
            advice = "a compiler was killed: 3 GB of free memory are needed, or CARGO_BUILD_JOBS=1"
        raise Failed(advice, error.lines) from None
    stage.done()


def lock():
    """Return the lock of this checkout's build.

    Raises:
        Failed: another build holds it.
    """
    path = ROOT / ".build.lock"
    file = path.open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        who = file.read().strip() or "another process"
        file.close()
        raise Failed(f"{who} is building in this checkout: wait until it is done") from None
    file.truncate(0)
    file.write(f"process {os.getpid()}")
    file.flush()
    return file


def stamp(profile: str, began: float) -> None:
    """Write the stamp that names the installed profile for make, dated to the start of the build.

    Files that were edited during the build are newer, so make builds again.
    """
    for other in VENV.glob(".installed-*"):
        other.unlink()
    path = VENV / f".installed-{profile}"
    path.touch()
    os.utime(path, (began, began))


def main() -> int:
    """Build; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--profile", default="release", help="cargo's profile (default: release)")
    parser.add_argument(
        "--tools", action="store_true", help="only create the environment, compile nothing"
    )
    args = parser.parse_args()
    try:
        held = lock()
        began = time.time()
        make_environment()
        if not args.tools:
            fetch_sources()
            compile_library(args.profile)
            stamp(args.profile, began)
        held.close()
    except Failed as error:
        print(file=sys.stdout, flush=True)
        print("\n".join(error.lines[-40:]), file=sys.stderr)
        print(f"cannot build: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the next build continues from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
