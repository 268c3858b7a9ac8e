"""Install the wheel in `dist/` into empty environments and test it: `make test-wheel` runs this.

Every Python from 3.10 on that is installed is tested with NumPy 1.26, the first NumPy 2 and the
newest NumPy, if it has wheels of these. Programs run without a compiler in their path, without a
checkout, and, if the system allows network namespaces, without a network.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: The releases of NumPy to test with; those without a wheel for a Python are skipped.
NUMPY = ["numpy==1.26.*", "numpy==2.0.*", "numpy"]

#: The longest time of a program in seconds.
SECONDS = 120

#: A client that computes a product on the server whose address it is given, and prints its status.
CLIENT = """
import sys, gt, numpy
gt.connect(sys.argv[1])
x = gt.from_numpy(numpy.ones((3, 4), dtype="float32"))
assert (x @ x.T).numpy().tolist() == [[4.0] * 3] * 3
print(gt.status())
"""


class Failed(Exception):
    """A step has failed: its output."""


def pythons() -> list[Path]:
    """Return the installed Pythons from 3.10 on, one for each release."""
    found: dict[tuple[int, int], Path] = {}
    places = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep)]
    places += Path.home().glob(".pyenv/versions/*/bin")
    for folder in places:
        for minor in range(10, 20):
            path = folder / f"python3.{minor}"
            if path.exists() and (3, minor) not in found:
                probe = "import ensurepip, sys, venv; print(*sys.version_info[:2])"
                done = subprocess.run([path, "-c", probe], capture_output=True, text=True)
                if done.stdout.split() == ["3", str(minor)]:
                    found[3, minor] = path
    return [found[version] for version in sorted(found)]


def isolated() -> list[str]:
    """Return a command prefix that runs a program without network, or an empty list."""
    command = ["unshare", "--net", "--map-root-user"]
    script = "ip link set lo up"
    if shutil.which("unshare") and shutil.which("ip"):
        if subprocess.run([*command, "sh", "-c", script], capture_output=True).returncode == 0:
            # Restore the environment's own path after the system's programs have run.
            return [*command, "sh", "-c", f'{script}; PATH=$OWN_PATH; exec "$@"', "-"]
    return []


def run(*command: str | Path, room: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program in an empty folder with the environment's own path; return its output.

    Raises:
        Failed: the program fails, or takes too long.
    """
    home = room / "home"
    home.mkdir(exist_ok=True)
    # Only the environment's own programs: no compiler, no make, no git.
    clean = {"PATH": str(room / "venv" / "bin"), "HOME": str(home), "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(
            [*map(str, command)],
            cwd=home,
            env={**clean, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command} did not end within {SECONDS} s: {error.stdout!r}") from None
    if done.returncode:
        raise Failed(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def try_cluster(room: Path, prefix: list[str], system: dict[str, str]) -> None:
    """Start a server and a worker, compute, and check the output of `gt top`."""
    program = (
        "import subprocess, sys, time, json\n"
        "port = sys.argv[1]\n"
        "gt = [sys.executable, '-m', 'gt']\n"
        "pipe = {'stdout': subprocess.PIPE, 'text': True}\n"
        "server = subprocess.Popen([*gt, 'server', '-p', port], **pipe)\n"
        "server.stdout.readline()\n"
        "worker = [*gt, 'worker', '-p', port, '--host', 'localhost']\n"
        "worker = subprocess.Popen(worker, **pipe)\n"
        "worker.stdout.readline()\n"
        "try:\n"
        "    client = [sys.executable, 'client.py', f'localhost:{port}']\n"
        "    subprocess.run(client, check=True, timeout=60)\n"
        "    seen = subprocess.run([*gt, 'top', '--host', 'localhost', '--port', port,\n"
        "                           '--once', '--json'],\n"
        "                          check=True, timeout=60, capture_output=True, text=True)\n"
        "    assert len(json.loads(seen.stdout)['workers']) == 1, seen.stdout\n"
        "finally:\n"
        "    for process in (worker, server):\n"
        "        process.terminate()\n"
        "        process.wait(timeout=20)\n"
    )
    (room / "home" / "client.py").write_text(CLIENT)
    (room / "home" / "cluster.py").write_text(program)
    run(
        *prefix,
        room / "venv" / "bin" / "python",
        "cluster.py",
        "17923",
        room=room,
        environment=system,
    )


def try_wheel(python: Path, wheel: Path, numpy: str, prefix: list[str]) -> str | None:
    """Test a wheel; return NumPy's version, or None if NumPy has no wheel for this Python."""
    with tempfile.TemporaryDirectory(prefix="gt wheel ") as folder:
        room = Path(folder)
        subprocess.run([python, "-m", "venv", room / "venv"], check=True)
        pip: list[str | Path] = [
            room / "venv" / "bin" / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
        ]
        pip += ["--disable-pip-version-check", "--only-binary=:all:"]
        done = subprocess.run([*pip, numpy, wheel], capture_output=True, text=True)
        if done.returncode:
            if "No matching distribution" in done.stderr and "numpy" in done.stderr:
                return None
            raise Failed(done.stderr)
        bin_ = room / "venv" / "bin"
        version = run(bin_ / "python", "-c", "import numpy; print(numpy.__version__)", room=room)
        run(bin_ / "gt", "--version", room=room)
        # The path lacks the system's folders, so its programs need their full paths.
        tools = [shutil.which(prefix[0]) or "", *prefix[1:]] if prefix else []
        path = f"{bin_}:/usr/sbin:/usr/bin:/sbin:/bin"
        system = {"PATH": path, "OWN_PATH": str(bin_)} if tools else {}
        run(*tools, bin_ / "gt", "demo", room=room, environment=system)
        try_cluster(room, tools, system)
        return version.strip()


def main() -> int:
    """Test the wheel; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", type=Path, action="append", help="test only this Python")
    args = parser.parse_args()
    wheels = sorted((ROOT / "dist").glob(f"*{platform.machine()}.whl"))
    if not wheels:
        print(f"there is no wheel for {platform.machine()} in dist/: make wheel", file=sys.stderr)
        return 1
    wheel = max(wheels, key=lambda path: path.stat().st_mtime)
    prefix = isolated()
    print(f"{wheel.name}, {'without' if prefix else 'WITH (unshare is missing)'} a network")
    for python in args.python or pythons():
        for numpy in NUMPY:
            try:
                version = try_wheel(python, wheel, numpy, prefix)
            except Failed as error:
                print(f"{python.name}, {numpy}: FAILED\n{error}", file=sys.stderr)
                return 1
            found = f"numpy {version}: works" if version else f"no {numpy} wheel for this Python"
            print(f"  {python.name}, {found}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
