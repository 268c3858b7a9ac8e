"""Automatic mixed precision: autocast and gradient scaling."""

import copy
import pickle
import threading

import gt
import numpy as np
import pytest
from gt import nn
from gt.nn import functional as F


def floats(*shape):
    return gt.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"))


LOWER = {
    "@": lambda: floats(2, 3) @ floats(3, 4),
    "vectors": lambda: floats(3) @ floats(3),
    "mm": lambda: gt.mm(floats(2, 3), floats(3, 4)),
    "bmm": lambda: gt.bmm(floats(2, 2, 3), floats(2, 3, 4)),
    "mv": lambda: floats(2, 3).mv(floats(3)),
    "addmm": lambda: gt.addmm(floats(4), floats(2, 3), floats(3, 4)),
    "einsum": lambda: gt.einsum("ij,jk->ik", floats(2, 3), floats(3, 4)),
    "linear": lambda: F.linear(floats(2, 3), floats(4, 3), floats(4)),
    "conv2d": lambda: F.conv2d(floats(1, 2, 4, 4), floats(3, 2, 2, 2), floats(3)),
    "attention": lambda: F.scaled_dot_product_attention(*[floats(1, 2, 3, 4)] * 3),
}
FULL = {
    "exp": lambda x: x.exp(),
    "log": lambda x: gt.log(x),
    "pow": lambda x: x**2,
    "rsqrt": lambda x: gt.rsqrt(x),
    "sum": lambda x: x.sum(),
    "cumsum": lambda x: x.cumsum(0),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, (3,)),
    "norm": lambda x: x.norm(),
    "mse_loss": lambda x: F.mse_loss(x, x),
    "cross_entropy": lambda x: F.cross_entropy(x, gt.zeros(2, dtype=gt.int64)),
    "det": lambda x: gt.linalg.det(x[:, :2]),
}
SAME = {
    "add": lambda x: x + x,
    "relu": lambda x: x.relu(),
    "mean": lambda x: x.mean(),
    "tanh": lambda x: gt.tanh(x),
    "gelu": lambda x: F.gelu(x),
    "mish": lambda x: F.mish(x),
    "elu": lambda x: F.elu(x),
    "var": lambda x: x.var(),
    "reshape": lambda x: x.reshape(-1),
    "max_pool": lambda x: F.max_pool1d(x, 2),
    "explicit dtype": lambda x: x.sum(dtype=gt.float16).to(x.dtype),
}


@pytest.mark.parametrize("name", LOWER)
@pytest.mark.parametrize("dtype", [gt.bfloat16, gt.float16])
def test_products_have_the_lower_precision(name, dtype):
    expected = LOWER[name]()
    with gt.autocast("cpu", dtype):
        product = LOWER[name]()
    assert product.dtype == dtype
    np.testing.assert_allclose(product.float().numpy(), expected.float().numpy(), atol=0.1)


@pytest.mark.parametrize("name", FULL)
def test_sensitive_functions_have_float32(name):
    x = (floats(2, 3).abs() + 0.5).to(gt.bfloat16)
    expected = FULL[name](x.float())
    with gt.autocast("cpu"):
        result = FULL[name](x)
    assert result.dtype == gt.float32
    np.testing.assert_array_equal(result.numpy(), expected.numpy())


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("dtype", [gt.bfloat16, gt.float32, gt.float64])
def test_others_keep_their_dtype(name, dtype):
    x = (floats(2, 3).abs() + 0.5).to(dtype)
    with gt.autocast("cpu"):
        assert SAME[name](x).dtype == dtype


def test_operations_of_several_operands_have_the_widest_dtype():
    low = floats(2, 3).to(gt.bfloat16)
    with gt.autocast("cpu"):
        assert gt.cat([low, floats(2, 3)]).dtype == gt.float32
        assert gt.stack([low, low]).dtype == gt.bfloat16
        assert (low + floats(2, 3)).dtype == gt.float32
        assert gt.addcmul(low, low, floats(2, 3)).dtype == gt.float32


def test_products_of_mixed_precisions():
    with gt.autocast("cpu"):
        assert (floats(2, 3).to(gt.float16) @ floats(3, 4)).dtype == gt.bfloat16


def test_autocast_ignores_float64_and_integers():
    doubles, wholes = floats(3, 3).double(), gt.ones(3, 3, dtype=gt.int64)
    with gt.autocast("cpu"):
        assert (doubles @ doubles).dtype == gt.float64
        assert doubles.exp().dtype == gt.float64
        assert (wholes @ wholes).dtype == gt.int64


