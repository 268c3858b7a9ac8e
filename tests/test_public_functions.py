"""Public functions are like functions: collected, referred to, pickled; errors pass unchanged."""

import copy
import functools
import gc
import inspect
import pickle
import pydoc
import sys
import traceback
import typing
import weakref
from unittest import mock

import gt
import numpy as np
import pytest
from gt import nn
from gt.nn import functional


@pytest.mark.parametrize(
    "made", [lambda f: gt.no_grad()(f), gt.func.grad, gt.vmap], ids=["no_grad", "grad", "vmap"]
)
def test_a_cycle_through_a_closure_is_collected(made):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.predict = made(self.forward)

        def forward(self, x):
            return x

    model = Model()
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_weak_references():
    reference = weakref.ref(functional.relu)
    assert reference() is functional.relu
    module = nn.Linear(2, 2)
    assert weakref.WeakMethod(module.state_dict)()().keys() == {"weight", "bias"}


def test_references_are_counted():
    function, x = functional.softplus, gt.ones(2)
    for error in (False, True):
        before = sys.getrefcount(function), sys.getrefcount(x)
        for _ in range(50):
            if error:
                with pytest.raises(TypeError):
                    function(x, "a", "b", "c", "d")
            else:
                function(x)
        gc.collect()
        assert (sys.getrefcount(function), sys.getrefcount(x)) == before


def test_names_signatures_pickles_and_copies():
    assert inspect.signature(functional.linear).parameters.keys() == {"input", "weight", "bias"}
    assert functional.linear.__name__ == "linear" and functional.linear.__doc__
    assert pickle.loads(pickle.dumps(functional.gelu)) is functional.gelu
    assert copy.deepcopy(functional.gelu) is functional.gelu
    bound = gt.ones(3).roll
    assert bound(1).tolist() == [1, 1, 1]


def test_errors_of_users_code_pass_unchanged():
    class Model(nn.Module):
        def forward(self, x):
            try:
                {}["inner"]
            except KeyError:
                raise TypeError("matmul: mine")  # noqa: B904

    with pytest.raises(TypeError, match="^matmul: mine$") as caught:
        try:
            1 / 0  # noqa: B018
        except ZeroDivisionError:
            Model()(gt.ones(1))
    assert isinstance(caught.value.__context__, KeyError)
    assert isinstance(caught.value.__context__.__context__, ZeroDivisionError)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["test_errors_of_users_code_pass_unchanged", "forward"]


def test_an_error_about_arguments_shows_none_of_their_values():
    class Evil:
        def __repr__(self):
            raise RuntimeError("shown")

    bad = gt.ones(3)[gt.tensor([9], dtype=gt.int64)]
    for given in (Evil(), [bad], bad):
        with pytest.raises(TypeError, match="^Linear: missing"):
            nn.Linear(given)
    with pytest.raises(TypeError, match="^softmax: "):
        gt.softmax(Evil(), 0)


@pytest.mark.parametrize("place", [0, 1])
def test_arrays_are_operands_in_each_place(place):
    x, other = np.array([[1.0, 2], [3, 4]], "f"), np.array([[0.5, 2], [3, 9]], "f")
    for function in (gt.isin, gt.float_power, gt.maximum, gt.add, gt.allclose, gt.dist):
        expected = function(gt.tensor(x), gt.tensor(other))
        given = [gt.tensor(x), gt.tensor(other)]
        given[place] = (x, other)[place]
        result = function(*given)
        assert type(result) is type(expected)
        assert np.array_equal(np.asarray(result), np.asarray(expected)), function


def test_what_would_be_written_into_an_array_is_refused():
    x = np.ones((2, 3), "f")
    with pytest.raises(TypeError, match="relu_: input is written to"):
        gt.relu_(x)
    with pytest.raises(TypeError, match="relu: input is written to"):
        functional.relu(x, inplace=True)
    with pytest.raises(TypeError, match="batch_norm: running_mean is written to"):
        functional.batch_norm(gt.tensor(x), np.zeros(3, "f"), np.ones(3, "f"), training=True)


