"""Parametrizations, and the older normalizations by hooks, compared with PyTorch."""

import copy
import pickle

import gt
import numpy as np
import pytest
from gt import nn
from gt.nn.utils import parametrizations, parametrize

torch = pytest.importorskip("torch")
their_parametrize = torch.nn.utils.parametrize
BOTH = pytest.mark.parametrize("lib", [torch, gt], ids=["torch", "gt"])


def same_layers(inputs, outputs):
    """Return a linear layer of GT and one of PyTorch, with equal weights."""
    other = torch.nn.Linear(inputs, outputs)
    own = nn.Linear(inputs, outputs)
    own.load_state_dict(other.state_dict())
    return own, other


def close(own, other, **tolerance):
    tolerance = tolerance or {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(own.detach().numpy(), other.detach().numpy(), **tolerance)


def symmetric(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).T

        def right_inverse(self, value):
            return value.triu()

    return Symmetric()


def halved(lib):
    class Halved(lib.nn.Module):
        def forward(self, x):
            return x / 2

        def right_inverse(self, value):
            return value * 2

    return Halved()


@BOTH
def test_attributes_of_a_parametrized_module(lib):
    layer = lib.nn.Linear(3, 3)
    P = lib.nn.utils.parametrize
    weight = layer.weight
    assert P.register_parametrization(layer, "weight", symmetric(lib)) is layer
    P.register_parametrization(layer, "weight", halved(lib))
    P.register_parametrization(layer, "bias", halved(lib))
    assert layer.parametrizations.weight.original is weight
    assert P.is_parametrized(layer) and P.is_parametrized(layer, "bias")
    assert not P.is_parametrized(layer, "other") and not P.is_parametrized(lib.nn.ReLU())
    names = [name for name, _ in layer.named_parameters()]
    assert names == ["parametrizations.weight.original", "parametrizations.bias.original"]
    assert list(layer.state_dict()) == names
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, lib.nn.Linear)
    assert P.type_before_parametrizations(layer) is lib.nn.Linear
    assert len(layer.parametrizations.weight) == 2
    assert "ParametrizationList" in repr(layer)
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(layer)
    value = lib.ones(3, 3)
    layer.weight = value
    np.testing.assert_allclose(layer.weight.detach().numpy(), 1)
    assert layer.parametrizations.weight.original is weight
    with pytest.raises(KeyError):
        layer.weight = lib.nn.Parameter(value)
    P.remove_parametrizations(layer, "weight")
    assert layer.weight is weight and "weight" in layer._parameters
    np.testing.assert_allclose(weight.detach().numpy(), 1)
    original = layer.parametrizations.bias.original.detach().numpy().copy()
    P.remove_parametrizations(layer, "bias", leave_parametrized=False)
    np.testing.assert_array_equal(layer.bias.detach().numpy(), original)
    assert type(layer) is lib.nn.Linear and not hasattr(layer, "parametrizations")
    with pytest.raises(ValueError, match="does not have a parametrization"):
        P.remove_parametrizations(layer, "weight")


def test_gradients_of_a_parametrized_weight():
    own, other = same_layers(4, 4)
    parametrize.register_parametrization(own, "weight", symmetric(gt))
    their_parametrize.register_parametrization(other, "weight", symmetric(torch))
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    own(gt.from_numpy(x)).square().sum().backward()
    other(torch.tensor(x)).square().sum().backward()
    close(own.weight, other.weight)
    close(own.parametrizations.weight.original.grad, other.parametrizations.weight.original.grad)


@BOTH
def test_buffers_can_be_parametrized(lib):
    module = lib.nn.Module()
    module.register_buffer("scale", lib.ones(2))
    lib.nn.utils.parametrize.register_parametrization(module, "scale", halved(lib))
    assert list(module.state_dict()) == ["parametrizations.scale.original"]
    np.testing.assert_array_equal(module.scale.numpy(), [1, 1])
    lib.nn.utils.parametrize.remove_parametrizations(module, "scale")
    assert list(module._buffers) == ["scale"]


def rank_one(lib):
    class RankOne(lib.nn.Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0], z[0] / z[0, 0]

    return RankOne()


@BOTH
def test_a_parametrization_with_several_originals(lib):
    layer = lib.nn.Linear(3, 2)
    P = lib.nn.utils.parametrize
    P.register_parametrization(layer, "weight", rank_one(lib))
    names = [name for name, _ in layer.named_parameters()]
    assert names[1:] == [f"parametrizations.weight.original{index}" for index in range(2)]
    layer.weight.sum().backward()
    assert layer.parametrizations.weight.original0.grad.shape == (2,)
    layer.weight = lib.ones(2, 3)
    np.testing.assert_allclose(layer.weight.detach().numpy(), 1)
    with pytest.raises(ValueError, match="leave_parametrized=False"):
        P.remove_parametrizations(layer, "weight", leave_parametrized=False)
    P.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, lib.nn.Parameter)


