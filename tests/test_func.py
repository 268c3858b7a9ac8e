"""`gt.func` compared with `torch.func`."""

import doctest

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")

#: PyTorch warns of missing batching rules, and of deprecated functions.
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3)).astype("float32")
T = RNG.integers(0, 2, size=4)
WEIGHTS = {
    "first": RNG.normal(size=(5, 3)).astype("float32"),
    "bias": RNG.normal(size=5).astype("float32"),
    "second": RNG.normal(size=(2, 5)).astype("float32"),
}


def compare(got, want):
    """Compare trees of tensors of both libraries."""
    if isinstance(want, dict):
        assert list(got) == list(want)
        got, want = list(got.values()), list(want.values())
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            compare(one, other)
        return
    assert got.shape == tuple(want.shape)
    assert got.requires_grad == want.requires_grad
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=2e-4, atol=1e-5)


def both(function):
    compare(function(gt), function(torch))


def tensors(lib, arrays=WEIGHTS):
    return {name: lib.tensor(array) for name, array in arrays.items()}


def loss(lib, weights, x, target):
    functional = lib.nn.functional
    hidden = functional.relu(functional.linear(x, weights["first"], weights["bias"]))
    logits = functional.linear(hidden, weights["second"])
    return functional.cross_entropy(logits.unsqueeze(0), target.unsqueeze(0))


def test_gradients_of_each_sample():
    def per_sample(lib):
        one = lib.func.grad(lambda weights, x, t: loss(lib, weights, x, t))
        mapped = lib.vmap(one, in_dims=(None, 0, 0))
        return mapped(tensors(lib), lib.tensor(X), lib.tensor(T))

    both(per_sample)


def attention(lib, weights, x):
    query, key, value = (x @ weights[name] for name in ("q", "k", "v"))
    scores = (query @ key.transpose(-2, -1) / 2).softmax(-1)
    return (scores @ value).square().sum()


def test_gradients_of_each_sample_of_attention():
    arrays = {name: RNG.normal(size=(3, 4)).astype("float32") for name in "qkv"}
    sequences = RNG.normal(size=(5, 6, 3)).astype("float32")

    def per_sample(lib):
        both_of = lib.func.grad_and_value(lambda weights, x: attention(lib, weights, x))
        mapped = lib.vmap(both_of, in_dims=(None, 0))
        return mapped(tensors(lib, arrays), lib.tensor(sequences))

    both(per_sample)


def test_fused_attention():
    x = RNG.normal(size=(2, 3, 6, 4)).astype("float32")

    def per_sample(lib):
        of = lib.nn.functional.scaled_dot_product_attention
        return lib.vmap(lib.func.grad(lambda x: of(x, x, x).sin().sum()))(lib.tensor(x))

    both(per_sample)


def test_grad_by_several_arguments_with_auxiliary_results():
    def of(lib):
        both_of = lib.func.grad_and_value(
            lambda a, b: ((a * b).sum(), a + 1), argnums=(0, 1), has_aux=True
        )
        return both_of(lib.tensor(X[0]), lib.tensor(X[1]))

    both(of)
    both(lambda lib: lib.func.grad(lambda x: lib.func.grad(lib.sin)(x))(lib.tensor(1.0)))
    both(lambda lib: lib.func.grad(lambda x, y: x * 2, argnums=1)(lib.tensor(1.0), lib.tensor(2.0)))


def test_value_and_grad():
    def of(a, b):
        return (a * b).sum(), a + 1

    a, b = gt.tensor(X[0]), gt.tensor(X[1])
    value, gradients = gt.func.value_and_grad(lambda a, b: of(a, b)[0], argnums=(0, 1))(a, b)
    assert float(value) == pytest.approx(float((X[0] * X[1]).sum()))
    assert [g.tolist() for g in gradients] == [b.tolist(), a.tolist()]
    (_, besides), gradient = gt.func.value_and_grad(of, has_aux=True)(a, b)
    assert besides.tolist() == (a + 1).tolist() and gradient.tolist() == b.tolist()
    with pytest.raises(RuntimeError, match="scalar Tensor"):
        gt.func.value_and_grad(gt.sin)(a)


def test_grad_of_vmap_of_grad():
    def of(lib):
        x = lib.tensor(X)

        def penalty(w):
            rows = lib.vmap(lib.func.grad(lambda w, x: (w @ x).sin()), in_dims=(None, 0))(w, x)
            return rows.square().sum()

        return lib.func.grad(penalty)(lib.tensor(X[0]))

    both(of)


def test_parameters_of_a_closure_keep_their_gradients():
    def of(lib):
        w = lib.tensor(X[0], requires_grad=True)
        gradients = lib.vmap(lib.func.grad(lambda x: (x * w).sin().sum()))(lib.tensor(X))
        gradients.sum().backward()
        return gradients, w.grad

    both(of)


