"""Distributions, compared with PyTorch's: values and gradients for the same parameters."""

import warnings

import gt
import numpy as np
import pytest
from distribution_cases import CASES, GT, TORCH, pair
from pytorch import check, to_gt, torch

#: Factors of the tolerance: PyTorch's Bessel functions are accurate to 7 digits.
SCALE = {"VonMises": 1e6}

#: PyTorch returns NaN, because it takes the logarithm of a negative number.
WRONG = {("Kumaraswamy", "mode")}

PROPERTIES = ("mean", "mode", "variance", "stddev")


def compare(ours, theirs, made, their_made, context, scale):
    """Compare the results of two functions, and the gradients of the sums of the results."""
    try:
        want = theirs()
    except (NotImplementedError, AttributeError):
        with pytest.raises((NotImplementedError, AttributeError)):
            ours()
        return
    got = ours()
    check(got, want, context, scale)
    if not want.requires_grad:
        return
    for tensor in (*made, *their_made):
        tensor.grad = None
    try:
        want.sum().backward(retain_graph=True)
    except NotImplementedError:  # e.g. the gradient of igamma by its first argument
        return
    got.sum().backward(retain_graph=True)
    for mine, other in zip(made, their_made, strict=True):
        if other.grad is not None and torch.isfinite(other.grad).all():
            check(mine.grad, other.grad, (context, "gradient"), 100 * scale)


def drawn(theirs):
    """Draw values from PyTorch's distribution."""
    torch.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's Wishart warns about singular samples
        return theirs.sample((4,))


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    ours, theirs, made, their_made = pair(name)
    scale = SCALE.get(name, 10)

    def both(of, what):
        compare(
            lambda: of(ours, to_gt), lambda: of(theirs, lambda x: x), made, their_made, what, scale
        )

    for prop in PROPERTIES:
        if (name, prop) in WRONG:
            continue
        both(lambda d, _, prop=prop: getattr(d, prop), (name, prop))
    both(lambda d, _: d.entropy(), (name, "entropy"))
    both(lambda d, _: d.perplexity(), (name, "perplexity"))
    value = drawn(theirs)
    both(lambda d, to: d.log_prob(to(value)), (name, "log_prob"))
    both(lambda d, to: d.cdf(to(value)), (name, "cdf"))
    shape = (3, *theirs.batch_shape, *theirs.event_shape)
    quantile = torch.linspace(0.05, 0.93, int(np.prod(shape)), dtype=value.dtype).reshape(shape)
    both(lambda d, to: d.icdf(to(quantile)), (name, "icdf"))


@pytest.mark.parametrize("name", CASES)
def test_description(name):
    ours, theirs, *_ = pair(name, grad=False)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    assert tuple(ours.event_shape) == tuple(theirs.event_shape)
    assert ours.has_rsample == theirs.has_rsample
    assert ours.has_enumerate_support == theirs.has_enumerate_support
    assert ours.support.event_dim == theirs.support.event_dim
    assert ours.support.is_discrete == theirs.support.is_discrete
    assert set(ours.arg_constraints) == set(theirs.arg_constraints)
    assert repr(ours).split("(")[0] == repr(theirs).split("(")[0]
    assert bool(ours.support.check(ours.sample((5,))).all())
    if theirs.has_enumerate_support and name != "Binomial counts":
        for expand in (True, False):
            got, want = (d.enumerate_support(expand) for d in (ours, theirs))
            check(got, want, name)


@pytest.mark.parametrize("name", CASES)
def test_expand(name):
    ours, theirs, *_ = pair(name, grad=False)
    shape = (2, 3, *theirs.batch_shape)
    wide = ours.expand(shape)
    assert type(wide) is type(ours)
    assert tuple(wide.batch_shape) == shape
    assert wide.event_shape == ours.event_shape
    sample = wide.sample((2,))
    assert sample.shape == (2, *shape, *ours.event_shape)
    np.testing.assert_allclose(
        wide.log_prob(sample).numpy(), ours.log_prob(sample).numpy(), rtol=1e-9, atol=1e-9
    )
    for prop in PROPERTIES:
        try:
            value = getattr(ours, prop)
        except NotImplementedError:
            continue
        got = getattr(wide, prop)
        assert got.shape == (*shape, *ours.event_shape), prop
        np.testing.assert_allclose(got.numpy(), value.expand(got.shape).numpy())
    assert repr(wide)


def test_public_names():
    assert not [name for name in TORCH.__all__ if not hasattr(GT, name)]
    for module in ("constraints", "transforms", "kl", "constraint_registry", "utils"):
        theirs, ours = getattr(TORCH, module), getattr(GT, module)
        assert not [name for name in theirs.__all__ if not hasattr(ours, name)], module


@pytest.mark.parametrize(
    "make",
    [
        lambda D: D.Normal(0, 1.0),
        lambda D: D.Bernoulli(0.3),
        lambda D: D.Gamma(2, 3),
        lambda D: D.Uniform(0, 2),
        lambda D: D.LogNormal(0.0, 1.0),
        lambda D: D.Beta(1.0, 2.0),
        lambda D: D.Gumbel(0.0, 1.0),
        lambda D: D.Weibull(1.0, 2.0),
        lambda D: D.StudentT(3.0),
        lambda D: D.Poisson(3.0),
    ],
)
def test_numbers_as_parameters(make):
    ours, theirs = make(GT), make(TORCH)
    assert tuple(ours.batch_shape) == tuple(theirs.batch_shape)
    value = theirs.sample((3,))
    assert ours.sample((3,)).dtype == gt.float32
    check(ours.log_prob(to_gt(value)), theirs.log_prob(value), repr(ours), 10)


def test_matrices_of_normal_vectors():
    ours, theirs, *_ = pair("MultivariateNormal precision", grad=False)
    for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
        check(getattr(ours, name), getattr(theirs, name), name, 10)
    ours, theirs, *_ = pair("LowRankMultivariateNormal", grad=False)
    for name in ("covariance_matrix", "precision_matrix", "scale_tril"):
        check(getattr(ours, name), getattr(theirs, name), name, 10)


def test_continuous_bernoulli_near_one_half():
    """Compare the Taylor polynomials with PyTorch's exact formulas, used by its narrow `lims`."""
    value = torch.tensor([0.0, 0.2, 0.5, 0.9, 1.0], dtype=torch.float64)
    p = torch.tensor([[0.4993], [0.5008]], dtype=torch.float64).requires_grad_()
    mine = to_gt(p)
    ours = GT.ContinuousBernoulli(mine)
    theirs = TORCH.ContinuousBernoulli(p, lims=(0.5 - 1e-9, 0.5 + 1e-9))
    for method in ("log_prob", "cdf", "icdf"):
        got = getattr(ours, method)(to_gt(value))
        want = getattr(theirs, method)(value)
        mine.grad = p.grad = None
        got.sum().backward(retain_graph=True)
        want.sum().backward(retain_graph=True)
        check(got, want, method, 1e7)
        np.testing.assert_allclose(mine.grad.numpy(), p.grad.numpy(), atol=5e-3)
    for prop in ("mean", "variance"):
        check(getattr(ours, prop), getattr(theirs, prop), prop, 1e6)
