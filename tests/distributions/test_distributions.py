"""Tests of parameter and value checks, and of distributions used in programs."""

import copy
import doctest
import importlib
import pkgutil
import subprocess
import sys
import typing

import gt
import numpy as np
import pytest
from gt.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Distribution,
    Exponential,
    ExponentialFamily,
    Gamma,
    Geometric,
    Independent,
    LKJCholesky,
    LowRankMultivariateNormal,
    MixtureSameFamily,
    Multinomial,
    MultivariateNormal,
    Normal,
    OneHotCategorical,
    Poisson,
    TransformedDistribution,
    Uniform,
    Wishart,
    constraints,
    kl_divergence,
    transforms,
    utils,
)
from gt.distributions.relaxed_bernoulli import LogitRelaxedBernoulli


@pytest.fixture
def unchecked():
    """Turn off argument checks during a test."""
    Distribution.set_default_validate_args(False)
    yield
    Distribution.set_default_validate_args(True)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: Normal(gt.zeros(2), gt.tensor([1.0, -1.0])), "scale"),
        (lambda: Normal(float("nan"), 1.0), "loc"),
        (lambda: Bernoulli(1.5), "probs"),
        (lambda: Beta(0.0, 1.0), "concentration"),
        (lambda: Binomial(-1, gt.tensor(0.5)), "total_count"),
        (lambda: Categorical(gt.tensor([-1.0, 2.0])), "probs"),
        (lambda: Dirichlet(gt.tensor([1.0, 0.0])), "concentration"),
        (lambda: Gamma(1.0, -1.0), "rate"),
        (lambda: Geometric(0.0), "probs"),
        (lambda: Uniform(2.0, 1.0), "low"),
        (lambda: LKJCholesky(3, -1.0), "concentration"),
        (lambda: MultivariateNormal(gt.zeros(2), -gt.eye(2)), "covariance_matrix"),
        (lambda: MultivariateNormal(gt.zeros(2), scale_tril=gt.ones(2, 2)), "scale_tril"),
        (lambda: LowRankMultivariateNormal(gt.zeros(2), gt.ones(2, 1), -gt.ones(2)), "cov_diag"),
    ],
)
def test_wrong_parameters(make, name):
    with pytest.raises(ValueError, match=f"Expected parameter {name} .*but found invalid values"):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Bernoulli(), "neither"),
        (lambda: Bernoulli(0.5, 0.0), "both"),
        (lambda: Normal("a", 1.0), "numbers or tensors, not str"),
        (lambda: Categorical(gt.tensor(1.0)), "one-dimensional"),
        (lambda: Dirichlet(gt.tensor(1.0)), "one-dimensional"),
        (lambda: LKJCholesky(1), "dim=1"),
        (lambda: MultivariateNormal(gt.zeros(2)), "none"),
        (lambda: MultivariateNormal(gt.zeros(2), gt.eye(2), gt.eye(2)), "covariance_matrix and p"),
        (lambda: MultivariateNormal(gt.zeros(2), gt.ones(2)), "two-dimensional"),
        (lambda: LowRankMultivariateNormal(gt.zeros(2), gt.ones(3, 1), gt.ones(2)), "2 x m"),
        (lambda: LowRankMultivariateNormal(gt.zeros(2), gt.ones(2, 1), gt.ones(3)), "cov_diag"),
        (lambda: Independent(Normal(0.0, 1.0), 1), "reinterpreted_batch_ndims"),
        (lambda: TransformedDistribution(Normal(0.0, 1.0), 3), "Transform"),
        (lambda: MixtureSameFamily(Normal(0.0, 1.0), Normal(gt.zeros(2), 1.0)), "Categorical"),
        (lambda: MixtureSameFamily(Categorical(gt.ones(3)), Normal(gt.zeros(2), 1.0)), r"\(3\)"),
        (lambda: Wishart(1.0, gt.eye(3)), "greater than"),
        (lambda: Distribution.set_default_validate_args("yes"), "True or False"),
        (lambda: Normal(gt.zeros(2), gt.ones(3)), "broadcast"),
    ],
)
def test_mistakes(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_counts_that_differ():
    counts = Binomial(gt.tensor([1.0, 2.0]), gt.tensor(0.5))
    with pytest.raises(NotImplementedError, match="from 1 to 2"):
        counts.enumerate_support()
    with pytest.raises(NotImplementedError, match="int"):
        Multinomial(gt.tensor([1.0]), gt.ones(2))


def test_wrong_values():
    normal = Normal(gt.zeros(3), gt.ones(3))
    with pytest.raises(ValueError, match="must be a Tensor"):
        normal.log_prob(1.0)
    with pytest.raises(ValueError, match="not broadcastable"):
        normal.log_prob(gt.zeros(2))
    with pytest.raises(ValueError, match="within the support"):
        normal.log_prob(gt.tensor([0.0, 0.0, float("nan")]))
    with pytest.raises(ValueError, match="within the support"):
        Poisson(1.0).log_prob(gt.tensor(0.5))
    with pytest.raises(ValueError, match="event_shape"):
        Dirichlet(gt.ones(3)).log_prob(gt.ones(2) / 2)
    with pytest.raises(ValueError, match="within the support"):
        Categorical(gt.ones(3)).log_prob(gt.tensor(3))


def test_checks_can_be_turned_off(unchecked):
    wrong = Normal(0.0, -1.0)
    assert wrong.log_prob(gt.tensor(float("nan"))).isnan().item()
    with pytest.raises(ValueError, match="scale"):
        Normal(0.0, -1.0, validate_args=True)
    checked = Normal(0.0, 1.0, validate_args=True)
    with pytest.raises(ValueError, match="support"):
        checked.expand((2,)).log_prob(gt.tensor(float("nan")))


def test_without_checks_nothing_is_fetched(unchecked):
    """Run under `vmap`, where fetching a mapped value raises an error."""
    value = gt.rand(4, 3) + 0.1

    def of(x):
        gamma = Gamma(x, 2.0)
        total = gamma.log_prob(gamma.rsample()) + Normal(x, x).log_prob(x) + gamma.entropy()
        both = kl_divergence(gamma, Gamma(1.0, 1.0)) + Beta(x, 1.0).log_prob(x / 2)
        weights = Categorical(logits=x)
        return (total + both).sum() + weights.log_prob(gt.tensor(1)) + weights.entropy()

    assert gt.vmap(of, randomness="different")(value).shape == (4,)


def test_training_with_samples(unchecked):
    """Training with sample gradients reaches the parameters that minimize the loss."""
    log_scale = gt.zeros(2, requires_grad=True)
    loc = gt.zeros(2, requires_grad=True)
    target = Normal(gt.tensor([1.0, -2.0]), gt.tensor([0.5, 2.0]))
    optimizer = gt.optim.Adam([loc, log_scale], lr=0.05)
    for _ in range(200):
        guess = Normal(loc, log_scale.exp())
        sample = guess.rsample((64,))
        loss = (guess.log_prob(sample) - target.log_prob(sample)).mean(0).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert kl_divergence(Normal(loc, log_scale.exp()), target).sum().item() < 0.02


def test_a_distribution_of_ones_own():
    class Shifted(Normal):
        def __init__(self, loc, scale, validate_args=None):
            super().__init__(loc + 1, scale, validate_args)

    shifted = Shifted(gt.zeros(2), 1.0)
    wide = shifted.expand((3, 2))
    assert type(wide) is Shifted and wide.mean.tolist() == [[1.0, 1.0]] * 3

    class Own(Distribution):
        arg_constraints = {"rate": constraints.positive}

        def __init__(self, rate):
            (self.rate,) = utils.broadcast_all(rate)
            super().__init__(self.rate.shape)

        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Own, _instance)
            new.rate = self.rate.expand(batch_shape)
            super(Own, new).__init__()
            return new

    assert Own(2.0).expand((2,)).rate.tolist() == [2.0, 2.0]
    assert repr(Own(2.0)) == "Own(rate: 2.0)"
    with pytest.raises(NotImplementedError):
        Own(2.0).rsample()
    with pytest.warns(UserWarning, match="does not define `support`"):
        Own(2.0)._validate_sample(gt.tensor(1.0))

    class Bare(Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        Bare()


class Rate(ExponentialFamily):
    """An exponential distribution that defines only what ExponentialFamily requires."""

    arg_constraints = {"rate": constraints.positive}
    _mean_carrier_measure = 0

    def __init__(self, rate):
        self.rate = rate
        super().__init__(rate.shape)

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -(-x).log()


def test_entropy_and_divergence_of_a_family():
    rates = [gt.tensor([0.5, 2.0], requires_grad=True) for _ in range(2)]
    for make in (
        lambda d, rate: d(rate).entropy(),
        lambda d, rate: kl_divergence(d(rate), d(2 * rate.detach())),
    ):
        got, want = (make(d, rate) for d, rate in zip((Rate, Exponential), rates, strict=True))
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-6)
        for tensor, value in zip(rates, (got, want), strict=True):
            tensor.grad = None
            value.sum().backward()
        np.testing.assert_allclose(*(rate.grad.numpy() for rate in rates), rtol=1e-5)
    with gt.no_grad():
        assert not Rate(rates[0]).entropy().requires_grad


