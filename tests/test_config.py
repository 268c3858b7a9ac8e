"""Signals and their configurations."""

import threading

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


def test_scopes():
    assert gt.signal.current_signal() is None
    with gt.signal.context("outer", backward="back"):
        assert gt.signal.current_backward_signal() == "back"
        with gt.signal("inner"):
            assert gt.signal.current_signal() == "inner"
            seen = []
            thread = threading.Thread(target=lambda: seen.append(gt.signal.current_signal()))
            thread.start()
            thread.join()
            assert seen == [None]
        assert gt.signal.current_signal() == "outer"
        with pytest.raises(RuntimeError, match="'outer'"):
            gt.signal.exit("other")
    gt.signal.enter("manual")
    gt.signal.exit("manual")
    with pytest.raises(RuntimeError, match="no signal scope"):
        gt.signal.exit("manual")
    gt.register_config("configured", gt.SignalConfig(backward_signal="from config"))
    with gt.signal.context("configured"):
        assert gt.signal.current_backward_signal() == "from config"


def test_signals_never_change_a_number():
    x = gt.randn(4, 4, requires_grad=True)
    (x @ x).sum().backward()
    plain, x.grad = x.grad.numpy(), None
    with gt.signal.context("anything", backward="else"):
        y = gt.signal.tensor(x, name="more", backward_name="still more")
        (y @ y).sum().backward()
    assert (x.grad.numpy() == plain).all()


def test_worker_statistics(capsys):
    gt.ones(3).tolist()
    stats = gt.debug.get_worker_stats()
    for worker in stats.values():
        assert worker["operations"]["total"] == worker["operations"]["eager"]
        assert worker["engine"] == "native" and worker["memory"]["bytes_peak"] >= 0
    gt.debug.print_worker_stats()
    assert "operations:" in capsys.readouterr().out
