"""Configurations of signals from YAML, Python and the environment."""

import re

import gt
import pytest
from processes import run_python, unsharded_only

pytestmark = unsharded_only


@pytest.fixture(autouse=True)
def clean():
    yield
    gt.get_config().clear()


def write(tmp_path, text):
    path = tmp_path / "signals.yaml"
    path.write_text(text)
    return path


def test_yaml_and_python_mix(tmp_path):
    path = write(
        tmp_path, "a:\n  shard: {axis: 1, workers: [0, 2]}\n  backward: b\n  compile: true\nb: {}\n"
    )
    gt.load_config(path)
    a = gt.get_signal_config("a")
    assert a == gt.SignalConfig(gt.ShardConfig(1, [0, 2]), "b", True)
    gt.register_config("a", gt.SignalConfig(compile=False))
    assert gt.get_signal_config("a").shard is None and gt.get_config().has_signal("b")
    assert gt.get_signal_config("unknown") is None
    with pytest.raises(TypeError, match="SignalConfig"):
        gt.register_config("a", {})


def test_signals_keep_the_order_of_the_file(tmp_path):
    gt.load_config(write(tmp_path, "z: {}\na:\n  shard: {workers: null, replicated: true}\nm:\n"))
    signals = gt.get_config().signals
    assert list(signals) == ["z", "a", "m"]
    assert signals["a"].shard == gt.ShardConfig(0, None, True)
    assert signals["m"] == gt.SignalConfig()


def test_a_later_file_adds_and_replaces(tmp_path):
    gt.load_config(write(tmp_path, "a: {compile: true}\nb: {compile: true}\n"))
    gt.load_config(write(tmp_path, "a: {backward: registered_later}\n# nothing else\n"))
    assert gt.get_signal_config("a") == gt.SignalConfig(backward_signal="registered_later")
    assert gt.get_signal_config("b").compile
    gt.register_config("registered_later", gt.SignalConfig(gt.ShardConfig(workers=[1])))
    with gt.signal.context("a"):
        assert gt.signal.current_backward_signal() == "registered_later"


WORKERS = "a list of worker numbers, or null for all workers"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "a:\n  shrad: {axis: 0}\n",
            ":2:3: 'a.shrad' is not a known key, expected shard, backward, compile\n"
            "  hint: did you mean 'shard'?",
        ),
        (
            "a:\n  shard:\n    worker: [0]\n",
            ":3:5: 'a.shard.worker' is not a known key, expected axis, workers, replicated, mesh\n"
            "  hint: did you mean 'workers'?",
        ),
        ("a:\n  shard: {axis: x}\n", ":2:17: 'a.shard.axis' is 'x', expected a whole number"),
        (
            "a: {shard: {workers: []}}",
            f":1:22: 'a.shard.workers' is an empty list, expected {WORKERS}",
        ),
        ("a: {shard: {workers: all}}", f":1:22: 'a.shard.workers' is 'all', expected {WORKERS}"),
        (
            "a: {shard: {workers: [0, -1]}}",
            ":1:26: 'a.shard.workers[1]' is -1, expected a worker number: 0, 1, 2, ...",
        ),
        (
            "a: {shard: {workers: [1, 1]}}",
            ":1:26: 'a.shard.workers' names worker 1 twice, expected each worker once",
        ),
        ("a:\n  compile: 1\n", ":2:12: 'a.compile' is 1, expected true or false"),
        ("a: {backward: [b]}", ":1:15: 'a.backward' is a list, expected the name of a signal"),
        ("a: {}\nb: {}\na: {}\n", ":3:1: 'a' occurs twice, expected once"),
        ("- 1\n", ":1:1: 'the file' is a list, expected a name for each signal"),
    ],
)
def test_mistakes_are_located(tmp_path, text, error):
    path = write(tmp_path, text)
    with pytest.raises(ValueError) as caught:
        gt.load_config(path)
    assert str(caught.value) == f"{path}{error}"
    assert not gt.get_config().signals


def test_invalid_yaml_is_located(tmp_path):
    path = write(tmp_path, "a:\n\tb: 1\n")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}:2:.*cannot be read"):
        gt.load_config(path)
    with pytest.raises(FileNotFoundError, match="nowhere.yaml"):
        gt.load_config("nowhere.yaml")


def test_the_environment_is_read_at_import(tmp_path):
    path = write(tmp_path, "a: {compile: true}\n")
    done = run_python("import gt; print(gt.get_signal_config('a').compile)", GT_CONFIG=str(path))
    assert done.stdout == "True\n", done
    done = run_python("import gt", GT_CONFIG=str(tmp_path / "missing.yaml"))
    assert done.returncode == 1 and "missing.yaml" in done.stderr
    path = write(tmp_path, "a: {compil: true}\n")
    done = run_python("import gt", GT_CONFIG=str(path))
    assert done.returncode == 1 and "did you mean 'compile'?" in done.stderr