@BOTH
def test_a_value_is_computed_once_while_cached(lib):
    calls = []

    class Counted(lib.nn.Module):
        def forward(self, x):
            calls.append(x)
            return x * 1

    layer = lib.nn.Linear(2, 2)
    P = lib.nn.utils.parametrize
    P.register_parametrization(layer, "weight", Counted(), unsafe=True)
    with P.cached():
        assert layer.weight is layer.weight
        with P.cached():
            first = layer.weight
        assert layer.weight is first
    assert layer.weight is not first and len(calls) == 2


@BOTH
def test_invalid_parametrizations_are_rejected(lib):
    P = lib.nn.utils.parametrize

    def making(function, inverse=None):
        class Made(lib.nn.Module):
            def forward(self, x):
                return function(x)

        if inverse is not None:
            Made.right_inverse = lambda self, value: inverse(value)
        return Made()

    for function, text in (
        (lambda x: x[0], "may not change the shape"),
        (lambda x: x.to(lib.float64), "may not change the dtype"),
        (lambda x: None, "must return a tensor"),
    ):
        layer = lib.nn.Linear(2, 2)
        with pytest.raises(ValueError, match=text):
            P.register_parametrization(layer, "weight", making(function))
    layer = lib.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="does not have a parameter"):
        P.register_parametrization(layer, "other", halved(lib))
    with pytest.raises(ValueError, match="dtype"):
        P.register_parametrization(
            layer, "weight", making(lambda x: x, lambda value: value.to(lib.float64))
        )
    with pytest.raises(ValueError, match="Tensor or a Sequence"):
        P.register_parametrization(layer, "weight", making(lambda x: x, lambda value: 3))
    P.register_parametrization(layer, "weight", halved(lib))
    for function, inverse in ((lambda x: x[0], None), (lambda x: x, lambda value: value[0])):
        with pytest.raises(ValueError, match="unsafe"):
            P.register_parametrization(layer, "weight", making(function, inverse))
    P.register_parametrization(layer, "weight", making(lambda x: x))
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = lib.ones(2, 2)


def test_copies_do_not_share_the_parametrized_class():
    layer = nn.Linear(2, 2)
    parametrize.register_parametrization(layer, "weight", halved(gt))
    parametrize.register_parametrization(layer, "bias", halved(gt))
    copied = copy.deepcopy(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert parametrize.is_parametrized(copied, "weight")
    np.testing.assert_array_equal(copied.weight.detach().numpy(), layer.weight.detach().numpy())


@BOTH
def test_parametrizations_are_transferred(lib):
    P = lib.nn.utils.parametrize
    one, two = lib.nn.Linear(3, 3), lib.nn.Linear(3, 3)
    assert P.transfer_parametrizations_and_params(one, two) is two
    assert not P.is_parametrized(two)
    P.register_parametrization(one, "weight", symmetric(lib))
    P.register_parametrization(one, "bias", halved(lib))
    P.transfer_parametrizations_and_params(one, two, "weight")
    assert P.is_parametrized(two, "weight") and not P.is_parametrized(two, "bias")
    np.testing.assert_array_equal(two.weight.detach().numpy(), one.weight.detach().numpy())


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (4, 4)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("based", [True, False])
def test_orthogonal_matrices(shape, kind, based):
    """Compare with PyTorch, from the same `original` and `base`."""
    own, other = same_layers(*shape)
    parametrizations.orthogonal(own, orthogonal_map=kind, use_trivialization=based)
    torch.nn.utils.parametrizations.orthogonal(other, orthogonal_map=kind, use_trivialization=based)
    weight = own.weight.detach().numpy()
    gram = weight @ weight.T if shape[0] >= shape[1] else weight.T @ weight
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-5)
    if based and shape[0] == shape[1]:
        close(own.weight, other.weight)
    own.parametrizations.weight[0].base = (
        gt.from_numpy(other.parametrizations.weight[0].base.numpy()) if based else None
    )
    original = other.parametrizations.weight.original
    with torch.no_grad():
        original.add_(0.1 * torch.randn_like(original))
    own.parametrizations.weight.original.data = gt.from_numpy(original.detach().numpy())
    close(own.weight, other.weight)
    factor = np.random.default_rng(1).standard_normal(weight.shape).astype(np.float32)
    (own.weight * gt.from_numpy(factor)).sum().backward()
    (other.weight * torch.tensor(factor)).sum().backward()
    if kind != "householder" and not (kind is None and shape[0] != shape[1]):
        close(own.parametrizations.weight.original.grad, original.grad)


