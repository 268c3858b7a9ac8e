"""Activation checkpointing: the same gradients with less memory."""

import contextlib
import functools
import warnings

import gt
import numpy as np
import pytest
from gt import nn
from gt.nn import functional as F
from gt.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


@pytest.fixture(autouse=True)
def no_warnings():
    """Fail on warnings that a function is not checkpointed; some tests expect them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def plainly(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
    return function(*args, **kwargs)


def both(program):
    """Return the gradients of a program, without checkpoints and with them."""
    results = []
    for call in (plainly, checkpoint):
        gt.manual_seed(0)
        results.append([None if each is None else each.numpy() for each in program(call)])
    return results


def check(program):
    plain, again = both(program)
    assert len(plain) == len(again) > 0
    for one, other in zip(plain, again, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)


def block(width=6):
    return nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Dropout(0.5))


def grads(loss, *tensors):
    loss.backward()
    return [each.grad for each in tensors]


def test_a_module():
    def program(call):
        x = gt.randn(3, 6, requires_grad=True)
        blocks = [block() for _ in range(3)]
        out = x
        for each in blocks:
            out = call(each, out, use_reentrant=False)
        parameters = [each for one in blocks for each in one.parameters()]
        return [out.detach(), *grads(out.square().sum(), x, *parameters), gt.rand(2)]

    check(program)


def test_arguments_of_all_kinds():
    def function(pair, factor, names, *, table, power=1, flag=None):
        a, b = pair
        out = a * factor + table["c"][0] * b
        assert names == ("a", "b") and flag is True
        return {"out": out**power, "constant": gt.ones(2), "text": "ok", "list": [a + b, 3]}

    def program(call):
        a, b = gt.randn(4, requires_grad=True), gt.randn(4)
        c = gt.randn(4, requires_grad=True)
        out = call(function, (a, b), 2.5, ("a", "b"), table={"c": [c]}, power=2, flag=True)
        assert out["text"] == "ok" and out["list"][1] == 3 and not out["constant"].requires_grad
        loss = out["out"].sum() + (out["list"][0] * 3).sum()
        return [*grads(loss, a, b, c), out["constant"]]

    check(program)


def test_functions_that_close_over_parameters():
    layer = nn.Linear(6, 6)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = block()
            self.scale = nn.Parameter(gt.full((6,), 2.0))

        def part(self, x):
            return self.inner(x) * self.scale

        def forward(self, x, call):
            return call(self.part, call(lambda given: self.inner(given) + layer(given), x))

    def program(call):
        gt.manual_seed(1)
        model, x = Model(), gt.randn(3, 6)
        layer.zero_grad()
        out = model(x, call)
        return grads(out.square().sum(), *model.parameters(), *layer.parameters())

    check(program)


WEIGHT = None


def of_a_global(x):
    return (lambda given: given * WEIGHT)(x)


class Holder:
    __slots__ = ("weight",)

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, x):
        return x * self.weight


@pytest.mark.parametrize("form", ["global", "partial", "slots", "default", "list"])
def test_parameters_of_functions_are_found(form):
    def program(call):
        global WEIGHT
        WEIGHT = gt.ones(4, requires_grad=True)
        functions = {
            "global": of_a_global,
            "partial": functools.partial(lambda weight, x: x * weight, WEIGHT),
            "slots": Holder(WEIGHT),
            "default": lambda x, weight=WEIGHT: x * weight,
            "list": (lambda listed: lambda x: x * listed[0]["w"])([{"w": WEIGHT}]),
        }
        return grads(call(functions[form], gt.randn(4)).square().sum(), WEIGHT)

    check(program)


def test_gradients_by_autograd_grad():
    def program(call):
        layer, x = nn.Linear(6, 6), gt.randn(2, 6, requires_grad=True)
        out = call(lambda given: layer(given).tanh(), x * 2)
        return gt.autograd.grad(out.sum(), [x, layer.weight])

    check(program)


def test_gradients_of_gradients():
    def program(call):
        x = gt.randn(4, requires_grad=True)
        out = call(lambda given: (given**3).sin(), x * 2)
        (first,) = gt.autograd.grad(out.sum(), x, create_graph=True)
        return [first.detach(), *gt.autograd.grad(first.square().sum(), x)]

    check(program)
    layer, x = nn.Linear(2, 2), gt.ones(1, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="gradients of gradients"):
        gt.autograd.grad(checkpoint(layer, x * 2).sum(), x, create_graph=True)


def test_checkpoints_inside_checkpoints():
    def program(call):
        inner, outer = block(), block()
        x = gt.randn(2, 6, requires_grad=True)

        def function(given):
            return outer(call(inner, given) + call(lambda again: inner(again) * 2, given))

        out = call(function, x)
        parameters = [*inner.parameters(), *outer.parameters()]
        return grads(out.sum(), x, *parameters)

    check(program)


def test_tensors_used_inside_and_outside_of_checkpoints():
    def program(call):
        weight = gt.randn(6, 6, requires_grad=True)
        x = gt.randn(2, 6, requires_grad=True)
        before = x @ weight
        out = call(lambda given: (given @ weight).tanh(), before)
        again = call(lambda given: (given @ weight).tanh(), before)
        return grads((out * again + before @ weight).sum(), x, weight)

    check(program)


def test_a_retained_graph_is_used_twice():
    x = gt.ones(3, requires_grad=True)
    out = checkpoint(lambda given: given**2, x).sum()
    out.backward(retain_graph=True)
    out.backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_as_a_decorator():
    weight = gt.full((3,), 2.0, requires_grad=True)

    @checkpoint(use_reentrant=False)
    def scaled(given, power=1):
        return (given * weight) ** power

    x = gt.ones(3, requires_grad=True)
    scaled(x, power=2).sum().backward()
    assert x.grad.tolist() == [8.0, 8.0, 8.0] and weight.grad.tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(ValueError, match="no function"):
        checkpoint(None, x)


def test_arguments_that_change_after_the_forward_pass():
    x, y = gt.ones(3, requires_grad=True), gt.full((3,), 2.0)
    middle = x * 1
    out = checkpoint(lambda a, b: a * a * b, middle, y)
    middle.add_(5)
    y.zero_()
    out.sum().backward()
    assert x.grad.tolist() == [4.0, 4.0, 4.0]


def test_nothing_to_differentiate():
    out = checkpoint(lambda given: given * 2, gt.ones(2))
    assert not out.requires_grad
    x = gt.ones(2, requires_grad=True)
    with gt.no_grad():
        assert not checkpoint(lambda given: given * 2, x).requires_grad
    assert checkpoint(lambda given: None, x) is None
    out = checkpoint(lambda given: given.detach(), x)
    assert not out.requires_grad


def test_random_numbers():
    x = gt.ones(100, requires_grad=True)
    gt.manual_seed(0)
    out = checkpoint(lambda given: F.dropout(given, 0.5), x)
    after = gt.rand(2)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), out.detach().numpy())
    state = gt.get_rng_state()
    gt.manual_seed(0)
    F.dropout(x, 0.5)
    np.testing.assert_array_equal(gt.rand(2).numpy(), after.numpy())
    assert gt.equal(gt.get_rng_state(), state)
    x.grad = None
    out = checkpoint(lambda given: F.dropout(given, 0.5), x, preserve_rng_state=False)
    out.sum().backward()
    assert (x.grad.numpy() != out.detach().numpy()).any()


def test_contexts():
    seen = []

    @contextlib.contextmanager
    def note(text):
        seen.append(text)
        yield

    x = gt.ones(2, requires_grad=True)
    contexts = lambda: (note("forward"), note("again"))  # noqa: E731
    out = checkpoint(lambda given: given * 2, x, context_fn=contexts)
    assert seen == ["forward"]
    out.sum().backward()
    assert seen == ["forward", "again"]


def test_a_different_recomputation_raises():
    counted = []

    def function(given):
        counted.append(1)
        return given[: len(counted)] * 2

    x = gt.ones(3, requires_grad=True)
    out = checkpoint(function, x)
    with pytest.raises(CheckpointError, match="other shapes or dtypes"):
        out.sum().backward()
    counted.clear()
    with set_checkpoint_debug_enabled(True), set_checkpoint_early_stop(False):
        out = checkpoint(function, x)
    with pytest.raises(CheckpointError, match=r"result 0: \(\(1,\)"):
        out.sum().backward()
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(function, x, determinism_check="some")


def test_tensors_that_cannot_be_replaced():
    def program(call):
        x, other = gt.randn(3, requires_grad=True), gt.randn(3, requires_grad=True)
        computed = other * 2
        out = call(lambda given: F.dropout(given * computed, 0.5), x)
        return [out.detach(), *grads(out.sum(), x, other)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(program)
    computed = gt.ones(3, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="pass the tensor"):
        checkpoint(lambda given: given * computed, gt.ones(3))
    passed = checkpoint(lambda given, also: given * also, gt.ones(3), computed)
    assert passed.requires_grad


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_segments(segments):
    def program(call):
        model, x = nn.Sequential(*[block() for _ in range(5)]), gt.randn(2, 6, requires_grad=True)
        if call is checkpoint:
            out = checkpoint_sequential(model, segments, x, use_reentrant=False)
        else:
            out = model(x)
        return grads(out.sum(), x, *model.parameters())

    check(program)


def test_mistakes_with_segments():
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint_sequential([abs], 1, gt.ones(1), other=3)
    with pytest.raises(ValueError, match="segments is 3"):
        checkpoint_sequential([abs], 3, gt.ones(1))


def test_gradients_equal_those_of_pytorch():
    torch = pytest.importorskip("torch")
    their = pytest.importorskip("torch.utils.checkpoint")
    layer = torch.nn.Linear(4, 4)
    own = nn.Linear(4, 4)
    own.load_state_dict(layer.state_dict())
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    theirs, ours = torch.tensor(x, requires_grad=True), gt.from_numpy(x).requires_grad_()
    their.checkpoint(
        lambda given: layer(given).tanh(), theirs, use_reentrant=False
    ).sum().backward()
    checkpoint(lambda given: own(given).tanh(), ours, use_reentrant=False).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-5)
    np.testing.assert_allclose(own.weight.grad.numpy(), layer.weight.grad.numpy(), rtol=1e-5)


def peak(call):
    """Return the peak bytes of a worker that trains a deep model."""
    with gt.Session(workers=1):
        x = gt.randn(2000, 50)
        blocks = [
            nn.Sequential(nn.Linear(50, 50), nn.Tanh(), nn.Linear(50, 50), nn.Tanh(), nn.Tanh())
            for _ in range(10)
        ]
        out = x
        for each in blocks:
            out = call(each, out)
        out.sum().backward()
        total = sum(parameter.grad.sum() for each in blocks for parameter in each.parameters())
        total.item()
        (stats,) = gt.debug.get_worker_stats().values()
        return stats["memory"]["bytes_peak"]


def test_memory():
    assert peak(checkpoint) < 0.6 * peak(plainly)
