"""Kullback-Leibler divergences, compared with PyTorch's and with means over samples."""

import math

import gt
import numpy as np
import pytest
from distribution_cases import COVARIANCE, FACTOR, GT, TORCH, Maker
from pytorch import check, torch

#: For each family, the distributions p and q; within a pair of families event shapes match.
FAMILIES = {
    "Bernoulli": (lambda D, t: D.Bernoulli(t([0.7, 0.2])), lambda D, t: D.Bernoulli(t([0.4, 0.9]))),
    "Beta": (lambda D, t: D.Beta(t([1.5, 3.0]), t([2.0, 0.7])), lambda D, t: D.Beta(2.5, t([3.0]))),
    "Binomial": (lambda D, t: D.Binomial(6, t([0.3, 0.9])), lambda D, t: D.Binomial(6, t([0.5]))),
    "Categorical": (
        lambda D, t: D.Categorical(t([0.1, 0.6, 0.3])),
        lambda D, t: D.Categorical(logits=t([0.5, -1.0, 0.2])),
    ),
    "Cauchy": (lambda D, t: D.Cauchy(t([0.0]), 1.0), lambda D, t: D.Cauchy(t([0.5]), t([2.0]))),
    "Chi2": (lambda D, t: D.Chi2(t([0.6, 3.0])), lambda D, t: D.Chi2(t([1.6]))),
    "ContinuousBernoulli": (
        lambda D, t: D.ContinuousBernoulli(t([0.7, 0.2])),
        lambda D, t: D.ContinuousBernoulli(t([0.4])),
    ),
    "Dirichlet": (
        lambda D, t: D.Dirichlet(t([[0.5, 1.5], [0.4, 0.6]])),
        lambda D, t: D.Dirichlet(t([1.5, 2.5])),
    ),
    "Exponential": (
        lambda D, t: D.Exponential(t([0.7, 2.0])),
        lambda D, t: D.Exponential(t([1.5])),
    ),
    "Gamma": (lambda D, t: D.Gamma(t([0.3, 2.0]), t([3.0])), lambda D, t: D.Gamma(t([1.3]), 2.0)),
    "Geometric": (lambda D, t: D.Geometric(t([0.2])), lambda D, t: D.Geometric(t([0.6]))),
    "Gumbel": (lambda D, t: D.Gumbel(t([0.5, -1.0]), 1.0), lambda D, t: D.Gumbel(t([0.1]), 2.0)),
    "HalfNormal": (lambda D, t: D.HalfNormal(t([1.0])), lambda D, t: D.HalfNormal(t([2.5]))),
    "Independent": (
        lambda D, t: D.Independent(D.Normal(t([[0.0, 1.0]]), 1.0), 1),
        lambda D, t: D.Independent(D.Normal(t([0.5, 1.5]), t([2.0, 1.0])), 1),
    ),
    "Laplace": (lambda D, t: D.Laplace(t([0.0, 1.0]), 1.0), lambda D, t: D.Laplace(t([0.5]), 2.0)),
    "LogNormal": (lambda D, t: D.LogNormal(t([0.0]), 1.0), lambda D, t: D.LogNormal(t([0.5]), 2.0)),
    "LowRankMultivariateNormal": (
        lambda D, t: D.LowRankMultivariateNormal(
            t([[0.0, 1.0, 2.0]]), t([[1.0], [0.2], [-0.5]]), t([1.0, 0.5, 2.0])
        ),
        lambda D, t: D.LowRankMultivariateNormal(
            t([0.3, 1.0, 1.0]), t([[0.4, 1.0], [0.2, 0.3], [0.5, -1.0]]), t([0.7, 0.9, 2.0])
        ),
    ),
    "MultivariateNormal": (
        lambda D, t: D.MultivariateNormal(t([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0]]), t(COVARIANCE)),
        lambda D, t: D.MultivariateNormal(t([0.5, 1.0, 1.0]), scale_tril=t([FACTOR, FACTOR])),
    ),
    "Normal": (
        lambda D, t: D.Normal(t([0.0, 1.0]), 1.0),
        lambda D, t: D.Normal(t([0.5]), t([2.0])),
    ),
    "OneHotCategorical": (
        lambda D, t: D.OneHotCategorical(t([0.1, 0.6, 0.3])),
        lambda D, t: D.OneHotCategorical(t([0.4, 0.5, 0.1])),
    ),
    "Pareto": (lambda D, t: D.Pareto(t([1.0, 2.0]), 3.5), lambda D, t: D.Pareto(t([0.5]), 2.0)),
    "Poisson": (lambda D, t: D.Poisson(t([0.5, 6.0])), lambda D, t: D.Poisson(t([2.0]))),
    "Uniform": (
        lambda D, t: D.Uniform(t([0.6, 0.7]), t([0.8, 0.9])),
        lambda D, t: D.Uniform(t([-1.0, -0.5]), t([4.0, 2.0])),
    ),
    "Wishart": (
        lambda D, t: D.Wishart(t([4.0]), t(COVARIANCE)),
        lambda D, t: D.Wishart(t([5.5]), scale_tril=t(FACTOR)),
    ),
}

