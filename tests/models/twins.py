"""Comparisons of an example's model with the same model in PyTorch."""

import sys
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"
sys.path.insert(0, str(EXAMPLES))

import diffusion  # noqa: E402, F401
import lstm  # noqa: E402, F401
import policy_gradient  # noqa: E402, F401
import resnet  # noqa: E402, F401
import vae  # noqa: E402, F401
import vit  # noqa: E402, F401


def error(ours, theirs):
    """Return the largest difference divided by the largest element."""
    found, wanted = ours.detach().numpy(), theirs.detach().numpy()
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    return np.abs(found - wanted).max() / max(1e-12, np.abs(wanted).max())


def assert_close(ours, theirs, name="output"):
    """Compare within 1e-4 of the largest element."""
    assert error(ours, theirs) < 1e-4, name


def assert_gradients_close(ours, theirs):
    """Compare the gradients of all parameters, none of which may be missing or zero."""
    pairs = zip(ours.named_parameters(), theirs.named_parameters(), strict=True)
    for (name, parameter), (their_name, twin) in pairs:
        assert name == their_name and twin.grad.abs().max() > 0, name
        assert_close(parameter.grad, twin.grad, name)


def assert_buffers_close(ours, theirs):
    """Compare running statistics and the numbers of batches."""
    pairs = zip(ours.named_buffers(), theirs.named_buffers(), strict=True)
    for (name, buffer), (their_name, twin) in pairs:
        assert name == their_name
        assert_close(buffer, twin, name)


def minimize(loss, optimizer, steps):
    """Minimize loss(step) for a number of steps; return the losses."""
    losses = []
    for step in range(steps):
        value = loss(step)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.detach())
    return [value.item() for value in losses]


def assert_same_curve(ours, theirs, progress=0.8):
    """Compare losses: the first 20 within 0.1 %, means over 10 steps within 2 %.

    The final loss must be at most `progress` times the first one.
    """
    ours, theirs = np.array(ours), np.array(theirs)
    np.testing.assert_allclose(ours[:20], theirs[:20], rtol=1e-3)
    window = np.ones(10) / 10
    smooth, wanted = np.convolve(ours, window, "valid"), np.convolve(theirs, window, "valid")
    np.testing.assert_allclose(smooth, wanted, rtol=0.02)
    assert wanted[-1] < progress * wanted[0], "training makes progress"
