"""`gt version` prints the version, `gt --version` all that a bug report needs."""

import importlib.metadata
import re
import shutil
import subprocess
from pathlib import Path

import gt
import pytest
from gt.engines import gpus
from gt.scripts import version
from processes import run_gt, run_python

ROOT = Path(__file__).resolve().parent.parent

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def package_in(folder: Path, checkout: bool) -> Path:
    """Create an empty package, in a checkout or elsewhere; return its folder."""
    package = folder / "python" / "gt"
    package.mkdir(parents=True)
    if checkout:
        (folder / "Cargo.toml").write_text("")
        (folder / ".git").mkdir()
    return package


def test_version_prints_the_bare_version():
    done = run_gt("version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{gt.__version__}\n", "")


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_report_has_a_line_for_each_subject(option):
    done = run_gt(option, GT_BACKEND="")
    assert (done.returncode, done.stderr) == (0, "")
    first, *others = done.stdout.splitlines()
    assert re.fullmatch(rf"gt {re.escape(gt.__version__)} \(commit .+\)", first), first
    subjects = [line.split(":")[0] for line in others]
    assert subjects == ["engine", "engines", "features", "python", "platform", "processor"]


def test_report_imports_neither_pytorch_nor_jax_nor_numpy():
    done = run_python(
        "import sys; from gt.scripts import version; before = set(sys.modules); version.report()\n"
        "print({'torch', 'jax', 'numpy'} & (set(sys.modules) - before))"
    )
    assert (done.returncode, done.stdout) == (0, "set()\n"), done


@needs_git
def test_commit_in_a_checkout_is_that_of_git(tmp_path):
    package = package_in(tmp_path, checkout=True)
    (tmp_path / ".git").rmdir()
    author = ["-c", "user.name=author", "-c", "user.email=author@example.org"]
    for command in (["init", "--quiet"], [*author, "commit", "--quiet", "--allow-empty", "-mx"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True, capture_output=True)
    # The file of an old build is ignored in a checkout.
    (package / "_commit.txt").write_text("0000000, 2000-01-01\n")
    assert re.fullmatch(r"[0-9a-f]{7,40}, \d{4}-\d\d-\d\d", version.commit(package))


def test_commit_in_a_checkout_without_an_answer_of_git_is_unknown(tmp_path, monkeypatch):
    package = package_in(tmp_path, checkout=True)
    assert version.commit(package) == "unknown"  # .git is empty
    monkeypatch.setenv("PATH", "")
    assert version.commit(package) == "unknown"  # git is not installed


def test_git_has_a_time_limit(tmp_path, monkeypatch):
    package = package_in(tmp_path, checkout=True)
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(version, "_GIT_LIMIT", 0.1)
    assert version.commit(package) == "unknown"


def test_commit_of_a_wheel_is_in_its_file(tmp_path):
    package = package_in(tmp_path, checkout=False)
    assert version.commit(package) == "unknown"
    (package / "_commit.txt").write_text("")
    assert version.commit(package) == "unknown"
    (package / "_commit.txt").write_text("1a2b3c4, 2026-11-26\n")
    assert version.commit(package) == "1a2b3c4, 2026-11-26"
    (package / "_commit.txt").write_bytes(b"\xff\xfe")
    assert version.commit(package) == "unknown"


def test_commit_is_not_that_of_a_checkout_around_the_environment(tmp_path):
    (tmp_path / ".git").mkdir()
    package = package_in(tmp_path / ".venv" / "lib", checkout=False)
    assert version.commit(package) == "unknown"


def test_engine_is_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("GT_BACKEND", "numpy")
    assert version.default_engine() == "numpy (set by GT_BACKEND)"


def test_engine_is_native_unless_a_gpu_and_pytorch_may_exist(monkeypatch):
    monkeypatch.delenv("GT_BACKEND", raising=False)
    monkeypatch.setattr(gpus, "has_traces", lambda: False)
    assert version.default_engine() == "native (default here)"
    monkeypatch.setattr(gpus, "has_traces", lambda: True)
    for found, expected in (("", "native (default here)"), ("2.15.0", "pytorch if it sees")):
        monkeypatch.setattr(version, "engine_version", lambda name, found=found: found)
        assert version.default_engine().startswith(expected)


def test_engines_have_the_versions_of_their_packages(monkeypatch):
    installed = {"numpy": "2.4.6", "torch": "2.5.1"}

    def of_package(name: str) -> str:
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(importlib.metadata, "version", of_package)
    monkeypatch.setattr(version, "find_spec", lambda name: None)
    named = [version.engine(name) for name in ("numpy", "pytorch", "jax")]
    assert named == ["numpy 2.4.6", "pytorch 2.5.1 (too old)", "jax not found"]


def test_extension_must_be_built_for_the_installed_pytorch(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(version, "engine_version", lambda name: "2.15.0")
    (tmp_path / "gt").mkdir()
    (tmp_path / "gt" / "torch-2.14.0-0123456789ab.so").touch()
    assert not version.is_extension_built()
    (tmp_path / "gt" / "torch-2.15.0-0123456789ab.so").touch()
    assert version.is_extension_built()
    monkeypatch.setattr(version, "engine_version", lambda name: "")
    assert not version.is_extension_built()
