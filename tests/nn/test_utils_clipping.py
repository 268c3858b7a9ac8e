"""Gradient clipping, parameters as a vector and fused weights, compared with PyTorch."""

import importlib

import gt
import numpy as np
import pytest
from gt import nn

torch = pytest.importorskip("torch")
utils, theirs = nn.utils, torch.nn.utils


def with_grads(seed=0, scale=1.0):
    """Return parameters of GT and of PyTorch with equal gradients; the last has none."""
    rng = np.random.default_rng(seed)
    shapes = [(3, 4), (5,), (), (2, 1, 2)]
    ours = [nn.Parameter(gt.zeros(*shape)) for shape in shapes]
    others = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
    for own, other in zip(ours[:-1], others[:-1], strict=True):
        grad = (scale * rng.standard_normal(tuple(own.shape))).astype(np.float32)
        own.grad = gt.from_numpy(np.asarray(grad))
        other.grad = torch.tensor(grad)
    return ours, others


def check(ours, others):
    for own, other in zip(ours, others, strict=True):
        if other.grad is None:
            assert own.grad is None
        else:
            np.testing.assert_allclose(own.grad.numpy(), other.grad.numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("norm_type", [2, 2.0, 1, 3, 0, float("inf"), "inf"])
@pytest.mark.parametrize("max_norm", [0.1, 1000])
def test_the_norm_is_clipped(norm_type, max_norm):
    ours, others = with_grads()
    total = utils.clip_grad_norm_(ours, max_norm, norm_type, foreach=None)
    expected = theirs.clip_grad_norm_(others, max_norm, norm_type)
    np.testing.assert_allclose(total.item(), expected.item(), rtol=1e-5)
    assert total.shape == () and not total.requires_grad
    check(ours, others)


@pytest.mark.parametrize("listed", [iter, tuple, lambda given: (each for each in given)])
def test_parameters_may_be_any_iterable(listed):
    ours, others = with_grads()
    utils.clip_grad_norm_(listed(ours), 0.5)
    theirs.clip_grad_norm_(others, 0.5)
    check(ours, others)


def test_clipping_a_single_tensor():
    ours, others = with_grads()
    utils.clip_grad_norm_(ours[0], 0.5)
    theirs.clip_grad_norm_(others[0], 0.5)
    utils.clip_grad_value_(ours[1], 0.25)
    theirs.clip_grad_value_(others[1], 0.25)
    check(ours, others)


def test_values_are_clipped():
    ours, others = with_grads()
    assert utils.clip_grad_value_(ours, 0.25) is None
    theirs.clip_grad_value_(others, 0.25)
    check(ours, others)


def test_norm_and_scaling_as_separate_calls():
    ours, others = with_grads()
    total = utils.get_total_norm([each.grad for each in ours[:-1]])
    expected = theirs.get_total_norm([each.grad for each in others[:-1]])
    np.testing.assert_allclose(total.item(), expected.item(), rtol=1e-6)
    utils.clip_grads_with_norm_(ours, 0.1, total)
    theirs.clip_grads_with_norm_(others, 0.1, expected)
    check(ours, others)


def test_no_gradients():
    assert utils.get_total_norm([]).item() == 0.0
    assert utils.clip_grad_norm_([nn.Parameter(gt.ones(2))], 1.0).item() == 0.0
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((each for each in []), 1.0)


def test_norms_that_are_not_finite():
    ours, _ = with_grads(scale=np.inf)
    with pytest.raises(RuntimeError, match="non-finite"):
        utils.clip_grad_norm_(ours, 1.0, error_if_nonfinite=True)
    utils.clip_grad_norm_(ours, 1.0)
    assert not np.isfinite(ours[0].grad.numpy()).any()


def test_the_older_name_warns():
    ours, others = with_grads()
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        utils.clip_grad_norm(ours, 0.5)
    theirs.clip_grad_norm_(others, 0.5)
    check(ours, others)


def test_parameters_as_a_vector_and_back():
    values = [np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((), np.float32)]
    parameters = [nn.Parameter(gt.from_numpy(value)) for value in values]
    vector = utils.parameters_to_vector(iter(parameters))
    assert vector.requires_grad
    np.testing.assert_array_equal(vector.detach().numpy(), [0, 1, 2, 3, 4, 5, 1])
    kept = parameters[0]
    utils.vector_to_parameters(gt.arange(7, dtype="float32") * 2, parameters)
    np.testing.assert_array_equal(parameters[0].detach().numpy(), [[0, 2, 4], [6, 8, 10]])
    assert parameters[0] is kept and kept.requires_grad and kept.is_leaf
    assert parameters[1].item() == 12
    with pytest.raises(TypeError, match="tensor"):
        utils.vector_to_parameters([1.0], parameters)


class Statistics(nn.Module):
    """The parameters and statistics of a batch normalization."""

    def __init__(self, of):
        super().__init__()
        self.num_features, self.eps = of.num_features, of.eps
        self.weight = None if of.weight is None else nn.Parameter(of.weight.detach().numpy())
        self.bias = None if of.bias is None else nn.Parameter(of.bias.detach().numpy())
        self.register_buffer("running_mean", gt.from_numpy(of.running_mean.numpy()))
        self.register_buffer("running_var", gt.from_numpy(of.running_var.numpy()))


class Holder(nn.Module):
    """A layer with a weight and a bias."""

    def __init__(self, of):
        super().__init__()
        self.out_features = getattr(of, "out_features", None)
        self.weight = nn.Parameter(of.weight.detach().numpy())
        self.bias = None if of.bias is None else nn.Parameter(of.bias.detach().numpy())


def normalization(features, affine, conv):
    kind = torch.nn.BatchNorm2d if conv else torch.nn.BatchNorm1d
    made = kind(features, affine=affine).eval()
    made.running_mean.normal_()
    made.running_var.uniform_(0.5, 2)
    if affine:
        made.weight.data.normal_()
        made.bias.data.normal_()
    return made


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_fusing_a_convolution_with_its_normalization(bias, affine, transpose):
    kind = torch.nn.ConvTranspose2d if transpose else torch.nn.Conv2d
    conv, bn = kind(2, 3, 2, bias=bias).eval(), normalization(3, affine, conv=True)
    expected = theirs.fuse_conv_bn_eval(conv, bn, transpose)
    ours = utils.fuse_conv_bn_eval(Holder(conv).eval(), Statistics(bn).eval(), transpose)
    for name in ("weight", "bias"):
        own, other = getattr(ours, name), getattr(expected, name)
        np.testing.assert_allclose(own.detach().numpy(), other.detach().numpy(), rtol=1e-5)
        assert own.requires_grad == other.requires_grad


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("features", [1, 4])
def test_fusing_a_linear_layer_with_its_normalization(bias, features):
    linear = torch.nn.Linear(3, 4, bias=bias).eval()
    bn = normalization(features, True, conv=False)
    expected = theirs.fuse_linear_bn_eval(linear, bn)
    ours = utils.fuse_linear_bn_eval(Holder(linear).eval(), Statistics(bn).eval())
    for name in ("weight", "bias"):
        own, other = getattr(ours, name), getattr(expected, name)
        np.testing.assert_allclose(own.detach().numpy(), other.detach().numpy(), rtol=1e-5)


def test_fusing_requires_evaluation_mode():
    linear, bn = torch.nn.Linear(3, 4), normalization(4, True, conv=False)
    with pytest.raises(ValueError, match="eval"):
        utils.fuse_linear_bn_eval(Holder(linear), Statistics(bn))
    other = Statistics(normalization(3, True, conv=False)).eval()
    with pytest.raises(ValueError, match="out_features=4"):
        utils.fuse_linear_bn_eval(Holder(linear).eval(), other)


class Drawn(nn.Module):
    """A module whose constructor takes a device."""

    def __init__(self, size, device=None):
        super().__init__()
        self.weight = nn.Parameter(gt.randn(size))


def test_skip_init():
    gt.manual_seed(0)
    expected = gt.rand(3).numpy()
    gt.manual_seed(0)
    module = utils.skip_init(Drawn, 4)
    assert module.weight.shape == (4,) and isinstance(module.weight, nn.Parameter)
    np.testing.assert_array_equal(gt.rand(3).numpy(), expected)
    with pytest.raises(RuntimeError, match="Module"):
        utils.skip_init(dict)
    with pytest.raises(RuntimeError, match="device"):
        utils.skip_init(nn.Sequential)


def test_memory_formats_have_no_effect():
    layer = nn.Linear(2, 2)
    assert utils.convert_conv2d_weight_memory_format(layer, gt.channels_last) is layer
    assert utils.convert_conv3d_weight_memory_format(layer, gt.channels_last_3d) is layer


def test_every_name_of_pytorch_exists():
    missing = [name for name in theirs.__all__ if name != "rnn" and not hasattr(utils, name)]
    assert not missing
    for name in ("parametrize", "parametrizations", "prune", "stateless"):
        own = getattr(utils, name)
        other = importlib.import_module(f"torch.nn.utils.{name}")
        public = getattr(other, "__all__", None) or [
            key
            for key, value in vars(other).items()
            if not key.startswith("_") and getattr(value, "__module__", "") == other.__name__
        ]
        assert not [key for key in public if not hasattr(own, key)], name


def test_the_older_functional_call():
    layer = nn.Linear(2, 1)
    given = {"weight": gt.ones(1, 2), "bias": gt.zeros(1)}
    with pytest.warns(FutureWarning, match="func.functional_call"):
        result = utils.stateless.functional_call(layer, given, gt.tensor([1.0, 2.0]))
    assert result.tolist() == [3.0]
