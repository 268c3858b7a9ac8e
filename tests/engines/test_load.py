"""Loading of engines by name."""

import subprocess
import sys

import pytest
from gt import engines


def test_an_unknown_name():
    with pytest.raises(ValueError, match="expected one of native, numpy, pytorch, jax, or"):
        engines.load("pytorhc")
    with pytest.raises(ValueError, match=r"did you mean 'pytorch'\?$"):
        engines.load("pytorhc")
    with pytest.raises(ValueError, match="or module:Class$"):
        engines.load("fortran")


def test_the_native_engine_is_elsewhere():
    with pytest.raises(ValueError, match="'native' is built into workers"):
        engines.load("native")


def test_the_default(monkeypatch):
    monkeypatch.setenv("GT_BACKEND", "jax")
    assert engines.default() == "jax"
    monkeypatch.delenv("GT_BACKEND")
    for gpus, name in ((0, "native"), (2, "pytorch")):
        monkeypatch.setattr(engines, "sees_gpu", lambda gpus=gpus: gpus)
        assert engines.default() == name


def test_a_missing_package(monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    text = "the engine 'jax' needs the package jax: pip install jax"
    with pytest.raises(ImportError, match=f"^{text}$"):
        engines.load("jax")
    with pytest.raises(ImportError, match="pip install torch$"):
        engines.load("pytorch")


def test_nothing_is_imported_before_it_is_needed():
    program = (
        "import sys, gt.engines; gt.engines.sees_gpu(); "
        "print([name for name in ('torch', 'jax') if name in sys.modules])"
    )
    environment = {"CUDA_VISIBLE_DEVICES": ""}
    out = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("hidden", ["", "-1", " "])
def test_hidden_gpus_are_not_seen(monkeypatch, hidden):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert engines.sees_gpu() == 0


def test_as_many_gpus_as_pytorch_sees():
    torch = pytest.importorskip("torch", reason="pytorch: make test-all")
    assert engines.sees_gpu() == torch.cuda.device_count()


def test_autocast(monkeypatch):
    pytest.importorskip("torch", reason="pytorch: make test-all")
    import numpy as np
    from gt.engines.check.plans import one_step
    from gt.engines.check.values import get
    from gt.engines.engine import Meta
    from gt.engines.pytorch import PyTorchEngine

    x = np.random.default_rng(0).uniform(-1, 1, (4, 4)).astype("float32")
    builder, plan = one_step("matmul", x, x, output=Meta("float32", (4, 4)))
    monkeypatch.setenv("GT_AUTOCAST", "bfloat16")
    engine = PyTorchEngine("cpu")
    (out,) = engine.run(plan, builder.values(engine))
    assert engine.describe(out) == Meta("float32", (4, 4))
    error = np.abs(get(engine, out) - x @ x).max()
    assert 1e-5 < error < 0.05
    with pytest.raises(
        ValueError, match="autocast: the dtype is 'int8', expected 'bfloat16' or 'float16'"
    ):
        PyTorchEngine("cpu", autocast="int8")
