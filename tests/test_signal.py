"""Signals: named scopes, which never change a result."""

import threading

import gt
import pytest
from processes import unsharded_only

pytestmark = unsharded_only


@pytest.fixture(autouse=True)
def clean():
    yield
    gt.get_config().clear()


def test_scopes_nest():
    assert gt.signal.current_signal() is None and gt.signal.current_backward_signal() is None
    with gt.signal.context("outer", backward="back"):
        assert gt.signal.current_signal() == "outer"
        assert gt.signal.current_backward_signal() == "back"
        with gt.signal("inner"):
            assert gt.signal.current_signal() == "inner"
        with gt.signal.context("outer"):
            assert gt.signal.current_backward_signal() is None
        assert gt.signal.current_backward_signal() == "back"
    assert gt.signal.current_signal() is None


def test_a_scope_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), gt.signal("failing"):
        raise ZeroDivisionError
    assert gt.signal.current_signal() is None


def test_enter_and_exit_must_match():
    gt.signal.enter("first", backward="b")
    gt.signal.enter("second")
    with pytest.raises(RuntimeError, match="'first'.*'second'|'second'.*'first'"):
        gt.signal.exit("first")
    assert gt.signal.current_signal() == "second", "the error closes no scope"
    gt.signal.exit("second")
    gt.signal.exit("first")
    with pytest.raises(RuntimeError, match="no signal scope"):
        gt.signal.exit("first")


def test_threads_have_their_own_scopes():
    seen = []

    def work(number):
        before = gt.signal.current_signal()
        with gt.signal(f"thread {number}"):
            (gt.ones(3) + number).sum().item()
            seen.append((before, gt.signal.current_signal() == f"thread {number}"))

    with gt.signal("main"):
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert gt.signal.current_signal() == "main"
    assert seen == [(None, True)] * 4


def test_the_configuration_may_name_the_backward_signal():
    gt.register_config("layer", gt.SignalConfig(backward_signal="layer_backward"))
    with gt.signal("layer"):
        assert gt.signal.current_backward_signal() == "layer_backward"
    with gt.signal("layer", backward="given"):
        assert gt.signal.current_backward_signal() == "given"


def test_a_placed_copy_has_the_same_values():
    x = gt.randn(4, 3, requires_grad=True)
    copy = gt.signal.tensor(x, name="anywhere", backward_name="back")
    assert copy is not x and copy.tolist() == x.tolist() and copy.dtype == x.dtype
    (copy * 2).sum().backward()
    assert x.grad.tolist() == [[2, 2, 2]] * 4


def test_signals_never_change_a_result():
    gt.register_config("known", gt.SignalConfig(shard=gt.ShardConfig(axis=0), compile=True))

    def run():
        gt.manual_seed(5)
        x = gt.randn(4, 4, requires_grad=True)
        loss = (x @ gt.randn(4, 4)).tanh().sum()
        loss.backward()
        return [loss.item(), *x.grad.flatten().tolist()]

    # The sum of a sharded tensor adds up in another order.
    plain = pytest.approx(run(), rel=1e-6)
    for name in ("known", "unknown"):
        with gt.signal.context(name, backward="else"):
            assert run() == plain
        assert run() == plain


def test_the_tape_names_the_signal():
    x = gt.ones(2, requires_grad=True)
    with gt.signal("layer1"):
        y = x * 2
    z = y + 1
    signals = [entry["signal"] for entry in gt.debug.get_tape()[-2:]]
    assert signals == ["layer1", None], z
