"""Wrong compiled code is detected, reported once, and written to a file that replays it."""

import json
import zipfile

import numpy as np
import pytest
from bad_engines import BadCompiler, Tail
from gt.engines.engine import Meta
from gt.engines.mismatch import load, replay
from gt.engines.numpy import NumPyEngine
from processes import run_program
from test_bad_engines import backend

#: A loop whose values change from step to step, on tensors of a length.
LOOP = "engines/varied_values"


def run(engine: str, folder, length: int = 17):
    environment = {"GT_COMPILE": "1", "GT_MISMATCH_DIR": str(folder), **backend(engine)}
    return run_program(LOOP, length, **environment)


@pytest.mark.parametrize("length", [1, 7, 15, 17, 33])
def test_a_wrong_tail_is_found(tmp_path, length):
    want = run_program(LOOP, length).stdout
    done = run("Tail", tmp_path, length)
    assert done.stdout == want, done.stderr
    assert done.stderr.count("gt: warning:") >= 1, done.stderr
    for word in (" instead of ", f"float32 ({length},)", "may differ by", "replays it"):
        assert word in done.stderr, done.stderr


@pytest.mark.parametrize(("engine", "words"), [("Stale", "instead of"), ("Overwriting", "input")])
def test_what_shows_only_later_is_found(tmp_path, engine, words):
    want = run_program(LOOP, 17).stdout
    done = run(engine, tmp_path)
    assert words in done.stderr, done.stderr
    if engine == "Stale":
        assert done.stdout == want, done.stderr


def test_a_file_replays_it(tmp_path):
    done = run("Tail", tmp_path)
    paths = sorted(tmp_path.glob("*.npz"))
    assert paths and all(str(path) in done.stderr for path in paths), done.stderr
    for path in paths:
        with np.load(path) as archive:
            written = json.loads(archive["plan.json"])
            assert b"outputs: %" in archive["plan.txt"]
        assert written["engine"] == "tail" and "instead of" in written["difference"]
        plan, values, expected, given = load(path)
        assert len(values) == len(plan.inputs) and len(expected) == len(plan.outputs) == len(given)
        assert all(isinstance(array.meta, Meta) for array in expected)
        assert replay(path, NumPyEngine()) == []
        for engine in (Tail(), BadCompiler()):
            found = replay(path, engine)
            assert {difference.way for difference in found} == {"compiled", "compiled, again"}
            assert "instead of" in str(found[0])


@pytest.mark.parametrize("engine", ["jax", "pytorch"])
def test_honest_compilers_raise_no_alarm(engine, tmp_path):
    pytest.importorskip({"jax": "jax", "pytorch": "torch"}[engine], reason="make test-all")
    environment = {"GT_BACKEND": engine, "GT_COMPILE": "1", "GT_MISMATCH_DIR": str(tmp_path)}
    done = run_program(LOOP, 17, timeout=100, **environment)
    assert done.returncode == 0, done.stderr
    assert "gave" not in done.stderr and not list(tmp_path.iterdir()), done.stderr


def test_another_format_is_refused(tmp_path):
    path = tmp_path / "other.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("plan.json", '{"format": 2}')
    with pytest.raises(ValueError, match="format"):
        load(path)
