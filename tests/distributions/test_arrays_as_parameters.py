"""Distributions take arrays of NumPy's and PyTorch's tensors as parameters and values."""

import gt
import numpy as np
import pytest
from distribution_cases import CASES, DTYPES, GT, TORCH, Maker
from pytorch import torch


def arrays(dtype):
    return lambda values: np.array(values, dtype)


def tensors(dtype):
    return lambda values: torch.tensor(np.array(values, dtype))


@pytest.mark.filterwarnings("ignore:Singular sample detected")
@pytest.mark.parametrize("kind", [arrays, tensors])
@pytest.mark.parametrize("name", CASES)
def test_arrays_stand_for_tensors(name, kind):
    if name == "Binomial counts" and kind is arrays:
        pytest.skip("the case calls a method of tensors")
    dtype = DTYPES.get(name, "float64")
    theirs, ours = CASES[name](TORCH, Maker(torch, False, dtype)), CASES[name](GT, kind(dtype))
    torch.manual_seed(0)
    value = theirs.sample((2,))
    for given in (value, value.numpy()):
        found = ours.log_prob(given)
        assert isinstance(found, gt.Tensor)
        np.testing.assert_allclose(found, theirs.log_prob(value), rtol=2e-4, atol=1e-5)
    assert isinstance(ours.sample(), gt.Tensor)


def test_divergences_and_transforms_take_arrays():
    loc, scale = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    ours = GT.kl_divergence(GT.Normal(loc, scale), GT.Normal(scale, scale))
    t = torch.tensor
    theirs = TORCH.kl_divergence(TORCH.Normal(t(loc), t(scale)), TORCH.Normal(t(scale), t(scale)))
    np.testing.assert_allclose(ours, theirs)
    moved = GT.AffineTransform(loc, scale)
    assert moved(loc).tolist() == TORCH.AffineTransform(t(loc), t(scale))(t(loc)).tolist()
    assert moved.inv(scale).tolist() == [1, 0.5]
