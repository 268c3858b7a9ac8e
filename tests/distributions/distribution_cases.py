"""Distributions constructed by GT and by PyTorch from the same parameters.

A case is a function of a distributions package and a tensor factory (`Maker`).
"""

import gt
import gt.distributions
import numpy as np
from pytorch import torch

GT, TORCH = gt.distributions, torch.distributions


class Maker:
    """A factory of one library's tensors of one dtype, which records the tensors it made."""

    def __init__(self, library, grad=True, dtype="float64"):
        self.library = library
        self.grad = grad
        self.dtype = getattr(library, dtype)
        self.made = []

    def __call__(self, values):
        array = np.array(values, dtype=np.float64)
        if self.library is gt:
            tensor = gt.tensor(array, dtype=self.dtype)
        else:
            tensor = torch.tensor(array, dtype=self.dtype)
        self.made.append(tensor.requires_grad_(self.grad))
        return tensor


#: Cases with a dtype other than float64: PyTorch's GeneralizedPareto takes only float32.
DTYPES = {"GeneralizedPareto": "float32"}


def pair(name, grad=True):
    """Return GT's and PyTorch's distribution of a case, then the parameters of each."""
    dtype = DTYPES.get(name, "float64")
    ours, theirs = Maker(gt, grad, dtype), Maker(torch, grad, dtype)
    case = CASES[name]
    return case(GT, ours), case(TORCH, theirs), ours.made, theirs.made


FACTOR = [[1.2, 0.0, 0.0], [0.3, 0.8, 0.0], [-0.4, 0.1, 1.5]]
COVARIANCE = (np.array(FACTOR) @ np.array(FACTOR).T).tolist()
SQUARE = [[[2.0, 0.3], [0.3, 1.0]], [[1.0, -0.2], [-0.2, 3.0]]]

