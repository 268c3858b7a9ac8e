"""Rarely used functions, and padding in a transformer encoder, compared with PyTorch."""

import warnings

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")


def waves(library, *shape):
    """Return varying numbers of a shape."""
    return library.sin(library.arange(float(np.prod(shape))) * 1.7).reshape(shape)


def numbers(result):
    """Return the tensors of a result as nested lists."""
    if isinstance(result, (tuple, list)):
        return [numbers(one) for one in result]
    return result.detach().tolist()


def rolled(x, y):
    return x.sin() * y, (x @ y).exp()


CASES = {
    "conv_tbc": lambda lib: lib.nn.functional.conv_tbc(
        waves(lib, 5, 2, 3), waves(lib, 3, 3, 4), waves(lib, 4), 1
    ),
    "channel_shuffle": lambda lib: lib.nn.functional.native_channel_shuffle(waves(lib, 1, 6, 2), 3),
    "normalize": lambda lib: lib.nn.functional.normalize(waves(lib, 2, 3), out=lib.empty(2, 3)),
    "clip_": lambda lib: lib.clip_(waves(lib, 4), -0.5, 0.5),
    "clamp_max_": lambda lib: lib.clamp_max_(waves(lib, 4), 0.1),
    "xlogy_": lambda lib: lib.xlogy_(waves(lib, 4), waves(lib, 4).abs() + 1),
    "addmv_": lambda lib: lib.addmv_(waves(lib, 2), waves(lib, 2, 3), waves(lib, 3)),
    "index_put_": lambda lib: lib.index_put_(
        waves(lib, 4), (lib.tensor([1, 1], dtype=lib.long),), waves(lib, 2), accumulate=True
    ),
    "hardshrink": lambda lib: waves(lib, 5).hardshrink(0.3),
    "prelu": lambda lib: waves(lib, 5).prelu(lib.tensor([0.25])),
    "jvp": lambda lib: lib.func.jvp(
        rolled, (waves(lib, 3), waves(lib, 3) + 1), (waves(lib, 3), waves(lib, 3) - 1)
    ),
    "jvp of nothing": lambda lib: lib.func.jvp(
        lambda x: lib.ones(2), (waves(lib, 3),), (waves(lib, 3),)
    ),
    "jvp with more": lambda lib: lib.func.jvp(
        lambda x: (x**2, x + 1), (waves(lib, 3),), (waves(lib, 3),), has_aux=True
    ),
    "jvp in vmap": lambda lib: lib.func.vmap(
        lambda v: lib.func.jvp(lambda x: x**3, (waves(lib, 3),), (v,))[1]
    )(lib.eye(3)),
    "gradient of jvp": lambda lib: lib.func.grad(
        lambda x: lib.func.jvp(lambda x: (x**3).sum(), (x,), (lib.ones(3),))[1]
    )(waves(lib, 3)),
    "jacfwd": lambda lib: lib.func.jacfwd(rolled, argnums=1)(waves(lib, 3), waves(lib, 3)),
    "batched gradients": lambda lib: lib.autograd.grad(
        *_squares(lib), lib.eye(3), is_grads_batched=True
    ),
}


def _squares(lib):
    x = waves(lib, 3).requires_grad_()
    return x**2, x


@pytest.mark.parametrize("name", CASES)
def test_functions_return_the_same_as_in_pytorch(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's deprecations
        theirs = CASES[name](torch)
    same(CASES[name](gt), theirs)


def same(given, wanted):
    """Compare results, which may be nested, up to rounding."""
    if isinstance(wanted, (tuple, list)):
        assert len(given) == len(wanted)
        for one, other in zip(given, wanted, strict=True):
            same(one, other)
    else:
        assert not given.requires_grad
        np.testing.assert_allclose(numbers(given), numbers(wanted), rtol=1e-4, atol=1e-6)


def encoded(library, padding, *, grad=False, mask=None, heads=2, **options):
    """Return the result of an encoder in evaluation mode for two rows with padding."""
    nn = library.nn
    layer = nn.TransformerEncoderLayer(8, heads, 16, batch_first=True, **options)
    norm = nn.LayerNorm(8)
    encoder = nn.TransformerEncoder(layer, 2, norm=norm).eval()
    with library.no_grad():
        for number, parameter in enumerate(encoder.parameters()):
            parameter.copy_(waves(library, *parameter.shape) / (number + 2))
    with library.set_grad_enabled(grad):
        padding = library.tensor(padding, dtype=library.bool)
        return encoder(waves(library, 2, 4, 8), mask, padding).detach().numpy()


AT_THE_END = [[False, False, True, True], [False, False, False, False]]
IN_FRONT = [[True, False, False, False], [False, False, False, False]]


@pytest.mark.parametrize(
    "padding, options, zeros",
    [
        (AT_THE_END, {}, True),
        (AT_THE_END, {"grad": True}, False),
        (IN_FRONT, {}, False),
        (AT_THE_END, {"norm_first": True}, False),
        (AT_THE_END, {"activation": "gelu"}, True),
        (AT_THE_END, {"heads": 1}, False),
    ],
)
def test_padding_is_zero_where_it_is_in_pytorch(padding, options, zeros):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = encoded(torch, padding, **options)
    ours = encoded(gt, padding, **options)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    # Zeros are normalized to the bias of the norm, so both padded positions are equal.
    assert np.array_equal(ours[0, 2], ours[0, 3]) is zeros


def test_replacing_batch_norms_removes_their_statistics():
    for library in (torch, gt):
        model = library.nn.Sequential(library.nn.BatchNorm1d(2), library.nn.Linear(2, 2))
        assert library.func.replace_all_batch_norm_modules_(model) is model
        assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]
        assert not model[0].track_running_stats
