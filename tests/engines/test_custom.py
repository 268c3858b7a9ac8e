"""A custom engine in about thirty lines."""

import numpy as np
import pytest
from gt.engines import load
from gt.engines.check.plans import one_step
from gt.engines.check.values import get
from gt.engines.engine import Meta, Plan
from gt.engines.numpy import NumPyEngine


def leaky_relu(x: np.ndarray) -> np.ndarray:
    """Compute a leaky ReLU, which replaces the engine's relu."""
    return np.where(x > 0, x, x / 100)


class Counting(NumPyEngine):
    """A NumPy engine with another relu, which counts the plans that it runs."""

    name = "counting"
    lowerings = {**NumPyEngine.lowerings, "relu": leaky_relu}

    def __init__(self, device: int = 0):
        super().__init__(device)
        self.plans = 0

    def run(self, plan: Plan, values: list) -> list:
        self.plans += 1
        return super().run(plan, values)


def test_an_engine_of_ones_own():
    engine = load("test_custom:Counting")
    x = np.array([-100.0, 3.0])
    builder, plan = one_step("relu", x, output=Meta("float64", (2,)))
    for _ in range(3):
        (out,) = engine.run(plan, builder.values(engine))
        assert get(engine, out).tolist() == [-1, 3]
    assert (engine.name, engine.plans) == ("counting", 3)


def test_pytorch_takes_a_lowering_of_ones_own():
    torch = pytest.importorskip("torch", reason="pytorch: make test-all")
    from gt.engines.pytorch import PyTorchEngine

    class Leaky(PyTorchEngine):
        lowerings = {
            **PyTorchEngine.lowerings,
            "relu": lambda x: torch.where(x > 0, x, x / 100),
        }

    engine = Leaky("cpu")
    builder, plan = one_step("relu", np.array([-100.0, 3.0]), output=Meta("float64", (2,)))
    (out,) = engine.run(plan, builder.values(engine))
    assert get(engine, out).tolist() == [-1, 3]


def test_what_is_no_engine():
    with pytest.raises(ValueError, match="test_custom:leaky_relu: not an engine"):
        load("test_custom:leaky_relu")
    with pytest.raises(ValueError, match="test_custom:Missing: not an engine"):
        load("test_custom:Missing")
