"""The tools behind `make build` and `make test`: a missing requirement is one line, at once."""

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import build_package as build
import build_wheel as wheel
import preflight as check
import pytest
import run_tests as runner
import suites
from processes import program_command

ROOT = Path(__file__).resolve().parent.parent


def program(folder: Path, name: str, text: str) -> None:
    """Write a shell script into a folder that the test puts on the PATH."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def missing(function, *words: str) -> None:
    """Check that a function raises Missing with one line that has these words."""
    with pytest.raises(check.Missing) as found:
        function()
    assert "\n" not in str(found.value), found.value
    assert all(word in str(found.value) for word in words), found.value


def test_this_machine_has_what_a_build_needs():
    done = subprocess.run(
        [sys.executable, ROOT / "tools/preflight.py"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_everything_missing_is_printed_with_a_remedy(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "tools/preflight.py"],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and len(lines) == 2, done.stderr
    assert lines[0].startswith("cannot build: there is no cargo: install Rust")
    assert (
        lines[1]
        == "cannot build: there is no C compiler (cc, gcc, clang): apt install build-essential"
    )


def test_an_old_rust(tmp_path, monkeypatch):
    program(tmp_path, "cargo", "echo 'cargo 1.95.0 (f2d3ce0bd 2026-03-21)'")
    program(tmp_path, "rustc", "echo 'rustc 1.63.0 (4b91a6ea7 2022-08-08)'")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    missing(check.check_rust, "rustc 1.63.0", "too old", "1.90 or newer", "rustup update")


def test_an_old_python(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 8, 18))
    missing(check.check_python, "Python 3.8 runs", "3.10 or newer", "PYTHON=python3.10 make build")


def test_an_old_c_library(monkeypatch):
    monkeypatch.setattr(os, "confstr", lambda name: "glibc 2.17")
    missing(check.check_system, "glibc is 2.17", "2.28 or newer")
    monkeypatch.setattr(os, "confstr", lambda name: None)
    missing(check.check_system, "no GNU C library")


def test_no_compiler_or_an_old_one(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    missing(check.check_compiler, "no C++ compiler (no-such-compiler)", "build-essential")
    program(tmp_path, "old-compiler", "exit 1")
    monkeypatch.setenv("CXX", str(tmp_path / "old-compiler"))
    missing(check.check_compiler, "old-compiler", "GCC 8 or Clang 7")


def test_a_full_disk_and_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    usage = shutil.disk_usage(tmp_path)._replace(free=2_000_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    missing(check.check_folder, str(tmp_path), "2.0 GB left", "3.0 GB", "CARGO_TARGET_DIR")

    def refuse(**_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    missing(check.check_folder, str(ROOT), "cannot be written (Read-only file system)")


def test_another_package_called_gt(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "ROOT", str(tmp_path))
    check.check_environment()
    other = tmp_path / ".venv/lib/python3.11/site-packages/gt"
    other.mkdir(parents=True)
    missing(check.check_environment, str(other), "another package called gt", "pip uninstall gt")


def test_a_second_build_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "ROOT", tmp_path)
    with build.lock():
        with pytest.raises(build.Failed, match=f"process {os.getpid()} is building in this"):
            build.lock()
    build.lock().close()


def test_a_failed_download_is_explained(monkeypatch):
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    lines = ["Caused by:", "[6] Could not resolve hostname (Could not resolve host: example.org)"]
    assert "there is no network, or it needs a proxy" in build.download_advice("crates", lines)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert "through HTTPS_PROXY=http://proxy:3128" in build.download_advice("crates", lines)
    other = build.download_advice("crates", ["the lock file needs to be updated"])
    assert other == "crates could not be downloaded: see the reason above"


def test_a_stage_shows_progress_and_what_failed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(build, "PACE", 0)
    program(tmp_path, "cargo", r"printf 'Building [==>  ] 3/12: gt-ir, faer\rerror: no'; exit 3")
    with pytest.raises(build.Failed) as failed:
        build.follow(build.Stage("compile"), [str(tmp_path / "cargo"), "build"], dict(os.environ))
    assert "compile: 3 of 12 crates (gt-ir, faer), 0 s" in capsys.readouterr().out
    # The last line counts, too, although it has no line end.
    assert failed.value.lines == ["error: no"]


def test_a_wheel_is_not_built_with_flags_for_one_processor(monkeypatch):
    wheel.check_flags()
    monkeypatch.setenv("RUSTFLAGS", "-C target-cpu=native")
    with pytest.raises(wheel.Unfit, match="RUSTFLAGS=-C target-cpu=native"):
        wheel.check_flags()


def test_suites_exist_and_every_part_has_a_budget():
    budgets = runner.budgets()
    for parts in suites.groups().values():
        for part in parts:
            assert part.name in budgets
            for word in part.command:
                path = word.removeprefix("--ignore=")
                assert not path.startswith("tests/") or (ROOT / path).exists(), path


def test_a_part_that_takes_half_as_long_again_fails(capsys):
    budget = runner.budgets()["server"]
    assert runner.report("test", [("server", 1.4 * budget, 0)], [])
    assert not runner.report("test", [("server", 1.6 * budget, 0)], [(2.5, "server: slow")])
    printed = capsys.readouterr().out
    assert "EXCEEDED by more than half" in printed and "2.50 s  server: slow" in printed


def a_part(tmp_path, text: str) -> suites.Part:
    """Return a part whose only tests are in this text."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(text)
    return suites.Part("some", suites.pytest(str(tmp_path), f"--rootdir={tmp_path}"))