FUNCTIONS = [
    functional.relu,
    gt.stack,
    gt.save,
    nn.utils.clip_grad_norm_,
    gt.utils.data.random_split,
    nn.Linear.forward,
    nn.Linear.__init__,
    nn.Module.to,
    gt.optim.SGD.step,
    nn.utils.rnn.pad_sequence,
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__qualname__)
def test_introspection_as_of_plain_functions(function):
    assert inspect.isfunction(function) and inspect.isroutine(function)
    assert inspect.getsource(function) and inspect.getsourcefile(function).endswith(".py")
    own = function.__wrapped__
    for name in ("__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__"):
        assert getattr(function, name) is getattr(own, name)
    assert inspect.getfullargspec(function).args == inspect.getfullargspec(own).args
    assert inspect.signature(functools.partial(function)) == inspect.signature(own)
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function
    assert typing.get_type_hints(function) == typing.get_type_hints(own)
    assert function.__name__ in pydoc.render_doc(function)
    signatures = [inspect.signature(mock.create_autospec(each)) for each in (function, own)]
    assert signatures[0] == signatures[1]


def test_replaced_functions_and_subclasses(monkeypatch):
    calls = []
    monkeypatch.setattr(functional, "relu", lambda *args, **kwargs: calls.append(args))
    functional.relu(gt.ones(2))
    assert len(calls) == 1

    class Shifted(nn.Linear):
        def forward(self, input):
            return super().forward(input) + 1

    assert Shifted(2, 3)(gt.ones(2)).shape == (3,)


def test_generators_and_contexts_are_as_plain_ones():
    named = nn.Linear(2, 2).named_parameters()
    assert inspect.isgenerator(named)
    assert next(named)[0] == "weight"
    named.close()
    assert list(named) == []

    @gt.no_grad()
    def values():
        try:
            sent = yield gt.is_grad_enabled()
        except KeyError:
            sent = yield "thrown"
        return sent

    generator = values()
    assert next(generator) is False
    assert generator.throw(KeyError()) == "thrown"
    with pytest.raises(StopIteration) as end:
        generator.send(5)
    assert end.value.value == 5

    before = gt.backends.cudnn.benchmark
    with pytest.raises(ZeroDivisionError), gt.backends.cudnn.flags(benchmark=not before):
        assert gt.backends.cudnn.benchmark is not before
        raise ZeroDivisionError
    assert gt.backends.cudnn.benchmark is before


def test_other_operands_have_their_own_operators():
    class Unit:
        def __radd__(self, other):
            return "added"

        def __rmatmul__(self, other):
            return "multiplied"

    assert gt.ones(2) + Unit() == "added" and gt.ones(2) @ Unit() == "multiplied"


def test_a_setting_with_a_near_name_is_warned_of(monkeypatch):
    for settings, wrong, near in (
        (gt.backends.cudnn, "benchmrk", "benchmark"),
        (gt.backends.cuda.matmul, "allow_tf23", "allow_tf32"),
    ):
        with pytest.warns(UserWarning, match=near) as warned:
            monkeypatch.setattr(settings, wrong, True, raising=False)
        assert warned[0].filename.endswith("monkeypatch.py")
        setattr(settings, wrong, False)  # once


LAYERS = [kind for kind in vars(nn).values() if isinstance(kind, type)]


@pytest.mark.parametrize("kind", LAYERS, ids=lambda kind: kind.__name__)
def test_types_of_constructors_are_found(kind):
    """Also of those that are written from a class's options, in another module."""
    parameters = inspect.signature(kind.__init__).parameters
    hints = typing.get_type_hints(kind.__init__)
    assert hints.keys() - parameters.keys() <= {"return"}
    if "_declared" in vars(kind):
        assert set(parameters) - {"self"} <= hints.keys()