def test_nested_blocks():
    a = floats(2, 2)
    assert not gt.is_autocast_enabled() and (a @ a).dtype == gt.float32
    with gt.autocast("cpu"):
        assert gt.is_autocast_enabled("cpu") and gt.get_autocast_dtype("cpu") == gt.bfloat16
        with gt.autocast("cuda"):
            assert (a @ a).dtype == gt.float16
            with gt.autocast("cuda", enabled=False):
                assert not gt.is_autocast_enabled() and (a @ a).dtype == gt.float32
        with pytest.raises(KeyError), gt.amp.autocast("cpu", gt.float16):
            raise KeyError
        assert (a @ a).dtype == gt.bfloat16
    assert (a @ a).dtype == gt.float32


def test_as_a_decorator():
    block = gt.autocast("cpu", dtype="bfloat16")

    @block
    def product(a, depth=0):
        return product(a, depth - 1) if depth else a @ a

    assert product(floats(2, 2), depth=2).dtype == gt.bfloat16
    assert not gt.is_autocast_enabled()
    with pytest.raises(TypeError, match="callable"):
        block(3)


def test_autocast_is_local_to_a_thread():
    seen = []

    def run():
        seen.append(gt.is_autocast_enabled())
        with gt.autocast("cuda"):
            seen.append((floats(2, 2) @ floats(2, 2)).dtype)

    with gt.autocast("cpu"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert (floats(2, 2) @ floats(2, 2)).dtype == gt.bfloat16
    assert seen == [False, gt.float16]


def test_settings():
    assert gt.get_autocast_dtype("cuda") == gt.float16
    gt.set_autocast_dtype("cuda", gt.bfloat16)
    try:
        with gt.autocast("cuda"):
            assert gt.get_autocast_dtype("cuda") == gt.bfloat16
    finally:
        gt.set_autocast_dtype("cuda", gt.float16)
    gt.set_autocast_enabled("cpu", True)
    try:
        assert (floats(2, 2) @ floats(2, 2)).dtype == gt.bfloat16
    finally:
        gt.set_autocast_enabled("cpu", False)
    gt.set_autocast_cpu_dtype(gt.float16)
    assert gt.get_autocast_cpu_dtype() == gt.get_autocast_gpu_dtype() == gt.float16
    gt.set_autocast_cpu_dtype(gt.bfloat16)
    gt.clear_autocast_cache()
    assert not gt.is_autocast_cpu_enabled() and not gt.is_autocast_cache_enabled()
    assert gt.amp.is_autocast_available("cpu") and not gt.amp.is_autocast_available("abacus")


def test_mistakes_with_autocast():
    with pytest.raises(ValueError, match="device_type"):
        gt.autocast(gt.bfloat16)
    with pytest.raises(RuntimeError, match="abacus"):
        gt.autocast("abacus")
    with pytest.warns(UserWarning, match="Disabling autocast"), gt.autocast("cpu", gt.float64):
        assert not gt.is_autocast_enabled()


def test_gradients_have_the_dtypes_of_their_tensors():
    weight = gt.ones(3, 2, requires_grad=True)
    x = floats(4, 3)
    with gt.autocast("cpu"):
        product = x @ weight
        loss = product.square().sum()
        loss.backward()
    inside = weight.grad
    assert inside.dtype == gt.float32 and product.dtype == gt.bfloat16
    weight.grad = None
    with gt.autocast("cpu"):
        loss = (x @ weight).square().sum()
    loss.backward()
    np.testing.assert_array_equal(inside.numpy(), weight.grad.numpy())
    low, ones = x.to(gt.bfloat16), gt.ones(3, 2, dtype=gt.bfloat16)
    expected = low.T.float() @ (2 * (low @ ones).float())
    np.testing.assert_allclose(inside.numpy(), expected.numpy(), rtol=0.05)


def test_training_is_close_to_full_precision():
    def losses(block):
        gt.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
        optimizer = gt.optim.SGD(model.parameters(), lr=0.05)
        x, y = gt.randn(64, 8), gt.randn(64, 1)
        for _ in range(20):
            with block:
                loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()

    low, full = losses(gt.autocast("cpu")), losses(gt.autocast("cpu", enabled=False))
    assert low != full and abs(low - full) < 0.05 * full


class Product(gt.autograd.Function):
    """A product that records its dtypes."""

    seen = []

    @staticmethod
    @gt.amp.custom_fwd(device_type="cpu")
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        product = a @ b
        Product.seen.append(product.dtype)
        return product

    @staticmethod
    @gt.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        Product.seen.append((grad @ b.mT).dtype)
        return grad @ b.mT, a.mT @ grad


class Cast(gt.autograd.Function):
    """A function whose inputs are cast."""

    @staticmethod
    @gt.amp.custom_fwd(device_type="cpu", cast_inputs=gt.float32)
    def forward(ctx, a):
        assert not gt.is_autocast_enabled()
        return a @ a

    @staticmethod
    @gt.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        assert not gt.is_autocast_enabled()
        return grad


def test_functions_with_custom_gradients():
    Product.seen.clear()
    a, b = floats(2, 3).requires_grad_(), floats(3, 2)
    with gt.autocast("cpu"):
        product = Product.apply(a, b)
    product.float().sum().backward()
    assert Product.seen == [gt.bfloat16, gt.bfloat16] and a.grad.dtype == gt.float32
    c = gt.ones(2, 2, dtype=gt.bfloat16, requires_grad=True)
    with gt.autocast("cpu"):
        result = Cast.apply(c)
    assert result.dtype == gt.float32
    result.sum().backward()


@pytest.mark.parametrize("kind", [gt.cuda.amp, gt.cpu.amp])
def test_older_names(kind):
    with pytest.warns(FutureWarning), kind.autocast():
        assert gt.is_autocast_enabled()
    with pytest.warns(FutureWarning):
        assert kind.GradScaler(init_scale=4.0).get_scale() == 4.0


# Scaling.


def training(lib, overflowing=(), clip=False, **options):
    """Train with a scaler; return parameter and scale after each step, and the scaler's state."""
    weight = lib.ones(3, requires_grad=True)
    optimizer = lib.optim.SGD([weight], lr=0.1, momentum=0.9)
    kind = lib.amp.GradScaler
    scaler = kind("cpu", **options)
    seen = []
    for step in range(8):
        factor = float("inf") if step in overflowing else 1.0 + step
        optimizer.zero_grad()
        scaler.scale((weight * weight * factor).sum()).backward()
        if clip:
            scaler.unscale_(optimizer)
            lib.nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        scaler.update()
        seen.append((weight.detach().numpy().copy(), scaler.get_scale()))
    return seen, scaler.state_dict()


@pytest.mark.parametrize("overflowing", [(), (0,), (2, 3, 7)])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("growth", [2, 2000])
@pytest.mark.parametrize("enabled", [True, False])
def test_scaled_training_is_as_in_pytorch(overflowing, clip, growth, enabled):
    torch = pytest.importorskip("torch")
    if overflowing and not enabled:
        pytest.skip("without scaling, infinite parameters stay infinite")
    options = {"init_scale": 64.0, "growth_interval": growth, "enabled": enabled}
    (ours, own), (theirs, other) = (
        training(lib, overflowing, clip, **options) for lib in (gt, torch)
    )
    for (weight, scale), (expected, expected_scale) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(weight, expected, rtol=1e-5)
        assert scale == expected_scale
    assert own == other


def test_the_scale_stays_finite():
    scaler = gt.amp.GradScaler(init_scale=2.0**127, growth_interval=1)
    weight = gt.zeros(1, requires_grad=True)
    optimizer = gt.optim.SGD([weight], lr=0.1)
    scaler.scale((weight * 0).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_several_outputs_and_settings():
    scaler = gt.amp.GradScaler(init_scale=4.0)
    one, (two,) = scaler.scale([gt.ones(1), (gt.ones(2),)])
    assert one.tolist() == [4.0] and two.tolist() == [4.0, 4.0]
    assert next(iter(scaler.scale(x for x in [gt.ones(1)]))).tolist() == [4.0]
    scaler.update(8.0)
    assert scaler.get_scale() == 8.0
    scaler.update(gt.tensor([16.0]))
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    other = gt.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert (
        other.state_dict()
        == scaler.state_dict()
        == {
            "scale": 16.0,
            "growth_factor": 3.0,
            "backoff_factor": 0.25,
            "growth_interval": 7,
            "_growth_tracker": 0,
        }
    )
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == scaler.state_dict()
    assert copy.deepcopy(scaler).get_scale() == 16.0
    assert (other.get_growth_factor(), other.get_backoff_factor()) == (3.0, 0.25)
    assert other.get_growth_interval() == 7 and other.is_enabled()


def test_mistakes_with_scaling():
    weight = gt.ones(1, requires_grad=True)
    optimizer = gt.optim.SGD([weight], lr=0.1)
    scaler = gt.amp.GradScaler()
    with pytest.raises(RuntimeError, match="_scale is None"):
        scaler.step(optimizer)
    loss = scaler.scale(weight.sum())
    with pytest.raises(RuntimeError, match="No inf checks"):
        scaler.step(optimizer)
    scaler = gt.amp.GradScaler()
    scaler.scale(weight.sum()).backward()
    with pytest.raises(RuntimeError, match="prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="pickled"):
        pickle.dumps(scaler)
    with pytest.raises(RuntimeError, match="losure"):
        scaler.step(optimizer, closure=lambda: loss)
    with pytest.raises(RuntimeError, match="empty"):
        scaler.load_state_dict({})
    with pytest.raises(ValueError, match="outputs must be"):
        scaler.scale(3)
    half = gt.ones(1, dtype=gt.float16, requires_grad=True)
    of_half = gt.optim.SGD([half], lr=0.1)
    scaler.scale(half.sum()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(of_half)
    with pytest.raises(ValueError, match="growth_factor"):
        gt.amp.GradScaler(growth_factor=1.0)
