"""Probability distributions, as in `torch.distributions`.

    >>> from gt.distributions import Normal, kl_divergence
    >>> normal = Normal(gt.tensor([0.0, 1.0]), gt.tensor([1.0, 2.0]))
    >>> normal.sample((3,)).shape
    (3, 2)

`sample` draws values, `rsample` draws them with gradients to the parameters, and `log_prob`
returns the logarithm of a probability or density. Parameters and values are checked, and each
check fetches one boolean; `Distribution.set_default_validate_args(False)` turns the checks off.
"""

from gt.distributions import constraint_registry, constraints, kl, transforms, utils
from gt.distributions.bernoulli import Bernoulli
from gt.distributions.beta import Beta
from gt.distributions.binomial import Binomial
from gt.distributions.categorical import Categorical
from gt.distributions.cauchy import Cauchy
from gt.distributions.chi2 import Chi2
from gt.distributions.constraint_registry import biject_to, transform_to
from gt.distributions.continuous_bernoulli import ContinuousBernoulli
from gt.distributions.dirichlet import Dirichlet
from gt.distributions.distribution import Distribution
from gt.distributions.exp_family import ExponentialFamily
from gt.distributions.exponential import Exponential
from gt.distributions.fishersnedecor import FisherSnedecor
from gt.distributions.gamma import Gamma
from gt.distributions.generalized_pareto import GeneralizedPareto
from gt.distributions.geometric import Geometric
from gt.distributions.gumbel import Gumbel
from gt.distributions.half_cauchy import HalfCauchy
from gt.distributions.half_normal import HalfNormal
from gt.distributions.independent import Independent
from gt.distributions.inverse_gamma import InverseGamma
from gt.distributions.kl import kl_divergence, register_kl
from gt.distributions.kumaraswamy import Kumaraswamy
from gt.distributions.laplace import Laplace
from gt.distributions.lkj_cholesky import LKJCholesky
from gt.distributions.log_normal import LogNormal
from gt.distributions.logistic_normal import LogisticNormal
from gt.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from gt.distributions.mixture_same_family import MixtureSameFamily
from gt.distributions.multinomial import Multinomial
from gt.distributions.multivariate_normal import MultivariateNormal
from gt.distributions.negative_binomial import NegativeBinomial
from gt.distributions.normal import Normal
from gt.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from gt.distributions.pareto import Pareto
from gt.distributions.poisson import Poisson
from gt.distributions.relaxed_bernoulli import RelaxedBernoulli
from gt.distributions.relaxed_categorical import RelaxedOneHotCategorical
from gt.distributions.studentT import StudentT
from gt.distributions.transformed_distribution import TransformedDistribution
from gt.distributions.transforms import *  # noqa: F403
from gt.distributions.transforms import __all__ as _transforms
from gt.distributions.uniform import Uniform
from gt.distributions.von_mises import VonMises
from gt.distributions.weibull import Weibull
from gt.distributions.wishart import Wishart

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraint_registry",
    "constraints",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
    "utils",
    *_transforms,
]
