"""Sessions as objects: a block has its own session, and tensors stay in their session."""

import gc

import gt
import numpy as np
import pytest
from processes import linux_only


def test_a_block_has_its_own_session():
    outside = gt.current_session()
    with gt.Session() as session:
        assert gt.current_session() is session and session != outside
        x = gt.ones(3)
        assert gt.Session.of(x) is session and (x + 1).tolist() == [2, 2, 2]
        assert not session.closed and "this process, 1 worker(s)>" in repr(session)
    assert session.closed and repr(session).endswith(", closed>")
    assert gt.current_session() is outside and gt.ones(2).tolist() == [1, 1]


def test_blocks_are_nested():
    with gt.Session() as outer:
        a = gt.ones(2)
        with gt.Session(workers=2) as inner:
            b = gt.ones(2)
            assert len(gt.status().workers) == len(gt.debug.get_worker_stats()) == 2
            with outer.use() as same:
                assert same is outer and gt.current_session() is outer
                assert (gt.ones(2) + a).tolist() == [2, 2]
            assert (gt.ones(2) + b).tolist() == [2, 2]
        assert inner.closed and not outer.closed
        assert gt.current_session() is outer and (gt.ones(2) + a).tolist() == [2, 2]


def test_an_exception_closes_the_session_and_propagates():
    outside = gt.current_session()
    with pytest.raises(ZeroDivisionError), gt.Session() as session:
        gt.ones(1000, 1000).sum()
        raise ZeroDivisionError
    assert session.closed and gt.current_session() is outside


def test_a_closed_session_raises():
    with gt.Session() as session:
        x = gt.ones(3)
    session.close()
    for use in (
        lambda: session.__enter__(),
        lambda: session.use().__enter__(),
        lambda: session.manual_seed(1),
        lambda: session.synchronize(),
    ):
        with pytest.raises(ConnectionError, match=r"^session \d+ is closed \(this process, 1 "):
            use()
    with pytest.raises(ConnectionError, match="the session is closed"):
        (x + 1).tolist()
    assert gt.ones(1).item() == 1


def test_a_session_that_is_closed_inside_its_block_raises():
    with gt.Session() as session:
        gt.ones(1)
        session.close()
        for use in (lambda: gt.ones(1), gt.status, gt.current_session, gt.debug.get_worker_stats):
            with pytest.raises(ConnectionError, match="of this `with` block is closed"):
                use()
        gt.synchronize()
    assert gt.ones(1).item() == 1


@linux_only
def test_a_closed_session_holds_no_memory():
    def memory() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    with gt.Session() as session:
        gt.ones(10).tolist()
        before = memory()
        x = gt.arange(25_000_000)
        x.sum().item()
        assert memory() - before > 150 << 20
    del x
    gc.collect()
    assert memory() - before < 50 << 20 and session.closed


def test_blocks_of_generators_may_end_in_any_order():
    def numbers(session):
        with session.use():
            yield gt.current_session()
            yield gt.current_session()

    outside = gt.current_session()
    with gt.Session() as a, gt.Session() as b:
        first, second = numbers(a), numbers(b)
        assert next(first) is a and next(second) is b
        first.close()
        assert gt.current_session() is b
        second.close()
    assert gt.current_session() is outside


def test_tensors_of_two_sessions_do_not_mix():
    x = gt.ones(3, requires_grad=True)
    with gt.Session(workers=2) as session:
        y = gt.ones(3)
        loss = gt.ones(3, requires_grad=True)

        def assign_data():
            y.data = x

        def assign_grad():
            y.grad = x

        for name, mix in {
            "add": lambda: x + y,
            "cat": lambda: gt.cat([x, y]),
            "where": lambda: gt.where(y > 0, y, x),
            "copy_": lambda: y.copy_(x),
            "sub_": lambda: y.__isub__(x),
            "data": assign_data,
            "grad": assign_grad,
            "backward": lambda: loss.backward(x),
        }.items():
            with pytest.raises(RuntimeError, match="belong to different sessions") as caught:
                mix()
            lines = str(caught.value).splitlines()
            assert name == "sub_" or lines[0].startswith(name), lines
            places = sorted(lines[1:3])
            assert f"  {repr(session)[4:-1].lower()}" in places, lines
            assert any(repr(gt.Session.of(x))[4:-1].lower() in place for place in places), lines
            assert "gt.Session.of(a).use()" in lines[3]
        assert gt.Session.of(y) is session
        with gt.Session.of(x).use():
            brought = gt.from_numpy(y.numpy())
        assert (x + brought).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match=r"worker\(s\), closed\n  hint: a closed session's"):
        x + y


