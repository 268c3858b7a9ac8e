"""One login to a machine with the user's own ssh, over which connections and commands run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from gt._guarded import GuardedFolder
from gt.session.ssh_child import GuardedSsh

#: How long a login may take, in seconds: without a terminal, and with one, where ssh asks.
_LOGIN_WITHIN = (45.0, 180.0)

#: How long a command on the other side may take, in seconds.
_COMMAND_WITHIN = 20.0

#: The first and the longest pause between logins that fail, in seconds.
_PAUSE = (0.5, 30.0)

#: What runs there with a terminal, for which ssh sends small packets at once. It ends with the
#: login. It first prints a word.
_BEGUN = "gt-begun"
_HELD = f"echo {_BEGUN}; exec cat > /dev/null"

#: How long another program, which runs there in its place, may say nothing, in seconds.
_BEGIN_WITHIN = 5.0


class SshLogin:
    """A login that is made when it is needed, again after it was lost, and ends with this process.

    If the user has a control master (`ControlMaster` in ~/.ssh/config) for that machine, that one
    is used. All methods may be called from any thread.
    """

    def __init__(self, name: str, login: str, port: int | None, folder: Path):
        """Log in later.

        Args:
            name: what messages begin with.
            login: `[USER@]HOST`.
            port: the port of the ssh server, or None.
            folder: a private folder for the control socket, which is removed at the end.
        """
        self._name, self._folder = name, folder
        self._to = [*(("-p", str(port)) if port is not None else ()), login]
        self._control = folder / "c"
        self._lock = threading.Lock()
        self._guarded_folder = GuardedFolder(folder)
        self._child: GuardedSsh | None = None
        self._is_shared = False
        self._pause, self._next = 0.0, 0.0

    def ensure(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        """Log in, unless a login is open.

        Args:
            is_wanted: whether the login is still of use after a wait.

        Raises:
            ConnectionError: it is refused, or the machine cannot be reached.
        """
        with self._lock:
            if self._is_open():
                return
            # A login that is refused again and again looks like an attack.
            while is_wanted() and (wait := self._next - time.monotonic()) > 0:
                time.sleep(min(wait, 0.1))
            if not is_wanted():
                raise ConnectionError(f"{self._name}: the login is no longer needed")
            self._pause = min(max(2 * self._pause, _PAUSE[0]), _PAUSE[1])
            self._next = time.monotonic() + self._pause
            self._log_in()
            self._pause = self._next = 0.0

    def run(self, command: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command of sh there; return it with its output, which no file has.

        Raises:
            ConnectionError: there is no login, or it takes too long.
        """
        self.ensure()
        line = [*ssh_command(), "-T", *self._over(), *self._to, f"sh -c {shlex.quote(command)}"]
        try:
            return subprocess.run(
                line,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_COMMAND_WITHIN,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            raise ConnectionError(
                f"{self._name}: a command there took more than {_COMMAND_WITHIN:g} s"
            ) from None

    def forward(self, server: str, end: int, errors: int) -> subprocess.Popen[bytes]:
        """Start to carry a socket's data to and from `HOST:PORT`, as reached from there.

        Args:
            server: where to connect to.
            end: the socket's descriptor.
            errors: a descriptor for what ssh says.

        Raises:
            ConnectionError: there is no login.
        """
        self.ensure()
        line = [*ssh_command(), *self._over(), "-o", "ClearAllForwardings=no", "-W", server]
        return subprocess.Popen(
            [*line, *self._to], stdin=end, stdout=end, stderr=errors, start_new_session=True
        )

    def forget(self) -> None:
        """Close what a forked child has inherited: the login is its parent's."""
        self._guarded_folder.forget()
        child, self._child = self._child, None
        if child is not None:
            child.forget()

    def close(self) -> None:
        """End the login and remove the folder."""
        with self._lock:
            self._end_child()
            self._guarded_folder.end()

    def _over(self) -> list[str]:
        """Return the options of a connection over the login."""
        if self._is_shared:
            return ["-o", "ControlMaster=no", "-o", "BatchMode=yes"]
        # If the login is lost, this must not make another one.
        alone = ("ControlMaster=no", "BatchMode=yes", "ProxyCommand=false", "RemoteCommand=none")
        return ["-S", str(self._control), *(text for of in alone for text in ("-o", of))]

    def _is_open(self) -> bool:
        if self._is_shared:
            return self._has_master()
        is_running = self._child is not None and self._child.status() is None
        return is_running and self._control.exists()

    def _has_master(self) -> bool:
        line = [*ssh_command(), "-O", "check", *self._to]
        try:
            done = subprocess.run(line, timeout=5, stdin=subprocess.DEVNULL, capture_output=True)
        except subprocess.TimeoutExpired:
            return False
        except OSError as error:
            raise ConnectionError(f"{self._name}: ssh cannot be run: {error}") from None
        return done.returncode == 0

    def _log_in(self) -> None:
        self._end_child()
        self._is_shared = self._has_master()
        if self._is_shared:
            return
        options = [
            *("-M", "-S", str(self._control), "-o", f"BatchMode={'no' if _asks() else 'yes'}"),
            *("-o", "ControlPersist=no", "-o", "ClearAllForwardings=yes"),
            *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
            *("-o", "ForwardX11=no", "-o", "ForwardAgent=no", "-o", "RemoteCommand=none"),
            *("-o", "PermitLocalCommand=no", "-o", "ConnectTimeout=20", "-e", "none"),
            *(("-o", "ObscureKeystrokeTiming=no") if _version() >= (9, 5) else ()),
        ]
        status = self._try(["-tt", *options, *self._to, _HELD])
        if status is not None and (status != 255 or "PTY allocation" in self._said()):
            # It has logged in: the account may forward, but not run commands.
            status = self._try(["-N", *options, *self._to])
        if status is not None:
            raise ConnectionError(f"{self._name}: ssh ended with status {status}{self._said()}")

    def _try(self, options: list[str]) -> int | None:
        """Log in; return ssh's status if it has ended, or None."""
        self._control.unlink(missing_ok=True)
        output, errors = self._folder / "out", self._folder / "log"
        self._end_child()
        child = self._child = GuardedSsh(output, errors, [*ssh_command(), *options])
        limit = _LOGIN_WITHIN[_asks()]
        begin = time.monotonic()
        logged_in: float | None = None
        while (status := child.status()) is None:
            now = time.monotonic()
            if logged_in is None and self._control.exists():
                logged_in = now
            if logged_in is not None:
                has_begun = _BEGUN in output.read_text(errors="replace")
                if "-N" in options or has_begun or now > logged_in + _BEGIN_WITHIN:
                    return None
            elif now > begin + limit:
                raise ConnectionError(f"{self._name}: no login in {limit:g} s{self._said()}")
            time.sleep(0.01)
        return status

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _said(self) -> str:
        """Return what ssh said, indented, to follow a line of an error."""
        path = self._folder / "log"
        return indented(path.read_text(errors="replace")) if path.exists() else ""


def indented(text: str) -> str:
    """Return the last lines of what ssh said, indented, to follow a line of an error."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "".join(f"\n  {line}" for line in lines[-10:])


def ssh_command() -> list[str]:
    """Return the command of ssh: `GT_SSH`, or `ssh`."""
    return shlex.split(os.environ.get("GT_SSH") or "ssh")


def _asks() -> bool:
    """Return whether there is a terminal where ssh can ask."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return False
    try:
        # A program in the background would be stopped.
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


@cache
def _version() -> tuple[int, int]:
    """Return ssh's version.

    Raises:
        ConnectionError: there is no ssh.
    """
    try:
        shown = subprocess.run(
            [*ssh_command(), "-V"], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except OSError as error:
        raise ConnectionError(f"ssh cannot be run: {error}") from None
    found = re.search(r"OpenSSH_(?:for_Windows_)?(\d+)\.(\d+)", shown.stderr + shown.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)
