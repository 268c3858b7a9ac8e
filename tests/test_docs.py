"""Every block of code in the documentation runs, and prints the text that the page shows below it.

- ```python: the blocks of a page run in one namespace, in an empty folder. A block that begins with
  the comment `# name.py` is written to that file instead.
- ```text right after a block is the output of the block.
- ```bash: lines that run gt or python are executed; servers and workers run until the page ends.
- ```console: lines for other machines, or commands that never end. The test checks only that their
  options exist.
- ```yaml blocks are configurations. A ```rust block with a file's name must be part of that file;
  cargo tests the others. Blocks without a language are drawings.
- A page that begins with `<!-- needs: name -->` is skipped if that package is missing.

Notebooks run like pages, cell by cell in their folder, with fewer steps.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from pages import BLOCK, FILE, NEEDS, PAGES, ROOT, body_of
from processes import embedded_only, program_command

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
LANGUAGES = {"", "bash", "console", "python", "rust", "text", "toml", "yaml"}
#: Commands that run until they are stopped.
SERVES = re.compile(r"(?:python -m gt\.|gt )(?:server|worker)\b")
#: Commands that a reader runs once to set up a machine, or that CI runs itself.
NOT_RUN = ("cargo", "cd", "curl", "git", "make", "pip", "source", "sudo")

pytestmark = [
    embedded_only,
    pytest.mark.skipif(
        bool(os.environ.get("GT_TEST_SHARDED")), reason="pages choose their own placement"
    ),
    pytest.mark.skipif(bool(os.environ.get("GT_BACKEND")), reason="pages show the native engine"),
]


class Page:
    """The running programs of a page."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.ports: dict[str, str] = {}
        self.processes: list[subprocess.Popen] = []
        self.python: subprocess.Popen | None = None
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', folder)}",
        }

    def with_ports(self, text: str) -> str:
        """Return a text with free ports in place of the ports that pages name."""
        return re.sub(r"\b1234\d\b", lambda found: self._port(found[0]), text)

    def _port(self, named: str) -> str:
        if named not in self.ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.ports[named] = str(probe.getsockname()[1])
        return self.ports[named]

    def start(self, command: list[str] | str, **options) -> subprocess.Popen:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
            **options,
        )
        self.processes.append(process)
        return process

    def run_python(self, source: str, name: str) -> str:
        """Run a block; return its output."""
        file = FILE.match(source)
        if file:
            (self.folder / file[1]).write_text(self.with_ports(source))
            return ""
        if self.python is None:
            interpreter, *program = program_command("docs/run_blocks")
            command = [interpreter, "-W", "error", *program]
            self.python = self.start(command, stdin=subprocess.PIPE)
        self.python.stdin.write(json.dumps([self.with_ports(source), name]) + "\n")
        self.python.stdin.flush()
        output, error = json.loads(self.python.stdout.readline())
        assert error is None, f"{name}\n{error}"
        return output

    def run_line(self, line: str) -> str:
        """Run a command; return its output, or nothing for a server or a worker."""
        line = self.with_ports(line)
        words = [word for word in shlex.split(line, comments=True) if "=" not in word]
        if not words or words[0] in NOT_RUN:
            return ""
        assert words[0] in ("gt", "python"), f"'{line}' runs neither gt nor python"
        process = self.start(["bash", "-c", f"exec {line}" if SERVES.search(line) else line])
        if SERVES.search(line):
            assert "gt " in process.stdout.readline(), line
            return ""
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, line
        return output

    def close(self) -> None:
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()


@cache
def help_of(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "gt", *command.split(), "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def check_options(line: str) -> None:
    """Check that the options of GT's commands in a line exist."""
    for command, rest in re.findall(
        r"(?:python -m gt\.(?:scripts\.)?|\bgt )(\w+)([^|;&#']*)", line
    ):
        options = [word for word in rest.split() if re.match(r"--?[a-zA-Z]", word)]
        known = help_of(command)
        for option in options:
            assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known), (line, option)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(page, tmp_path):
    text = page.read_text()
    needed = NEEDS.match(text)
    if needed and importlib.util.find_spec(needed[1]) is None:
        pytest.skip(f"{needed[1]} is not installed")
    running = Page(tmp_path)
    output, end = "", 0
    try:
        for number, found in enumerate(BLOCK.finditer(text), 1):
            _, language, title, _ = found.groups()
            body = body_of(found)
            where = f"{page.name}, block {number}"
            assert language in LANGUAGES, f"{where}: is {language} run, or a drawing?"
            follows = not text[end : found.start()].strip()
            end = found.end()
            if language == "text" and number > 1 and follows:
                assert output == running.with_ports(body), where
            output = ""
            if language == "python":
                output = running.run_python(body, where)
            elif language == "bash":
                output = "".join(running.run_line(line) for line in body.splitlines())
            elif language == "console":
                lines = [line for line in body.splitlines() if line.strip()]
                assert all(line.startswith("$ ") for line in lines), where
                for line in lines:
                    check_options(line)
            elif language == "yaml":
                (tmp_path / "config.yaml").write_text(body)
                load = "import gt; gt.load_config('config.yaml')"
                subprocess.run([sys.executable, "-c", load], cwd=tmp_path, check=True)
            elif language == "rust" and title:
                path = re.fullmatch(r' title="(.+)"', title)[1]
                assert body.rstrip("\n") in (ROOT / path).read_text(), f"{where}: not in {path}"
    finally:
        running.close()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_the_code_of_a_notebook_runs(notebook):
    cells = [c for c in json.loads(notebook.read_text())["cells"] if c["cell_type"] == "code"]
    assert all((c["outputs"], c["execution_count"]) == ([], None) for c in cells), "clear outputs"
    running, output = Page(notebook.parent), ""
    running.environment["MPLBACKEND"] = "Agg"
    try:
        for number, cell in enumerate(cells, 1):
            source = re.sub(r"^steps = \d+$", "steps = 40", "".join(cell["source"]), flags=re.M)
            output += running.run_python(source, f"{notebook.name}, code cell {number}")
    finally:
        running.close()
    first, last = map(float, re.search(r"loss ([\d.]+), then ([\d.]+)", output).groups())
    assert last < first - 1, output


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "zensical.toml").read_text()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name.startswith("adr/") or f'"{name}"' in navigation, name


def test_links_between_pages_lead_somewhere(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "docs"))
    pages = importlib.import_module("reference").pages()
    generated = {(ROOT / "docs" / name).resolve() for name in pages}
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]+)?\)", page.read_text()):
            target = (page.parent / link).resolve()
            assert target in generated or target.exists(), f"{page.name}: {link}"
