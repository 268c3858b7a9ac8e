"""Operations whose shapes vary: one look-up for each, no plans, and memory that is free at once."""

import os
from pathlib import Path

import pytest
from processes import run_python

HERE = str(Path(__file__).parent)

PROGRAM = """
import gt
import recording_engine as recording
total = 0
for length in range(1, 101):
    x = gt.ones(length)
    total += ((x + x) * 2.5).sum().item()
print(total)
print(sorted(recording.ASKED))
print(recording.PLANS)
"""


def backend(name: str) -> dict[str, str]:
    return {"GT_BACKEND": f"recording_engine:{name}", "PYTHONPATH": HERE}


def test_shapes_that_vary_ask_for_a_function_once():
    done = run_python(PROGRAM, **backend("Recording"))
    assert done.returncode == 0, done.stderr
    total, asked, plans = done.stdout.splitlines()
    assert float(total) == 5 * sum(range(1, 101))
    assert asked == "['add', 'full', 'mul', 'sum']", "each signature once"
    assert plans == "0"


LOOP = """
import gt
import recording_engine as recording
x = gt.ones(1000)
kept = []
for step in range(200):
    x = x * 0.5 + 1
    if step % 50 == 0:
        kept.append(x)
    x[:1].sum().item()
print(round(x.sum().item()), recording.live() <= 40)
del x, kept
gt.ones(1).item()
print(recording.live() <= 4)
"""


@pytest.mark.parametrize("switches", [{}, {"GT_AUTO_COMPILE": "0"}])
def test_what_is_freed_on_the_stream_is_free_in_the_engine(switches):
    done = run_python(LOOP, **backend("Recording"), **switches)
    assert done.stdout == "2000 True\nTrue\n", (done.stdout, done.stderr)


RUNS = """
import gt
import recording_engine as recording
x = gt.ones(1000)
for step in range(30):
    x = (x * 0.5).exp() - 1
    x.sum().item()
print(recording.RUNS)
"""


def test_the_stream_decides_which_runs_are_compiled():
    """However long it takes to compile."""
    seen = []
    for seconds in ("0", "0.3"):
        switches = {"GT_AUTO_COMPILE": "1", "COMPILE_SECONDS": seconds}
        done = run_python(RUNS, **backend("Compiling"), **switches)
        assert done.returncode == 0, done.stderr
        seen.append(done.stdout)
    assert seen[0] == seen[1]
    assert "compiled" in seen[0]


def test_a_value_is_read_without_a_copy():
    program = """
import gt
import numpy as np
import recording_engine as recording
x = gt.ones(1000) + 1
y = np.asarray(x)
print(any(np.shares_memory(y, array) for array in recording.arrays()), y[0], y.flags.writeable)
"""
    done = run_python(program, **backend("Recording"))
    assert done.stdout == "True 2.0 False\n", (done.stdout, done.stderr)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_key_value_store_that_grows_compiles_nothing(compiled):
    if not os.environ.get("GT_TEST_ALL"):
        pytest.importorskip("torch", reason="pytorch: make test-all")
    program = """
import gt
query, key = gt.randn(1, 2, 1, 4), gt.randn(1, 2, 1, 4)
keys = key
for step in range(64):
    keys = gt.cat([keys, key], 2)
    query = (query @ keys.transpose(2, 3)).softmax(-1) @ keys
query.sum().item()
(worker,) = gt.debug.get_worker_stats().values()
print(worker["compilation"]["cache_misses"], worker["operations"]["compiled"])
"""
    switches = {"GT_BACKEND": "pytorch", "GT_AUTO_COMPILE": "1" if compiled else "0"}
    done = run_python(program, **switches)
    assert done.stdout == "0 0\n", (done.stdout, done.stderr)