def test_a_test_that_passes_alone_is_unsteady(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "REPORTS", tmp_path)
    begun = tmp_path / "begun"
    part = a_part(
        tmp_path,
        f"""
import pathlib

def test_steady():
    pass

def test_unsteady():
    begun = pathlib.Path({str(begun)!r})
    is_first = not begun.exists()
    begun.touch()
    assert not is_first
""",
    )
    outcome, unsteady = runner.run(part)
    assert outcome.status == 0 and len(outcome.seconds) == 2
    assert unsteady == ["test_it.test_unsteady"]


def test_a_test_that_fails_again_has_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "REPORTS", tmp_path)
    outcome, unsteady = runner.run(a_part(tmp_path, "def test_wrong():\n    assert False\n"))
    assert outcome.status == 1 and unsteady == []
    assert outcome.failed == ["test_it.test_wrong"]


def test_many_failures_are_not_by_chance(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "REPORTS", tmp_path)
    text = "".join(f"def test_{number}():\n    assert False\n" for number in range(6))
    monkeypatch.setattr(runner, "AGAIN", 5)
    outcome, unsteady = runner.run(a_part(tmp_path, text))
    assert (outcome.status, len(outcome.failed), unsteady) == (1, 6, [])
    assert not (tmp_path / "some-again.xml").exists()


@pytest.mark.parametrize("ending", ["panic", "abort", "none", "spoilt"])
def test_rust_tests_run_again_unless_their_program_was_killed(tmp_path, monkeypatch, ending):
    killed = "  process didn't exit successfully: `all` (signal: 6, SIGABRT: process abort signal)"
    program(
        tmp_path,
        "cargo",
        f"""
case "$*" in *--exact*)
  echo "again: $*" >> {tmp_path}/again
  echo "test result: ok. {1 if ending != "none" else 0} passed; 0 failed; finished in 0.10s"
  exit 0;;
esac
echo "     Running unittests src/lib.rs (target/release/deps/gt_net-0123456789abcdef)"
{'echo "test peers::links - should panic ... FAILED"' if ending != "spoilt" else ""}
echo "test result: FAILED. 1 passed; 1 failed; 0 ignored; finished in 0.10s"
{'echo "' + killed + '"' if ending == "abort" else ""}
exit 101""",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    outcome, unsteady = runner.run(suites.Part("rust", ["cargo", "test"]))
    if ending in ("abort", "spoilt"):
        assert (outcome.status, unsteady) == (101, []) and not (tmp_path / "again").exists()
    elif ending == "none":
        assert (outcome.status, unsteady) == (101, []), "no test has passed"
    else:
        assert (outcome.status, unsteady) == (0, ["peers::links"])
        words = (tmp_path / "again").read_text()
        assert words == "again: test -- --test-threads 1 --exact peers::links\n"


def test_the_lock_is_freed_with_its_process(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "ROOT", tmp_path)
    command = program_command("building/hold_lock", ROOT / "tools", tmp_path)
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(build.Failed, match=f"process {process.pid} is building"):
            build.lock()
        process.kill()
        process.wait(timeout=10)
        with build.lock() as file:
            fcntl.flock(file, fcntl.LOCK_UN)


def test_a_process_that_crashes_is_no_unsteady_test(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "REPORTS", tmp_path)
    begun = tmp_path / "begun"
    part = a_part(
        tmp_path,
        f"""
import os
import pathlib

def test_crashes_once():
    begun = pathlib.Path({str(begun)!r})
    if not begun.exists():
        begun.touch()
        os.abort()
""",
    )
    outcome, unsteady = runner.run(part)
    assert (outcome.status, unsteady) == (1, [])