def test_assigning_an_orthogonal_matrix():
    for options in ({}, {"orthogonal_map": "householder", "use_trivialization": False}):
        layer = parametrizations.orthogonal(nn.Linear(4, 4), **options)
        value = gt.linalg.qr(gt.randn(4, 4))[0]
        layer.weight = value
        close(layer.weight, value)
    layer = parametrizations.orthogonal(nn.Linear(4, 4), use_trivialization=False)
    with pytest.raises(NotImplementedError, match="use_trivialization"):
        layer.weight = value


def test_mistakes_with_orthogonal_matrices():
    with pytest.raises(ValueError, match="orthogonal_map"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="other")
    with pytest.raises(ValueError, match="1 dimensions"):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="no parameter or buffer"):
        parametrizations.orthogonal(nn.Linear(2, 2), "other")


def trained(own, other, loss=None):
    """Train both layers for three steps, and compare results and states."""
    x = np.random.default_rng(2).standard_normal((3, own.in_features)).astype(np.float32)
    for _ in range(3):
        results = []
        for layer, given in ((own, gt.from_numpy(x)), (other, torch.tensor(x))):
            result = layer(given)
            result.square().sum().backward()
            for parameter in layer.parameters():
                parameter.data = parameter.data - 0.05 * parameter.grad
                parameter.grad = None
            results.append(result)
        close(*results)
    theirs = other.state_dict()
    ours = own.state_dict()
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        close(ours[name], value)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize("older", [True, False])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weight_normalization(dim, older):
    own, other = same_layers(4, 3)
    before = own.weight.detach().numpy().copy()
    names = ("weight_norm", "weight_norm")
    places = [(nn.utils, torch.nn.utils), (parametrizations, torch.nn.utils.parametrizations)]
    ours, theirs = places[0 if older else 1]
    getattr(ours, names[0])(own, dim=dim)
    getattr(theirs, names[1])(other, dim=dim)
    np.testing.assert_allclose(own.weight.detach().numpy(), before, rtol=1e-5)
    trained(own, other)
    if older:
        nn.utils.remove_weight_norm(own)
        torch.nn.utils.remove_weight_norm(other)
        assert list(own.state_dict()) == list(other.state_dict())
        close(own.weight, other.weight)
        with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
            nn.utils.remove_weight_norm(own)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_states_of_the_older_weight_normalization_load():
    older = nn.utils.weight_norm(nn.Linear(2, 3))
    with pytest.raises(RuntimeError, match="two weight_norm hooks"):
        nn.utils.weight_norm(older)
    newer = parametrizations.weight_norm(nn.Linear(2, 3))
    newer.load_state_dict(older.state_dict())
    close(newer.weight, older.weight)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("older", [True, False])
def test_spectral_normalization(dim, older):
    own, other = same_layers(4, 3)
    if older:
        nn.utils.spectral_norm(own, dim=dim)
        torch.nn.utils.spectral_norm(other, dim=dim)
    else:
        parametrizations.spectral_norm(own, dim=dim)
        torch.nn.utils.parametrizations.spectral_norm(other, dim=dim)
    own.load_state_dict(other.state_dict())
    trained(own, other)
    close(own.eval()(gt.ones(1, 4)), other.eval()(torch.ones(1, 4)))
    if older:
        nn.utils.remove_spectral_norm(own)
        torch.nn.utils.remove_spectral_norm(other)
        assert list(own.state_dict()) == list(other.state_dict())
        close(own.weight, other.weight)
        with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
            nn.utils.remove_spectral_norm(own)


def test_the_spectral_norm_is_near_one():
    layer = parametrizations.spectral_norm(nn.Linear(6, 5), n_power_iterations=20)
    assert abs(gt.linalg.matrix_norm(layer.weight, 2).item() - 1) < 1e-2
    bias = parametrizations.spectral_norm(nn.Linear(6, 5), "bias").bias
    assert abs(gt.linalg.vector_norm(bias).item() - 1) < 1e-5
    with pytest.raises(ValueError, match="n_power_iterations=0"):
        nn.utils.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(IndexError, match="out of range"):
        parametrizations.spectral_norm(nn.Linear(2, 2), dim=2)
    with pytest.raises(RuntimeError, match="two spectral_norm hooks"):
        nn.utils.spectral_norm(nn.utils.spectral_norm(nn.Linear(2, 2)))
