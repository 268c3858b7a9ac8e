"""The character GPT: interrupted runs resume and end with the same bits."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import gt
import numpy as np
import pytest
from processes import HONOUR_CTRL_C, embedded_only, one_engine_only, unsharded_only

pytestmark = [embedded_only, one_engine_only, unsharded_only]

ROOT = Path(__file__).resolve().parents[2]
TINY = {"steps": 60, "every": 4, "batch": 8, "context": 12, "width": 16, "layers": 2, "heads": 2}
#: The length of the text, for which an epoch has fewer steps than a run.
CHARACTERS = 400
PROGRAM = f"""{HONOUR_CTRL_C}
import sys
sys.path.insert(0, {str(ROOT / "examples")!r})
import chargpt
chargpt.main()
(stats,) = chargpt.gt.debug.get_worker_stats().values()
print("hot:", stats["hotpath"]["hot_instructions"] / stats["hotpath"]["total_instructions"])
"""


def start(folder, **options):
    """Start a tiny run with its output in a folder."""
    sonnets = (ROOT / "examples/text/sonnets.txt").read_text()
    (folder / "text.txt").write_text(sonnets[:CHARACTERS])
    named = {**TINY, "length": 40, "text": "text.txt", "out": "out", **options}
    given = [word for name, value in named.items() for word in (f"--{name}", str(value))]
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-u", "-c", PROGRAM, *given, "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=os.environ,
    )


def run(folder, **options):
    """Run to the end; return the exit status, standard output and standard error."""
    process = start(folder, **options)
    out, errors = process.communicate(timeout=60)
    return process.returncode, out, errors


def end_after(checkpoints, folder, ending):
    """Run until some checkpoints are saved, then send a signal; return the same as `run`."""
    process = start(folder)
    out = ""
    while out.count("checkpoint") < checkpoints:
        out += process.stdout.readline()
        assert process.poll() is None, process.stderr.read()
    process.send_signal(ending)
    rest, errors = process.communicate(timeout=60)
    assert f"step {TINY['steps']}:" not in rest, "the signal arrived too late to interrupt"
    return process.returncode, out + rest, errors


def last_checkpoint(folder):
    """Return the whole state at the end of a run, with tensors as bytes."""
    manager = gt.checkpoint.Manager(folder / "out" / "checkpoints")
    assert manager.latest() == TINY["steps"]
    return plain(gt.checkpoint.load(manager.path(TINY["steps"])).state)


def plain(state):
    """Return a state with its tensors as bytes."""
    if isinstance(state, gt.Tensor):
        return state.dtype.name, state.shape, state.numpy().tobytes()
    if isinstance(state, dict):
        return {name: plain(value) for name, value in state.items()}
    return [plain(value) for value in state] if isinstance(state, list | tuple) else state


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folder of a run that is not interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    code, out, errors = run(folder)
    assert (code, errors) == (0, "")
    assert "held-out loss" in out
    assert float(out.rpartition("hot: ")[2]) > 0.5, "most operations are in repeated sequences"
    return folder


def test_a_run_leaves_its_curve_samples_and_model(whole):
    out = whole / "out"
    assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert len((out / "samples.txt").read_text().split("-" * 40)) == 3
    losses = last_checkpoint(whole)["objects"]["record"]["losses"]
    assert len(losses) == TINY["steps"]
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.5


def test_an_interrupted_run_goes_on_to_the_same_bits(whole, tmp_path):
    end_after(2, tmp_path, signal.SIGKILL)  # When the second is reported, the first is on disk.
    code, out, errors = end_after(1, tmp_path, signal.SIGINT)
    assert (code, errors) == (0, "")
    assert "resuming after step" in out and "interrupted after step" in out

    code, out, errors = run(tmp_path)
    assert (code, errors) == (0, "")
    assert "resuming after step" in out
    assert last_checkpoint(tmp_path) == last_checkpoint(whole)
    assert (tmp_path / "out/model.gt").read_bytes() == (whole / "out/model.gt").read_bytes()


def test_a_run_that_is_finished_says_so(whole):
    before = last_checkpoint(whole)
    code, out, errors = run(whole)
    assert (code, errors) == (0, "")
    assert "the run is finished: step 60 of 60" in out
    assert last_checkpoint(whole) == before


def test_a_text_that_is_missing(tmp_path):
    code, out, errors = run(tmp_path, text="nowhere.txt")
    assert (code, out) == (1, "")
    assert "nowhere.txt" in errors and "--text FILE" in errors and "Traceback" not in errors


def test_a_checkpoint_of_another_size(whole):
    code, out, errors = run(whole, width=32)
    assert (code, out) == (1, "")
    assert "width 16, not 32" in errors and "--width 16" in errors
    assert "Traceback" not in errors