def test_vjp():
    def of(lib):
        value, back = lib.func.vjp(lambda a, b: (a @ b, {"sum": a.sum()}), *map(lib.tensor, X[:2]))
        cotangents = (lib.tensor(2.0), {"sum": lib.tensor(1.0)})
        return value, back(cotangents)

    both(of)


def test_jacobians():
    both(lambda lib: lib.func.jacrev(lib.sin)(lib.tensor(X)))
    both(lambda lib: lib.func.jacrev(lambda a, b: a * b.sum(), (0, 1))(*map(lib.tensor, X[:2])))
    both(lambda lib: lib.vmap(lib.func.jacrev(lambda x: x.cumsum(0).sin()))(lib.tensor(X)))
    both(lambda lib: lib.func.hessian(lambda x: (x**3).sum() * x[0])(lib.tensor(X[0])))
    both(lambda lib: lib.vmap(lib.func.hessian(lambda x: x.prod().sin()))(lib.tensor(X)))


def test_no_graph_is_recorded_under_no_grad():
    x = gt.tensor(X[0], requires_grad=True)
    with gt.no_grad():
        assert not gt.func.grad(lambda x: x.square().sum())(x).requires_grad
    assert gt.func.grad(lambda x: x.square().sum())(x).requires_grad
    assert x.grad is None


def test_an_ensemble():
    gt.manual_seed(0)
    layers = [gt.nn.Sequential(gt.nn.Linear(3, 4), gt.nn.ReLU()) for _ in range(2)]
    parameters, buffers = gt.func.stack_module_state(layers)

    def call(parameters, buffers, x):
        return gt.func.functional_call(layers[0], (parameters, buffers), (x,))

    x = gt.tensor(X)
    got = gt.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    want = gt.stack([layer(x) for layer in layers])
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-5)


def test_a_module_with_other_parameters():
    layer = gt.nn.Linear(3, 2)
    before = layer.weight
    given = {"weight": gt.ones(2, 3)}
    got = gt.func.functional_call(layer, given, gt.ones(3))
    np.testing.assert_allclose(got.detach().numpy(), 3 + layer.bias.detach().numpy(), rtol=1e-6)
    assert layer.weight is before
    with pytest.raises(KeyError, match="missing"):
        gt.func.functional_call(layer, {"missing": gt.ones(1)}, gt.ones(3))
    with pytest.raises(ValueError, match="appeared in multiple"):
        gt.func.functional_call(layer, (given, given), gt.ones(3))
    with pytest.raises(RuntimeError, match="strict"):
        gt.func.functional_call(layer, given, gt.ones(3), strict=True)


class Cubed(gt.autograd.Function):
    """A function with a custom gradient."""

    @staticmethod
    def forward(ctx, x, w):
        """Save both arguments."""
        ctx.save_for_backward(x, w)
        return x**3 * w

    @staticmethod
    def backward(ctx, grad):
        """Return the gradients of both arguments."""
        x, w = ctx.saved_tensors
        return grad * 3 * x**2 * w, grad * x**3


def test_functions_with_custom_gradients():
    x, w = gt.tensor(X), gt.tensor(X[0], requires_grad=True)
    each = gt.vmap(gt.func.grad(lambda x: Cubed.apply(x, w).sum()))(x)
    np.testing.assert_allclose(each.detach().numpy(), 3 * X**2 * X[0], rtol=1e-5)
    gt.vmap(lambda x: Cubed.apply(x, w))(x).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), (X**3).sum(0), rtol=1e-5)


def test_docstring_examples_are_correct():
    for module in (gt.func.gradients, gt.func.mapping, gt.func.modules):
        options = doctest.NORMALIZE_WHITESPACE
        assert doctest.testmod(module, extraglobs={"gt": gt}, optionflags=options).failed == 0


WRONG = {
    "no scalar": lambda lib: lib.func.grad(lambda x: x)(lib.ones(3)),
    "no tensor": lambda lib: lib.func.grad(lambda x: 3)(lib.ones(3)),
    "no aux": lambda lib: lib.func.grad(lambda x: x.sum(), has_aux=True)(lib.ones(3)),
    "argnums": lambda lib: lib.func.grad(lambda x: x.sum(), argnums=1)(lib.ones(3)),
    "cotangents": lambda lib: lib.func.vjp(lib.sin, lib.ones(2))[1]((lib.ones(2), lib.ones(2))),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_as_in_pytorch(name):
    with pytest.raises(Exception) as want:
        WRONG[name](torch)
    with pytest.raises(want.type):
        WRONG[name](gt)
