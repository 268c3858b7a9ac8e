"""Tests of samples: their moments, their distribution, and gradients to parameters."""

import gt
import numpy as np
import pytest
from distribution_cases import CASES, DTYPES, GT, Maker
from gt.distributions._standard_gamma import log_slope
from pytorch import to_gt, torch

#: No moments to test: undefined or infinite, of categories, or of angles.
WITHOUT_MOMENTS = ("Cauchy", "HalfCauchy", "Categorical", "Categorical logits", "VonMises")


def make(name, grad=False):
    maker = Maker(gt, grad, DTYPES.get(name, "float64"))
    return CASES[name](GT, maker), maker.made


def moments(distribution):
    """Return mean and variance, or None if they are not implemented."""
    try:
        return distribution.mean, distribution.variance
    except NotImplementedError:
        return None


@pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_MOMENTS])
def test_moments(name):
    distribution, _ = make(name)
    both = moments(distribution)
    if both is None:
        return
    mean, variance = (moment.numpy() for moment in both)
    count = 20_000
    sample = distribution.sample((count,)).numpy()
    apart = sample - mean
    error = np.sqrt(variance / count)
    np.testing.assert_array_less(np.abs(apart.mean(0)), 5 * error + 1e-6)
    fourth = (apart**4).mean(0)
    error = np.sqrt((fourth - variance**2).clip(0) / count)
    np.testing.assert_array_less(np.abs((apart**2).mean(0) - variance), 6 * error + 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_samples_are_of_the_distribution(name):
    """Compare the distribution function with the empirical one (Kolmogorov-Smirnov distance)."""
    distribution, _ = make(name)
    count = 5_000
    sample = distribution.sample((count,))
    if distribution.event_shape or distribution.support.is_discrete:
        return
    try:
        below = distribution.cdf(sample).numpy()
    except NotImplementedError:
        return
    below = np.sort(below.reshape(count, -1), 0)
    steps = (np.arange(count) + 0.5)[:, None] / count
    assert np.abs(below - steps).max() < 2.2 / np.sqrt(count)


def test_angles_are_of_the_distribution():
    stats = pytest.importorskip("scipy.stats")
    for concentration in (1e-6, 0.3, 4.0, 200.0):
        sample = GT.VonMises(0.5, concentration).sample((5_000,)).numpy()
        assert np.abs(sample).max() <= np.pi + 1e-5
        apart = (sample.astype("float64") - 0.5 + np.pi) % (2 * np.pi) - np.pi
        assert stats.kstest(apart, stats.vonmises(concentration).cdf).pvalue > 1e-4


@pytest.mark.parametrize("concentration", [0.01, 0.3, 0.99, 1.0, 3.0, 50.0, 1e5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_samples(concentration, dtype):
    stats = pytest.importorskip("scipy.stats")
    a = gt.full((5_000,), concentration, dtype=dtype)
    sample = GT.Gamma(a, 1.0).sample().numpy()
    assert sample.dtype == dtype
    tiny = np.finfo(dtype).tiny
    assert (sample >= tiny).all()
    # Values below the dtype's smallest normal number are clamped to it.
    below = stats.gamma(concentration).cdf(sample[sample > tiny].astype("float64"))
    lost = stats.gamma(concentration).cdf(float(tiny))
    if len(below) > 100:
        assert stats.kstest((below - lost) / (1 - lost), "uniform").pvalue > 1e-4


#: Distributions whose samples have another gradient than their moments, or no gradient.
WITHOUT_SAMPLED_GRADIENTS = {*WITHOUT_MOMENTS, "OneHotCategoricalStraightThrough"}


@pytest.mark.parametrize("name", [name for name in CASES if name not in WITHOUT_SAMPLED_GRADIENTS])
def test_gradients_of_samples(name):
    """The mean gradients of x and x^2 are the gradients of the mean and the second moment."""
    distribution, made = make(name, grad=True)
    both = moments(distribution) if distribution.has_rsample else None
    if both is None:
        assert not distribution.has_rsample or not distribution.sample().requires_grad
        return
    mean, variance = both
    weight = gt.tensor(np.linspace(0.5, 1.5, mean.numel()), dtype=mean.dtype).reshape(mean.shape)
    wanted = gt.autograd.grad(
        (weight * (mean + variance + mean**2)).sum(), made, retain_graph=True, allow_unused=True
    )
    parts = []
    for _ in range(20):
        x = distribution.rsample((500,))
        total = (weight * (x + x**2)).mean(0).sum()
        got = gt.autograd.grad(total, made, retain_graph=True, allow_unused=True)
        parts.append([None if g is None else g.numpy() for g in got])
    for place, want in enumerate(wanted):
        if want is None:
            continue
        of_parts = np.array([part[place] for part in parts])
        error = of_parts.std(0, ddof=1) / np.sqrt(len(parts))
        assert (np.abs(of_parts.mean(0) - want.numpy()) <= 6 * error + 1e-5).all(), (
            place, of_parts.mean(0), want.numpy(), error
        )  # fmt: skip


def test_gradient_of_gamma_samples_against_pytorch():
    """Compare with PyTorch, whose formula is accurate to three digits."""
    a = torch.tensor([0.02, 0.3, 0.9, 1.0, 2.5, 7.0, 30.0, 400.0], dtype=torch.float64)
    a = a.expand(50, 8).clone()
    ours = to_gt(a).requires_grad_()
    sample = GT.Gamma(ours, 1.0).rsample()
    sample.sum().backward()
    value = torch.tensor(sample.detach().numpy().copy())
    want = torch._standard_gamma_grad(a, value)
    np.testing.assert_allclose(ours.grad.numpy(), want.numpy(), rtol=2e-3)


def test_gradient_of_gamma_samples_against_quantiles():
    """Compare the gradient with the difference of quantiles at the sample's probability."""
    special = pytest.importorskip("scipy.special")
    a = np.repeat([0.05, 0.5, 1.0, 3.0, 20.0, 1000.0], 40)
    ours = gt.tensor(a, dtype=gt.float64).requires_grad_()
    sample = GT.Gamma(ours, 1.0).rsample()
    sample.sum().backward()
    x = sample.detach().numpy()
    step = 1e-4 * a
    upper = x > a
    low = special.gammaincinv(a - step, special.gammainc(a, x))
    high = special.gammaincinv(a + step, special.gammainc(a, x))
    low_upper = special.gammainccinv(a - step, special.gammaincc(a, x))
    high_upper = special.gammainccinv(a + step, special.gammaincc(a, x))
    want = np.where(upper, high_upper - low_upper, high - low) / (2 * step)
    np.testing.assert_allclose(ours.grad.numpy(), want, rtol=1e-5, atol=1e-12)


def test_gradient_of_gamma_samples_has_eight_digits():
    """Compare with -(dF/da) / p in 40 digits, at quantiles from 1e-6 to 1 - 1e-6."""
    mpmath, special = pytest.importorskip("mpmath"), pytest.importorskip("scipy.special")
    a, quantile = np.meshgrid([0.1, 1.0, 10.0, 400.0], [1e-6, 0.1, 0.5, 0.999, 1 - 1e-6])
    x = special.gammaincinv(a, quantile)
    slope = log_slope(gt.tensor(a, dtype=gt.float64), gt.tensor(np.log(x), dtype=gt.float64))

    def exact(a, x):
        with mpmath.workdps(40):
            step = mpmath.mpf(a) / 10**12
            ends = (mpmath.gammainc(a + sign * step, 0, x, regularized=True) for sign in (1, -1))
            density = mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a))
            return float(-(next(ends) - next(ends)) / (2 * step) / density)

    np.testing.assert_allclose(slope.numpy(), np.vectorize(exact)(a, x), rtol=1e-7)


def test_gradients_of_float32_samples_are_float32():
    a = gt.tensor([0.5, 3.0], requires_grad=True)
    sample = GT.Gamma(a, gt.ones(2)).rsample((3,))
    assert sample.dtype == gt.float32
    sample.sum().backward()
    assert a.grad.dtype == gt.float32
    a = gt.tensor([1e-3, 1e-3], requires_grad=True)
    sample = GT.Dirichlet(a).rsample((100,))  # the gamma variables underflow float32
    sample.square().sum().backward()
    assert np.isfinite(sample.detach().numpy()).all() and np.isfinite(a.grad.numpy()).all()
    np.testing.assert_allclose(sample.detach().numpy().sum(-1), 1, rtol=1e-5)


def test_second_gradient_of_gamma_samples_is_refused():
    a = gt.tensor([2.0], requires_grad=True)
    sample = GT.Gamma(a, 1.0).rsample()
    (slope,) = gt.autograd.grad(sample.sum(), [a], create_graph=True)
    with pytest.raises(RuntimeError, match="igamma"):
        gt.autograd.grad(slope.sum(), [a])


def test_generator_and_seed_decide_samples():
    gt.manual_seed(5)
    first = GT.Gamma(gt.ones(3), 1.0).sample()
    gt.manual_seed(5)
    again = GT.Gamma(gt.ones(3), 1.0).sample()
    assert first.tolist() == again.tolist()
    draws = [
        GT.Gamma(gt.ones(3), 1.0).sample(generator=gt.Generator().manual_seed(7)).tolist()
        for _ in range(2)
    ]
    assert draws[0] == draws[1]
