"""The source of the character GPT trains in PyTorch with the same losses and weights."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/chargpt.py"
STEPS, CONTEXT = 12, 16


def example(library):
    """Return the example as a module that imports this library instead of GT."""
    source = EXAMPLE.read_text().replace("import gt\n", f"import {library} as gt\n")
    module = ModuleType("chargpt")
    module.__file__ = str(EXAMPLE)
    code = compile(source.replace("from gt", f"from {library}"), str(EXAMPLE), "exec")
    exec(code, module.__dict__)
    return module


def train(chargpt, weights=None):
    """Train for some steps; return the weights before, the losses, and the weights after."""
    lib = chargpt.gt
    lib.manual_seed(0)
    text = chargpt.Text(chargpt.SONNETS, CONTEXT)
    model = chargpt.GPT(len(text.alphabet), CONTEXT, width=32, layers=2, heads=2, dropout=0.0)
    if weights is not None:
        model.load_state_dict({name: lib.from_numpy(value) for name, value in weights.items()})
    before = state(model)
    optimizer = lib.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = chargpt.schedule_of(optimizer, STEPS)
    losses = []
    for places in np.random.default_rng(0).integers(0, text.trained, (STEPS, 8)):
        loss = chargpt.loss_of(model, *text.windows(lib.from_numpy(places)), "float32")
        loss.backward()
        chargpt.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(loss.detach())
    held_out = chargpt.evaluate(model, text, "float32")
    return before, [*lib.stack(losses).tolist(), held_out], state(model)


def state(model):
    """Return a model's state as arrays."""
    return {name: value.numpy().copy() for name, value in model.state_dict().items()}


def without_noise(weights):
    """Return weights without the biases of keys.

    They do not affect attention scores, so their gradients are only rounding errors.
    """
    kept = {name: value for name, value in weights.items() if not name.endswith("qkv.bias")}
    biases = {name: value for name, value in weights.items() if name not in kept}
    return kept | {name: np.delete(np.split(b, 3), 1, axis=0) for name, b in biases.items()}


def test_losses_and_weights_are_those_of_pytorch():
    weights, losses, trained = train(example("gt"))
    assert losses[-1] < losses[0] - 0.3
    begun, expected, after = train(example("torch"), weights)
    assert list(begun) == list(weights)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    after = without_noise(after)
    for name, value in without_noise(trained).items():
        np.testing.assert_allclose(value, after[name], rtol=0, atol=1e-4, err_msg=name)
