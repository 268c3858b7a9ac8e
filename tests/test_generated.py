"""Generated files are up to date, and the type stubs match the module."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_generated_files_are_up_to_date():
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_stubs_match_the_module():
    command = [sys.executable, "-m", "mypy.stubtest", "gt._gt"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


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
    lists = r"^(?:requires|dependencies|examples|test|docs|release|wheel|compare) = \[(.*)\]$"
    for entries in re.findall(lists, project, flags=re.MULTILINE):
        names |= set(re.findall(r'"([\w-]+)', entries))

    page = (ROOT / "docs" / "dependencies.md").read_text()
    lines = re.findall(r"^\| ([\w-]+) \|", page, flags=re.MULTILINE)
    assert sorted(set(lines) - {"what", "---"}) == sorted(names)