def test_gradient_of_a_divergence_of_families():
    def of(df):
        one = Wishart(df, gt.eye(2, dtype=gt.float64))
        return kl_divergence(one, Wishart(5.0, 2 * gt.eye(2, dtype=gt.float64)))

    df = gt.tensor(4.0, dtype=gt.float64, requires_grad=True)
    of(df).backward()
    step = 1e-4
    want = (of(df.detach() + step) - of(df.detach() - step)).item() / (2 * step)
    np.testing.assert_allclose(df.grad.item(), want, rtol=1e-6)


def test_old_names():
    with pytest.warns(FutureWarning, match="sample_n"):
        assert Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_description():
    assert repr(Normal(0.0, gt.ones(2))) == "Normal(loc: (2,), scale: (2,))"
    assert repr(Exponential(gt.ones(1))) == "Exponential(rate: tensor([1.], dtype=float32))"
    assert repr(Uniform(0.0, 1.0).support) == "Interval(lower_bound=0.0, upper_bound=1.0)"
    independent = Independent(Normal(gt.zeros(2), 1.0), 1)
    assert repr(independent) == "Independent(Normal(loc: (2,), scale: (2,)), 1)"
    mixture = MixtureSameFamily(Categorical(gt.ones(2)), Normal(gt.zeros(2), 1.0))
    assert repr(mixture).startswith("MixtureSameFamily(\n  Categorical(probs: (2,)),\n  Normal(")


