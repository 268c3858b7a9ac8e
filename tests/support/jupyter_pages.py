"""JupyterLab as a person uses it: a server of its own, and a notebook in a browser's tab."""

import contextlib
import importlib.util
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsers import LIMIT, Tab

needs_jupyterlab = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("jupyterlab", "ipykernel")),
    reason="SKIPPED: JupyterLab is missing; make test-browser installs it",
)

#: How long a server may take to end its kernels and itself, in seconds.
ENDS_WITHIN = 20.0

#: It looks for no news, is dark where the browser is, and draws all cells.
SETTINGS = {
    "apputils-extension/themes": {"adaptive-theme": True},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}

CELL = ".jp-Notebook .jp-CodeCell"


class Notebook:
    """A notebook that is open in a tab."""

    def __init__(self, tab: Tab):
        self.tab, self.page = tab, tab.page

    def cell(self, number: int) -> Any:
        """Return a code cell, counted from 1."""
        return self.page.locator(CELL).nth(number - 1)

    def start(self, number: int) -> None:
        """Run a cell with the keyboard, and do not wait for its end."""
        cell = self.cell(number)
        cell.locator(".cm-content").click()
        self.page.keyboard.press("Control+Enter")

    def run(self, number: int) -> Any:
        """Run a cell, wait for its end, and return its outputs."""
        assert self.prompt(number) == "[ ]:", "it has run already"
        self.start(number)
        return self.wait_for_end_of(number)

    def wait_for_end_of(self, number: int) -> Any:
        """Wait until a cell has run, and return its outputs."""
        until = time.monotonic() + LIMIT
        while self.prompt(number) in ("[ ]:", "[*]:"):
            assert time.monotonic() < until, (number, self.prompt(number))
            self.page.wait_for_timeout(50)
        return self.outputs(number)

    def outputs(self, number: int) -> Any:
        """Return what a cell shows below itself."""
        return self.cell(number).locator(".jp-OutputArea-output")

    def prompt(self, number: int) -> str:
        """Return what stands beside a cell, such as `[3]:`, or `[*]:` while it runs."""
        return str(self.cell(number).locator(".jp-InputPrompt").inner_text()).strip()

    def save(self) -> None:
        """Save it, and wait until it is saved."""
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        self.tab.wait_until("document.querySelector('.jp-mod-dirty') === null")


class JupyterLab:
    """A server of JupyterLab.

    Args:
        base: its address, such as `http://127.0.0.1:8888`.
        token: what a browser has to know.
        folder: the folder of its notebooks.
    """

    def __init__(self, base: str, token: str, folder: Path):
        self.base, self.token, self.folder = base, token, folder

    def write(self, name: str, *cells: str) -> None:
        """Write a notebook with some cells."""
        empty = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        made = [{**empty, "id": f"cell{at}", "source": text} for at, text in enumerate(cells)]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        whole = {"cells": made, "metadata": {"kernelspec": kernel}}
        (self.folder / name).write_text(json.dumps({**whole, "nbformat": 4, "nbformat_minor": 5}))

    def open(self, tab: Tab, name: str) -> Notebook:
        """Open a notebook in a tab, and wait until its kernel is ready."""
        tab.page.goto(f"{self.base}/lab/tree/{name}?token={self.token}&reset")
        tab.page.wait_for_selector(CELL)
        tab.page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        until = time.monotonic() + LIMIT
        # The page shows a kernel as idle before it runs.
        while not any(self._is_ready(of, name) for of in self.ask("/api/sessions")):
            assert time.monotonic() < until, "the notebook has no kernel"
            tab.page.wait_for_timeout(50)
        return Notebook(tab)

    @staticmethod
    def _is_ready(session: dict[str, Any], name: str) -> bool:
        kernel = session["kernel"]
        is_connected = kernel["execution_state"] == "idle" and kernel["connections"] > 0
        return bool(session["path"] == name and is_connected)

    def ask(self, path: str) -> Any:
        """Return what the server answers, as JSON."""
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(self.base + path, headers=headers)
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return json.load(answer)


@contextmanager
def jupyterlab(folder: Path) -> Iterator[JupyterLab]:
    """Yield a server that reads and writes nothing but what is in a folder, and end it."""
    for name, settings in SETTINGS.items():
        path = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))
    notebooks = folder / "notebooks"
    notebooks.mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    places = {
        "HOME": "home",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
    }
    environment = {**os.environ, **{name: str(folder / of) for name, of in places.items()}}
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "ServerApp.root_dir": notebooks,
        "LabApp.extension_manager": "readonly",
    }
    command = [sys.executable, "-m", "jupyterlab"]
    command += [f"--{name}={value}" for name, value in options.items()]
    # Other users see what is on a command line.
    environment["JUPYTER_TOKEN"] = token
    with (folder / "log").open("wb") as log:
        # Its kernels are processes of its group.
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    lab = JupyterLab(f"http://127.0.0.1:{port}", token, notebooks)
    try:
        _wait_for(lab, process, folder / "log")
        yield lab
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDS_WITHIN)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(lab: JupyterLab, process: subprocess.Popen, log: Path) -> None:
    until = time.monotonic() + LIMIT
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError):
            lab.ask("/api/status")
            return
        time.sleep(0.1)
    raise AssertionError(f"JupyterLab has not started: {log.read_text()}")