def test_operations_stay_in_the_session_of_their_tensors():
    """Modules and optimizers create tensors in the session of their own tensors, in any block."""
    model = gt.nn.Sequential(gt.nn.Linear(4, 5), gt.nn.Dropout(0.5), gt.nn.Linear(5, 3))
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    x, y = gt.randn(8, 4), gt.randint(0, 3, (8,))
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    long = gt.arange(5000)
    with gt.Session():
        for _ in range(2):
            loss = gt.nn.cross_entropy_loss(model(x), y)
            loss = loss + gt.nn.cross_entropy_loss(model(x), [0] * 8)
            loss = loss + gt.nn.mse_loss(model(x), np.zeros((8, 3), "float32"))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        assert loss.item() > 0
        optimizer.load_state_dict(optimizer.state_dict())
        model.load_state_dict(state)
        assert gt.nn.functional.one_hot(y, 3).shape == (8, 3)
        assert repr(long) == "tensor([   0,    1,    2, ..., 4997, 4998, 4999], dtype=int64)"
        assert gt.add([1.0, 2.0], x[0, :2]).shape == (2,) and gt.equal(x, x)
    assert (model(x) - model(x)).shape == (8, 3)


def test_seeds_are_a_sessions_own():
    gt.manual_seed(5)
    first = gt.rand(3).tolist()
    with gt.Session() as session:
        assert gt.rand(3).tolist() == first, "a session starts with the seed of the program"
        gt.manual_seed(6)
        second = gt.rand(3).tolist()
        session.manual_seed(6)
        assert second != first and gt.rand(3).tolist() == second
    third = gt.rand(3).tolist()
    with gt.Session():
        assert gt.rand(3).tolist() == first
    gt.manual_seed(5)
    assert gt.rand(3).tolist() == first and gt.rand(3).tolist() == third


def test_explanations_and_limits_stay_with_their_session():
    with gt.Session(workers=2) as session:
        x = gt.ones(4)
        with gt.debug.explain(quiet=True) as outer, gt.debug.strict():
            y = x + 1
            with gt.Session(), gt.debug.explain(quiet=True) as inner:
                gt.zeros(2)
                y = y * 2
        assert [step.operation for step in outer.steps] == ["add", "mul"]
        assert [step.operation for step in inner.steps] == ["full"]
        with pytest.raises(ConnectionError), gt.debug.explain(quiet=True):
            session.close()
    with gt.debug.explain(quiet=True) as again:
        gt.zeros(2)
    assert len(again.steps) == 1


def test_functions_of_the_default_session_raise_in_a_block():
    with gt.Session() as session:
        for change in (lambda: gt.connect("localhost:1"), lambda: gt.gpu_workers(2)):
            with pytest.raises(RuntimeError, match="inside a `with` block of session") as caught:
                change()
            assert "gt.Session(" in str(caught.value)
        with session.use(), pytest.raises(RuntimeError, match="a session that others have opened"):
            gt.disconnect()
        assert not session.closed
        gt.disconnect()
        assert session.closed
        gt.disconnect()
    assert gt.ones(1).item() == 1


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"workers": 0}, ValueError, "at least one worker is needed, 0 given"),
        ({"workers": -1}, ValueError, "at least one worker is needed, -1 given"),
        ({"workers": "two"}, TypeError, "workers"),
        ({"address": 12345}, TypeError, "address"),
        ({"address": "localhost:1", "workers": 2}, ValueError, "workers=2 given with the address"),
        ({"key_file": "a.key"}, ValueError, "key_file='a.key' given without an address"),
        ({"insecure": True}, ValueError, "insecure=True given without an address"),
        ({"address": "localhost:1"}, ConnectionError, "nothing answers at localhost:1"),
        ({"address": "localhost:many"}, ConnectionError, "many"),
        ({"address": "nowhere.invalid:1"}, ConnectionError, "nowhere.invalid"),
        ({"address": "localhost:1", "key_file": "/no.key"}, ConnectionError, "/no.key"),
    ],
)
def test_wrong_arguments_raise(arguments, kind, words):
    session = gt.current_session()
    with pytest.raises(kind, match=words):
        gt.Session(**arguments)
    assert gt.current_session() is session