PAIRS = sorted(
    {(p.__name__, q.__name__) for p, q in TORCH.kl._KL_REGISTRY}
    & {(p, q) for p in FAMILIES for q in FAMILIES}
    | {("Chi2", "Chi2"), ("LogNormal", "LogNormal"), ("Wishart", "Wishart"), ("Chi2", "Gamma")}
)


def divergence(library, package, names):
    maker = Maker(library)
    p, q = (FAMILIES[name][place](package, maker) for place, name in enumerate(names))
    return package.kl_divergence(p, q), maker.made


@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_divergences(names):
    want, theirs = divergence(torch, TORCH, names)
    got, ours = divergence(gt, GT, names)
    check(got, want, names, 100)
    if not want.requires_grad or not torch.isfinite(want).all():
        return
    want.sum().backward()
    got.sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        if other.grad is not None:
            check(mine.grad, other.grad, names, 1000)


def test_all_pairs_of_pytorch_are_there():
    ours = {(p.__name__, q.__name__) for p, q in GT.kl.registry._REGISTRY}
    theirs = {(p.__name__, q.__name__) for p, q in TORCH.kl._KL_REGISTRY}
    assert ours == theirs


@pytest.mark.parametrize("names", [n for n in PAIRS if "Wishart" not in n], ids=" ".join)
def test_divergences_are_means_over_samples(names):
    maker = Maker(gt, grad=False)
    p, q = (FAMILIES[name][place](GT, maker) for place, name in enumerate(names))
    want = GT.kl_divergence(p, q).numpy()
    if not np.isfinite(want).all():
        return
    sample = p.sample((20_000,))
    q = q.expand(np.broadcast_shapes(p.batch_shape, q.batch_shape))
    ratio = (p.log_prob(sample) - q.log_prob(sample)).numpy()
    error = ratio.std(0) / math.sqrt(len(ratio))
    assert (np.abs(ratio.mean(0) - want) <= 6 * error + 1e-6).all(), (ratio.mean(0), want, error)


def test_values_that_q_cannot_have():
    inf = math.inf
    for p, q in (
        (GT.Uniform(-1.0, 1.0), GT.Exponential(1.0)),
        (GT.Uniform(-1.0, 1.0), GT.Gamma(2.0, 1.0)),
        (GT.Uniform(0.0, 2.0), GT.Beta(1.0, 1.0)),
        (GT.Uniform(0.0, 2.0), GT.Pareto(1.0, 1.0)),
        (GT.Beta(1.0, 2.0), GT.Uniform(0.5, 2.0)),
        (GT.Pareto(1.0, 2.0), GT.Pareto(2.0, 2.0)),
        (GT.Pareto(1.0, 0.5), GT.Exponential(2.0)),
        (GT.Pareto(1.0, 1.5), GT.Normal(0.0, 1.0)),
        (GT.Bernoulli(0.5), GT.Bernoulli(1.0)),
        (GT.Binomial(5, gt.tensor(0.5)), GT.Binomial(4, gt.tensor(0.5))),
        (GT.Categorical(gt.tensor([0.5, 0.5])), GT.Categorical(gt.tensor([1.0, 0.0]))),
    ):
        assert GT.kl_divergence(p, q).item() == inf, (p, q)
    sure = GT.Categorical(gt.tensor([1.0, 0.0]))
    assert GT.kl_divergence(sure, sure).item() == 0
    whole = GT.Uniform(0.0, 1.0)
    assert GT.kl_divergence(GT.ContinuousBernoulli(0.3), whole).item() < inf


def test_registering_divergences():
    class Own(GT.Normal):
        pass

    class Further(Own):
        pass

    @GT.register_kl(Own, GT.Normal)
    def _own_normal(p, q):
        return gt.tensor(7.0)

    @GT.register_kl(GT.Normal, Own)
    def _normal_own(p, q):
        return gt.tensor(8.0)

    try:
        normal, own, further = GT.Normal(0.0, 1.0), Own(0.0, 1.0), Further(0.0, 1.0)
        assert GT.kl_divergence(normal, normal).item() == 0
        assert GT.kl_divergence(further, normal).item() == 7
        assert GT.kl_divergence(normal, own).item() == 8
        with pytest.warns(RuntimeWarning, match="Ambiguous"):
            assert GT.kl_divergence(own, own).item() == 7
    finally:
        registry = GT.kl.registry
        for pair in ((Own, GT.Normal), (GT.Normal, Own)):
            del registry._REGISTRY[pair]
        registry._FOUND.clear()


def test_pairs_without_a_divergence():
    normal = GT.Normal(0.0, 1.0)
    with pytest.raises(NotImplementedError, match="Normal and q type StudentT"):
        GT.kl_divergence(normal, GT.StudentT(3.0))
    with pytest.raises(NotImplementedError, match="exponential families"):
        GT.kl_divergence(normal, GT.Poisson(3.0))
    with pytest.raises(NotImplementedError, match="transforms"):
        GT.kl_divergence(GT.LogNormal(0.0, 1.0), GT.Gumbel(0.0, 1.0).expand(()))
    with pytest.raises(NotImplementedError, match="total_count"):
        many = GT.Binomial(5, gt.tensor(0.5))
        GT.kl_divergence(GT.Binomial(4, gt.tensor(0.5)), many)
    with pytest.raises(TypeError, match="Distribution"):
        GT.register_kl(int, GT.Normal)