CASES = {
    "Bernoulli": lambda D, t: D.Bernoulli(t([0.7, 0.2, 0.4])),
    "Bernoulli logits": lambda D, t: D.Bernoulli(logits=t([[0.5], [-2.0]])),
    "Beta": lambda D, t: D.Beta(t([1.5, 0.4, 3.0]), t([[2.0], [0.7]])),
    "Binomial": lambda D, t: D.Binomial(6, t([0.3, 0.9])),
    "Binomial counts": lambda D, t: D.Binomial(t([3.0, 5.0]).detach(), logits=t([0.4, -1.0])),
    "Categorical": lambda D, t: D.Categorical(t([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])),
    "Categorical logits": lambda D, t: D.Categorical(logits=t([0.5, -1.0, 0.2])),
    "Cauchy": lambda D, t: D.Cauchy(t([0.0, 1.0]), t([1.0, 2.5])),
    "Chi2": lambda D, t: D.Chi2(t([0.6, 3.0, 8.0])),
    "ContinuousBernoulli": lambda D, t: D.ContinuousBernoulli(t([0.7, 0.01, 0.498])),
    "ContinuousBernoulli logits": lambda D, t: D.ContinuousBernoulli(logits=t([0.7, -2.0])),
    "Dirichlet": lambda D, t: D.Dirichlet(t([[0.5, 1.5, 2.0], [0.4, 0.6, 0.3]])),
    "Exponential": lambda D, t: D.Exponential(t([0.7, 2.0])),
    "FisherSnedecor": lambda D, t: D.FisherSnedecor(t([2.5, 5.0]), t([9.0, 12.0])),
    "Gamma": lambda D, t: D.Gamma(t([0.3, 2.0, 15.0]), t([[1.0], [3.0]])),
    "GeneralizedPareto": lambda D, t: D.GeneralizedPareto(
        t([0.0, 1.0, 2.0]), t([1.0, 2.0, 0.5]), t([0.1, -0.4, 0.2])
    ),
    "Geometric": lambda D, t: D.Geometric(t([0.2, 0.8])),
    "Geometric logits": lambda D, t: D.Geometric(logits=t([0.3, -0.8])),
    "Gumbel": lambda D, t: D.Gumbel(t([0.5, -1.0]), t([1.0, 2.0])),
    "HalfCauchy": lambda D, t: D.HalfCauchy(t([1.0, 2.5])),
    "HalfNormal": lambda D, t: D.HalfNormal(t([1.0, 2.5])),
    "Independent": lambda D, t: D.Independent(
        D.Normal(t([[0.0, 1.0], [2.0, 3.0]]), t([1.0, 2.0])), 1
    ),
    "InverseGamma": lambda D, t: D.InverseGamma(t([6.0, 8.5]), t([1.0, 2.0])),
    "Kumaraswamy": lambda D, t: D.Kumaraswamy(t([1.5, 2.0]), t([2.5, 4.0])),
    "LKJCholesky": lambda D, t: D.LKJCholesky(3, t([0.5, 1.5])),
    "Laplace": lambda D, t: D.Laplace(t([0.0, 1.0]), t([1.0, 2.5])),
    "LogNormal": lambda D, t: D.LogNormal(t([0.0, 0.5]), t([0.4, 0.7])),
    "LogisticNormal": lambda D, t: D.LogisticNormal(t([[0.1, 0.5], [1.0, -1.0]]), t([0.4, 0.7])),
    "LowRankMultivariateNormal": lambda D, t: D.LowRankMultivariateNormal(
        t([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]]),
        t([[1.0, 0.3], [0.2, -1.0], [0.0, 0.5]]),
        t([1.0, 0.5, 2.0]),
    ),
    "MixtureSameFamily": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t([[0.3, 0.7], [0.5, 0.5]])),
        D.Normal(t([[0.0, 3.0], [1.0, 5.0]]), t([1.0, 2.0])),
    ),
    "MixtureSameFamily of vectors": lambda D, t: D.MixtureSameFamily(
        D.Categorical(t([[0.3, 0.7], [0.6, 0.4]])),
        D.Independent(D.Normal(t([[[0.0, 3.0], [1.0, 5.0]]] * 2), t([1.0, 2.0])), 1),
    ),
    "Multinomial": lambda D, t: D.Multinomial(5, t([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])),
    "Multinomial logits": lambda D, t: D.Multinomial(3, logits=t([0.3, -0.6])),
    "MultivariateNormal": lambda D, t: D.MultivariateNormal(t([0.0, 1.0, 2.0]), t(COVARIANCE)),
    "MultivariateNormal factor": lambda D, t: D.MultivariateNormal(
        t([[0.0, 1.0, 2.0], [3.0, 1.0, 1.0]]), scale_tril=t(FACTOR)
    ),
    "MultivariateNormal precision": lambda D, t: D.MultivariateNormal(
        t([0.5, 1.0]), precision_matrix=t(SQUARE)
    ),
    "NegativeBinomial": lambda D, t: D.NegativeBinomial(t([2.5, 4.0]), t([0.3, 0.6])),
    "NegativeBinomial logits": lambda D, t: D.NegativeBinomial(3, logits=t([0.3, -0.6])),
    "Normal": lambda D, t: D.Normal(t([0.0, 1.0, -2.0]), t([[1.0], [2.5]])),
    "OneHotCategorical": lambda D, t: D.OneHotCategorical(t([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])),
    "OneHotCategoricalStraightThrough": lambda D, t: D.OneHotCategoricalStraightThrough(
        logits=t([0.5, -1.0, 0.2])
    ),
    "Pareto": lambda D, t: D.Pareto(t([1.0, 2.0]), t([6.5, 9.0])),
    "Poisson": lambda D, t: D.Poisson(t([0.5, 6.0])),
    "RelaxedBernoulli": lambda D, t: D.RelaxedBernoulli(t([0.7]), t([0.7, 0.2])),
    "RelaxedOneHotCategorical": lambda D, t: D.RelaxedOneHotCategorical(
        t([0.7]), t([[0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    ),
    "StudentT": lambda D, t: D.StudentT(t([9.0, 12.0]), t([0.0, 1.0]), t([1.0, 2.0])),
    "TransformedDistribution": lambda D, t: D.TransformedDistribution(
        D.Normal(t([0.0, 1.0]), t([1.0, 0.5])),
        [D.transforms.AffineTransform(t([1.0, 0.5]), t([-2.0, 3.0])), D.SigmoidTransform()],
    ),
    "Uniform": lambda D, t: D.Uniform(t([0.0, -1.0]), t([[1.0], [3.0]])),
    "VonMises": lambda D, t: D.VonMises(t([0.0, 1.0]), t([0.7, 4.0])),
    "Weibull": lambda D, t: D.Weibull(t([1.0, 2.0]), t([1.5, 3.0])),
    "Wishart": lambda D, t: D.Wishart(t([4.0, 5.5]), t(SQUARE)),
    "Wishart factor": lambda D, t: D.Wishart(5, scale_tril=t(FACTOR)),
}
