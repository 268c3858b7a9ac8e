"""The precision of products: float32 is not rounded unless the user requests it."""

import numpy as np
import pytest
from gt.engines.check.plans import one_step
from gt.engines.check.values import get
from gt.engines.engine import Meta
from machine import ENVIRONMENT, make_engine
from marks import gpu_only
from processes import run_program, run_python

FLAGS = """
import gt, torch
gt.ones(2).tolist()
matmul = torch.backends.cuda.matmul
print(matmul.allow_tf32, torch.backends.cudnn.allow_tf32,
      matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction)
"""

PRODUCT = """
import gt, numpy as np
x = np.random.default_rng(0).uniform(-1, 1, (512, 512)).astype("float32")
got = (gt.tensor(x) @ gt.tensor(x)).numpy()
print(np.abs(got - x.astype("float64") @ x).max())
"""


def product(engine, a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    meta = Meta(dtype, (a.shape[0], b.shape[1]))
    builder, plan = one_step("matmul", (a, dtype), (b, dtype), output=meta)
    (out,) = engine.run(plan, builder.values(engine))
    assert engine.describe(out) == meta
    return get(engine, out)


def uniform(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, shape)


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-4), ("float64", 1e-11)])
def test_products_have_their_own_precision(engine, dtype, bound):
    """TF32 would be wrong by about 0.01 here."""
    a, b = uniform(300, 2000).astype(dtype), uniform(2000, 100).astype(dtype)
    error = np.abs(product(engine, a, b, dtype) - a.astype("float64") @ b.astype("float64"))
    assert error.max() < bound


def test_convolutions_have_their_own_precision(tmp_path):
    x, w = uniform(2, 32, 40).astype("float32"), uniform(8, 32, 3).astype("float32")
    wanted = np.zeros((2, 8, 38))
    for place in range(3):
        wanted += np.einsum("ncl,oc->nol", x[:, :, place : place + 38].astype("f8"), w[:, :, place])
    program = (
        "import gt, numpy as np, sys\n"
        "x, w, wanted = (np.load(name) for name in sys.argv[1:])\n"
        "got = gt.nn.functional.conv1d(gt.tensor(x), gt.tensor(w)).numpy()\n"
        "print(np.abs(got - wanted).max())\n"
    )
    names = [str(tmp_path / f"{number}.npy") for number in range(3)]
    for name, values in zip(names, (x, w, wanted), strict=True):
        np.save(name, values)
    done = run_python(program, *names, timeout=300, **ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 2e-5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_16_bits_are_summed_in_float32(engine, dtype):
    """Accumulated in their own dtype, the sums of ones would stop at 2,048 and 256."""
    ones = np.ones((3, 4096))
    assert (product(engine, ones, ones.T.copy(), dtype) == 4096).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_16_bits_are_made_in_float32(engine, dtype):
    meta = Meta(dtype, ())
    ones = (np.ones(4096), dtype)
    builder, plan = one_step("sum", ones, output=meta, dim=[], keepdim=False)
    (out,) = engine.run(plan, builder.values(engine))
    assert get(engine, out) == 4096


@pytest.mark.parametrize(("dtype", "step"), [("bfloat16", 2**-8), ("float16", 2**-11)])
def test_autocast(dtype, step):
    engine = make_engine(autocast=dtype)
    x = uniform(64, 64)
    rounded = np.abs(product(engine, x, x, "float32") - x.astype("f4").astype("f8") @ x).max()
    assert step * 0.02 < rounded < step * 64
    error = np.abs(product(engine, x, x, "float64") - x @ x).max()
    assert error < 1e-12, "float64 is not rounded"


@pytest.mark.parametrize(("environment", "says"), [({}, False), ({"GT_TF32": "1"}, True)])
def test_tf32_is_asked_for(environment, says):
    done = run_python(FLAGS, timeout=300, **ENVIRONMENT, **environment)
    assert done.stdout.split() == [str(says)] * 2 + ["False"] * 2, done.stderr


@gpu_only
def test_what_tf32_changes():
    plain, rounded = (
        float(run_python(PRODUCT, timeout=300, **ENVIRONMENT, **environment).stdout)
        for environment in ({}, {"GT_TF32": "1"})
    )
    assert plain < 1e-4 < rounded < 0.1


def test_linear_algebra():
    done = run_program("gpu/linear_algebra", timeout=300, **ENVIRONMENT)
    assert done.stdout == "fine\n", done.stderr
