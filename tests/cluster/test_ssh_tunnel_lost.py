"""Tunnels that are lost, and programs and servers that end."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from processes import (
    embedded_only,
    linux_only,
    program_command,
    unsharded_only,
    write_key,
)
from ssh_labs import await_loss_of_server, compute
from sshd import await_none, needs_sshd

pytestmark = [embedded_only, unsharded_only, linux_only]


@needs_sshd
def test_a_lost_tunnel_is_opened_again(far):
    process = far.user(far.published)
    try:
        assert compute(process) == 3
        for count in (2, 3):
            far.sshd.cut()
            assert compute(process) == 3 * count
        # The ssh server is away for longer than a client waits for a server that is gone.
        far.sshd.cut()
        far.sshd.stop()
        process.stdin.write("\n")
        process.stdin.flush()
        time.sleep(4)
        far.sshd.start()
        assert float(process.stdout.readline()) == 12
        assert compute(process) == 15
    finally:
        process.kill()
        process.communicate()


@needs_sshd
def test_a_server_that_is_gone_is_not_waited_for(far):
    process = far.user(far.fixed, far.key, stderr=subprocess.PIPE)
    await_loss_of_server(process, far.cluster._server._process)


@needs_sshd
def test_a_server_that_is_started_again_at_another_port(far, tmp_path):
    path, state = tmp_path / "address", str(tmp_path / "state")
    key = tmp_path / "key"
    write_key(key, Path(far.key).read_text())
    publish = ("--publish", str(path), "--key-file", str(key), "--state", state)
    server = [sys.executable, "-m", "gt.server", "-p", "0", *publish]
    worker = [sys.executable, "-m", "gt.worker", "--address", f"file://{path}", "--wait", "60"]
    processes = [subprocess.Popen(server, stdout=subprocess.DEVNULL)]
    try:
        options = ["--key-file", str(key), "--threads", "1"]
        processes.append(subprocess.Popen([*worker, *options], stdout=subprocess.DEVNULL))
        first = await_text(path)
        user = far.user(f"ssh://{far.mark}/file://{path}")
        processes.append(user)
        assert compute(user) == 3
        processes[0].kill()
        processes[0].wait()
        processes[0] = subprocess.Popen(server, stdout=subprocess.DEVNULL)
        await_text(path, other_than=first)
        assert compute(user) == 6
    finally:
        for process in reversed(processes):
            process.kill()
            process.communicate()


def await_text(path: Path, other_than: str = "") -> str:
    """Wait until a file has a text, other than an earlier one; return it."""
    until = time.monotonic() + 60
    while not path.exists() or path.read_text() == other_than:
        assert time.monotonic() < until
        time.sleep(0.05)
    return path.read_text()


@needs_sshd
def test_ssh_that_is_killed_is_started_again(far):
    process = far.user(far.published)
    try:
        assert compute(process) == 3
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            line = path.read_bytes().split(b"\0")
            if line[0] == b"ssh" and far.mark.encode() in line and b"-M" in line:
                os.kill(int(path.parent.name), signal.SIGKILL)
        assert compute(process) == 6
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def short_folder():
    """A folder whose path is short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


@needs_sshd
@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_program(far, how, is_lost, short_folder):
    folder = short_folder
    process = far.user(far.published, env={**os.environ, "TMPDIR": str(folder)})
    assert compute(process) == 3 and list(folder.glob("gt-ssh-*"))
    if is_lost:
        far.sshd.cut()
        far.sshd.stop()
    process.send_signal(how)
    process.communicate()
    await_none(far.mark, 5)
    until = time.monotonic() + 5
    while list(folder.glob("gt-ssh-*")):
        assert time.monotonic() < until
        time.sleep(0.05)


@needs_sshd
def test_an_interrupt_of_the_terminal_is_the_programs(far):
    program = "import signal; signal.signal(signal.SIGINT, lambda *_: None);"
    name = program_command("cluster/tunnel_user")[1]
    program += f"import runpy, sys; sys.argv = ['x', '{far.published}'];"
    program += f"runpy.run_path({name!r}, run_name='__main__')"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, **pipes)
    try:
        assert process.stdout.readline() == "ready\n"
        assert compute(process) == 3
        before = far.sshd.connections()
        os.killpg(process.pid, signal.SIGINT)
        assert compute(process) == 6
        assert far.sshd.connections() == before
    finally:
        process.kill()
        process.communicate()


@needs_sshd
def test_ssh_asks_in_a_terminal(far):
    path = str(far.sshd.folder / "user_key")
    change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "open sesame", "-f", path]
    subprocess.run(change, check=True, timeout=60)
    # Without a terminal, it does not wait for an answer.
    assert "Permission denied" in far.fails(far.fixed, "ssh ended with status 255")
    command = program_command("cluster/tunnel_user", far.published)
    terminal, other = os.openpty()
    # A session of its own, whose terminal this is.
    code = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    code += "os.execv(sys.argv[1], sys.argv[1:])"
    line = [sys.executable, "-c", code, *command]
    process = subprocess.Popen(
        line, stdin=other, stdout=other, stderr=other, start_new_session=True
    )
    os.close(other)
    try:
        await_output(terminal, b"passphrase")
        os.write(terminal, b"open sesame\n")
        await_output(terminal, b"ready")
        os.write(terminal, b"\n")
        await_output(terminal, b"3.0")
        # Ctrl-C is the program's.
        os.write(terminal, b"\x03")
        await_output(terminal, b"KeyboardInterrupt")
        process.wait(20)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def await_output(terminal: int, words: bytes) -> None:
    """Read from a terminal until the words have appeared."""
    seen = b""
    while words not in seen:
        ready, _, _ = select.select([terminal], [], [], 40)
        assert ready, seen
        seen += os.read(terminal, 4096)
