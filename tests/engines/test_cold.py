"""Operations of varying shapes: one lookup per signature, no plans, memory freed at once."""

import os
from pathlib import Path

import pytest
from processes import run_program, run_python

HERE = str(Path(__file__).parent)


def backend(name: str) -> dict[str, str]:
    return {"GT_BACKEND": f"recording_engine:{name}", "PYTHONPATH": HERE}


def test_shapes_that_vary_ask_for_a_function_once():
    done = run_program("engines/varying_lengths", **backend("Recording"))
    assert done.returncode == 0, done.stderr
    total, asked, plans = done.stdout.splitlines()
    assert float(total) == 5 * sum(range(1, 101))
    assert asked == "['add', 'full', 'mul', 'sum']", "each signature once"
    assert plans == "0"


@pytest.mark.parametrize("switches", [{}, {"GT_AUTO_COMPILE": "0"}])
def test_what_is_freed_on_the_stream_is_free_in_the_engine(switches):
    done = run_program("engines/frees_tensors", **backend("Recording"), **switches)
    assert done.stdout == "2000 True\nTrue\n", (done.stdout, done.stderr)


def test_the_stream_decides_which_runs_are_compiled():
    """The duration of the compilation does not matter."""
    seen = []
    for seconds in ("0", "0.3"):
        switches = {"GT_AUTO_COMPILE": "1", "COMPILE_SECONDS": seconds}
        done = run_program("engines/records_runs", **backend("Compiling"), **switches)
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
    switches = {"GT_BACKEND": "pytorch", "GT_AUTO_COMPILE": "1" if compiled else "0"}
    done = run_program("engines/growing_keys", **switches)
    assert done.stdout == "0 0\n", (done.stdout, done.stderr)
