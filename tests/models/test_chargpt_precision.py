"""The character GPT has nearly the same loss curve in each precision, and with recomputation."""

import sys
from functools import cache
from pathlib import Path

import gt
import numpy as np
import pytest
from gt import nn
from gt.nn import functional as F
from gt.utils.checkpoint import checkpoint
from processes import one_engine_only, unsharded_only

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import chargpt  # noqa: E402

pytestmark = one_engine_only

STEPS, CONTEXT = 70, 16


class Recomputed(nn.Module):
    """A module whose activations are recomputed in the backward pass."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=False)


def curve(autocast=None, recomputed=False, parameters=gt.float32):
    """Train for some steps, which differ only in precision between calls; return the losses."""
    gt.manual_seed(0)
    text = chargpt.Text(chargpt.SONNETS, CONTEXT)
    model = chargpt.GPT(len(text.alphabet), CONTEXT, width=32, layers=2, heads=2, dropout=0.1)
    if recomputed:
        model.blocks = nn.Sequential(*map(Recomputed, model.blocks))
    # The optimizer updates float32 master weights, whatever the precision of the model.
    masters = [parameter.detach().clone() for parameter in model.parameters()]
    model.to(parameters)
    optimizer = gt.optim.AdamW(masters, lr=3e-3)
    scaler = gt.amp.GradScaler("cpu", enabled=autocast == gt.float16, init_scale=2.0**12)
    starts = gt.from_numpy(np.random.default_rng(0).integers(0, text.trained, (STEPS, 8)))
    losses = []
    for step in range(STEPS):
        codes, following = text.windows(starts[step])
        with gt.autocast("cpu", autocast or gt.bfloat16, enabled=autocast is not None):
            scores = model(codes)
        loss = F.cross_entropy(scores.float().flatten(0, 1), following.flatten())
        scaler.scale(loss).backward()
        for master, parameter in zip(masters, model.parameters(), strict=True):
            master.grad = parameter.grad.float()
        scaler.step(optimizer)
        scaler.update()
        model.zero_grad()
        with gt.no_grad():
            for master, parameter in zip(masters, model.parameters(), strict=True):
                parameter.copy_(master)
        losses.append(loss.detach())
    return np.array(gt.stack(losses).tolist())


@cache
def in_float32():
    """Return the losses in float32."""
    return curve()


def smooth(losses):
    """Return the means of each ten steps."""
    return losses.reshape(-1, 10).mean(1)


def test_the_loss_falls():
    assert in_float32()[0] > 4.1 and smooth(in_float32())[-1] < 2.7


@pytest.mark.parametrize(
    "options",
    [
        {"autocast": gt.bfloat16},
        {"autocast": gt.float16},
        {"parameters": gt.bfloat16},
    ],
    ids=["bfloat16", "float16", "bfloat16 with float32 masters"],
)
def test_a_lower_precision_has_nearly_the_same_curve(options):
    losses = curve(**options)
    assert not np.array_equal(losses, in_float32())
    np.testing.assert_allclose(smooth(losses), smooth(in_float32()), rtol=0.005)


@unsharded_only
def test_recomputed_activations_have_the_same_curve():
    np.testing.assert_array_equal(curve(recomputed=True), in_float32())