def test_copies():
    for distribution in (Normal(gt.zeros(2), 1.0), Gamma(1.0, 2.0), Beta(1.0, 2.0)):
        again = copy.deepcopy(distribution)
        assert again.mean.tolist() == distribution.mean.tolist()


def test_dtypes():
    for dtype in (gt.float16, gt.bfloat16, gt.float64):
        one = gt.ones(2, dtype=dtype)
        for distribution in (Normal(0.0, one), Uniform(0.0, one), Gamma(one, 1.0), Beta(one, one)):
            sample = distribution.sample((3,))
            assert sample.dtype == dtype, distribution
            assert distribution.log_prob(sample.clamp(0.01, 0.99)).dtype == dtype, distribution


def test_mixtures_of_one_choice_for_a_batch():
    components = Normal(gt.tensor([[0.0, 100.0]] * 3), 1.0)
    mixture = MixtureSameFamily(Categorical(gt.tensor([0.5, 0.5])), components)
    sample = mixture.sample((500,)).numpy() > 50
    assert sample.shape == (500, 3)
    assert (sample.mean(0) > 0.3).all() and (sample[:, 0] != sample[:, 1]).any()


def test_lazy_parameters_are_of_use_under_no_grad():
    logits = gt.zeros(2, requires_grad=True)
    distribution = OneHotCategorical(logits=logits)
    with gt.no_grad():
        distribution.sample()
    distribution.probs[0].backward()
    np.testing.assert_allclose(logits.grad.numpy(), [0.25, -0.25])


def test_relaxed_samples_go_to_their_limits():
    cold = LogitRelaxedBernoulli(gt.tensor(0.01), gt.tensor([0.3])).rsample((4000,))
    assert abs((cold > 0).to(gt.float32).mean().item() - 0.3) < 0.04


def test_cached_values_of_transforms_are_used():
    transform = transforms.TanhTransform(cache_size=1)
    distribution = TransformedDistribution(Normal(gt.full((3,), 30.0), 1.0), transform)
    sample = distribution.rsample()
    assert (sample == 1).all().item()
    assert distribution.log_prob(sample).isfinite().all().item()


def test_import_is_on_first_use():
    code = "import sys, gt; assert 'gt.distributions' not in sys.modules; print(gt.distributions)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "gt.distributions" in done.stdout, done.stderr


def modules():
    package = gt.distributions
    found = pkgutil.walk_packages(package.__path__, "gt.distributions.")
    return ["gt.distributions", *(module.name for module in found)]


@pytest.mark.parametrize("name", modules())
def test_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs={"gt": gt}).failed == 0


def test_the_types_of_constructors_can_be_read():
    for kind in map(vars(gt.distributions.transforms).get, gt.distributions.transforms.__all__):
        if isinstance(kind, type):
            typing.get_type_hints(kind.__init__)
