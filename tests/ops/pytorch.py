"""PyTorch for comparisons: tests that import this are skipped if it is not installed."""

import os

import gt
import numpy as np
import pytest

if os.environ.get("GT_TEST_ALL"):
    import torch  # `make test-all` installs it: its absence is a failure.
else:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

torch.set_num_threads(1)

TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 1e-12}


def dtype_name(tensor) -> str:
    """Return GT's name of a PyTorch tensor's dtype."""
    return str(tensor.dtype).removeprefix("torch.")


def array(tensor) -> np.ndarray:
    """Return a PyTorch tensor's values as an array; bfloat16 as float32, without loss."""
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def to_gt(value):
    """Return the GT tensor of a PyTorch tensor; also for lists and tuples of tensors."""
    if isinstance(value, torch.Tensor):
        made = gt.tensor(array(value).copy(), dtype=dtype_name(value))
        return made.requires_grad_() if value.requires_grad else made
    if isinstance(value, (list, tuple)):
        return type(value)(to_gt(item) for item in value)
    return value


def check(got, want, context="", scale=1.0):
    """Compare shape, dtype and values with PyTorch's."""
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want), context
        for one, other in zip(got, want, strict=True):
            check(one, other, context, scale)
        return
    name = dtype_name(want)
    assert got.dtype.name == name, f"{context}: dtype {got.dtype}, PyTorch returns {name}"
    assert got.shape == tuple(want.shape), f"{context}: {got.shape}, PyTorch {want.shape}"
    tolerance = TOLERANCE.get(name, 0) * scale
    np.testing.assert_allclose(
        got.detach().numpy(), array(want), rtol=tolerance, atol=tolerance, err_msg=str(context)
    )


def draw(seed: int, *shape: int, dtype="float32", low=-3.0, high=3.0):
    """Return a random PyTorch tensor, determined by a seed; also of integers and bools."""
    random = np.random.default_rng(seed)
    if dtype == "bool":
        values = random.integers(0, 2, shape)
    elif "int" in dtype:
        values = random.integers(int(low), int(high) + 1, shape)
    else:
        values = random.uniform(low, high, shape)
    return torch.tensor(values, dtype=getattr(torch, dtype))
