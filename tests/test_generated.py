"""Generated files are up to date, and the type stubs match the module."""

import importlib
import os
import re
import site
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from environments import environment

ROOT = Path(__file__).resolve().parent.parent


def test_generated_files_are_up_to_date():
    command = [sys.executable, str(ROOT / "tools" / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_public_function_that_is_on_no_page_of_the_reference_is_an_error(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "docs"))
    reference = importlib.import_module("reference")
    page = reference.PAGES["functions/math"]
    assert "::: gt.lerp\n" in reference.pages()["api/functions/math.md"]
    sections = {title: words.replace("ternary", "") for title, words in page.sections.items()}
    monkeypatch.setitem(reference.PAGES, "functions/math", replace(page, sections=sections))
    with pytest.raises(LookupError, match=r"gt\.addcdiv is on no page.*\n.*'ternary'"):
        reference.pages()


def test_the_reference_lists_public_names_of_all_namespaces(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "docs"))
    needed = {
        name for line in importlib.import_module("reference").names() for name in line.split()
    }
    listed = {
        "gt.add",
        "gt.Tensor.backward",
        "gt.nn.functional.relu",
        "gt.linalg.norm",
        "gt.connect",
    }
    assert listed <= needed


@pytest.fixture
def installed(tmp_path):
    """Return the Python of an environment in which this checkout is installed, editable."""
    return environment(tmp_path / "venv", [str(ROOT / "python"), *site.getsitepackages()])


def test_the_stubs_match_the_module(installed, tmp_path):
    # The signatures of the module show neither NumPy's names of parameters nor overloads.
    generate = str(ROOT / "tools" / "docs" / "generate.py")
    plain = tmp_path / "plain"
    subprocess.run([sys.executable, generate, "--plain", plain / "gt-stubs"], check=True)
    config = tmp_path / "mypy.ini"
    config.write_text(f"[mypy]\npython_executable = {installed}\n")
    command = [sys.executable, "-m", "mypy.stubtest", "gt._gt", "--mypy-config-file", str(config)]
    paths = os.pathsep.join([str(plain), os.environ.get("PYTHONPATH", str(ROOT / "python"))])
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=110,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stdout + done.stderr


#: A program of a user, with the wrong types in the last lines.
PROGRAM = """
import gt
import gt.nn as nn
import gt.nn.functional as F
from gt.distributions import Normal
from gt.nn.parameter import Parameter
from gt.optim import Adam
from gt.utils.data import DataLoader, TensorDataset

layer: nn.Linear = gt.nn.Linear(2, 3)
optimizer: gt.optim.Optimizer = Adam(layer.parameters(), lr=0.1)
batches: DataLoader = gt.data.DataLoader(TensorDataset(gt.ones(2)), batch_size=2)
weight: Parameter = layer.weight
x: gt.Tensor = F.relu(gt.linalg.norm(Normal(0.0, 1.0).sample()))
with gt.signal.context("layer"):
    gt.status().workers
gt.nn.Linear("two", 3)
F.relu("x")
gt.add(1, other=None)
"""


def test_programs_of_users_are_checked(installed, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--python-executable", str(installed), "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path)
    lines = PROGRAM.splitlines()
    found = [int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line]
    assert found == [len(lines) - 2, len(lines) - 1, len(lines)], done.stdout + done.stderr


def test_every_dependency_is_documented():
    manifests = ["Cargo.toml", "fuzz/Cargo.toml"]
    manifests += [f"third_party/{name}/Cargo.toml" for name in ("libsodium-sys", "zmq", "zmq-sys")]
    names = set()
    for manifest in [*map(ROOT.joinpath, manifests), *ROOT.glob("crates/*/Cargo.toml")]:
        for section in re.split(r"^\[", manifest.read_text(), flags=re.MULTILINE):
            head, _, body = section.partition("]\n")
            if head.endswith("dependencies"):
                names |= set(re.findall(r"^([\w-]+)[ .]", body, flags=re.MULTILINE))
    names -= {path.name for path in (ROOT / "crates").iterdir()}

    project = (ROOT / "pyproject.toml").read_text().split("[project.scripts]")[0]
    extras = "requires|dependencies|examples|test|docs|release|wheel|compare|neighbours"
    lists = rf"^(?:{extras}) = \[(.*)\]$"
    for entries in re.findall(lists, project, flags=re.MULTILINE):
        names |= set(re.findall(r'"([\w-]+)', entries))

    page = (ROOT / "docs" / "dependencies.md").read_text()
    lines = re.findall(r"^\| ([\w-]+) \|", page, flags=re.MULTILINE)
    assert sorted(set(lines) - {"what", "---"}) == sorted(names)
