"""Configurations of signals: YAML, Python and the environment."""

import gt
import pytest
from processes import run_python


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:\n  shrad: {axis: 0}\n", ["signals.yaml", "line 2", "'shard'"]),
        ("a:\n  shard: {axis: x}\n", ["signals.yaml", "line 2"]),
        ("a: {shard: {workers: []}}", ["'a'", "empty"]),
        ("a: {shard: {workers: [1, 1]}}", ["twice"]),
        ("a: {", ["signals.yaml"]),
    ],
)
def test_mistakes_are_located(tmp_path, text, words):
    with pytest.raises(ValueError) as caught:
        gt.load_config(write(tmp_path, text))
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_the_environment_is_read_at_import(tmp_path):
    path = write(tmp_path, "a: {compile: true}\n")
    done = run_python("import gt; print(gt.get_signal_config('a').compile)", GT_CONFIG=str(path))
    assert done.stdout == "True\n", done
    done = run_python("import gt", GT_CONFIG=str(tmp_path / "missing.yaml"))
    assert done.returncode == 1 and "missing.yaml" in done.stderr
