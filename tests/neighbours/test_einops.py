"""einops on tensors: the results are those on arrays, gradients and layers those of PyTorch."""

import copy
import pickle

import gt
import numpy as np
import pytest
from processes import run_python

einops = pytest.importorskip("einops", reason="einops is not installed: make test-all")

VALUES = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype(np.float32)

CALLS = {
    "rearrange": lambda x: einops.rearrange(x, "b c (h s) w -> b (c s) w h", s=2),
    "rearrange ellipsis": lambda x: einops.rearrange(x, "b ... -> ... b"),
    "rearrange list": lambda x: einops.rearrange([x, x], "k b c h w -> b (k c) h w"),
    "max": lambda x: einops.reduce(x, "b c (h s) (w t) -> b c h w", "max", s=2, t=3),
    "min": lambda x: einops.reduce(x, "b c h w -> ", "min"),
    "sum": lambda x: einops.reduce(x, "b c h w -> c", "sum"),
    "mean": lambda x: einops.reduce(x, "b c h w -> b 1 h 1", "mean"),
    "prod": lambda x: einops.reduce(x, "b c h w -> b h", "prod"),
    "any": lambda x: einops.reduce(x > 2, "b c h w -> b c", "any"),
    "all": lambda x: einops.reduce(x > -2, "b c h w -> b c", "all"),
    "repeat": lambda x: einops.repeat(x, "b c h w -> b c (h 2) w k", k=3),
    "einsum": lambda x: einops.einsum(x, x, "b c h w, b c h v -> b w v"),
    "pack": lambda x: einops.pack([x, x[:, :, 0]], "b c *")[0],
    "unpack": lambda x: einops.unpack(x[:, :, 0], [(2,), (2, 2)], "b c *")[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_on_arrays(name):
    found = CALLS[name](gt.tensor(VALUES))
    assert isinstance(found, gt.Tensor)
    expected = CALLS[name](VALUES)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["rearrange", "max", "min", "mean", "prod", "repeat", "einsum"])
def test_gradients_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    ties = np.round(VALUES)
    ours, theirs = gt.tensor(ties, requires_grad=True), torch.tensor(ties, requires_grad=True)
    for x in (ours, theirs):
        (CALLS[name](x) ** 2).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_shapes_are_parsed():
    x = gt.tensor(VALUES)
    assert einops.parse_shape(x, "b c _ w") == {"b": 2, "c": 3, "w": 6}
    assert np.array_equal(einops.asnumpy(x.requires_grad_()), VALUES)


def test_transformed_functions():
    x = gt.tensor(VALUES)
    mapped = gt.vmap(lambda image: einops.rearrange(image, "c h w -> (h w) c"))(x)
    assert mapped.equal(einops.rearrange(x, "b c h w -> b (h w) c"))
    slope = gt.func.grad(lambda image: einops.reduce(image, "b c h w -> ", "sum"))(x)
    assert slope.equal(gt.ones_like(x))


def test_mistakes_are_errors_of_einops():
    x = gt.tensor(VALUES)
    with pytest.raises(einops.EinopsError, match="expected 2 dims. Received 4-dim tensor"):
        einops.rearrange(x, "b c -> c b")
    with pytest.raises(NotImplementedError, match="not available for non-floating"):
        einops.reduce(x.long(), "b c h w -> b", "mean")


def model():
    from einops.layers.gt import EinMix, Rearrange, Reduce

    return gt.nn.Sequential(
        Rearrange("b c h w -> b (h c) w"),
        EinMix("b p w -> b p d", weight_shape="w d", bias_shape="d", w=6, d=5),
        Reduce("b p d -> b d", "max"),
    )


def test_layers_train_and_are_copied():
    layers, x = model(), gt.tensor(VALUES)
    assert "Rearrange('b c h w -> b (h c) w')" in repr(layers)
    out = layers(x)
    assert out.shape == (2, 5)
    out.sum().backward()
    assert {name for name, p in layers.named_parameters() if p.grad is not None} == {
        "1.weight",
        "1.bias",
    }
    for other in (copy.deepcopy(layers), pickle.loads(pickle.dumps(layers))):
        assert gt.equal(other(x), out)


def test_einmix_is_that_of_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
    from einops.layers.gt import EinMix
    from einops.layers.torch import EinMix as TheirEinMix

    options = {"weight_shape": "h c d", "bias_shape": "h d", "h": 4, "c": 3, "d": 5}
    ours = EinMix("b (h c) w -> (b w) h d", **options)
    theirs = TheirEinMix("b (h c) w -> (b w) h d", **options)
    bound = (3 / 3) ** 0.5
    assert ours.weight.detach().abs().max().item() <= bound
    theirs.load_state_dict(
        {name: torch.tensor(value.numpy()) for name, value in ours.state_dict().items()}
    )
    x = VALUES.reshape(2, 12, 6)
    np.testing.assert_allclose(
        ours(gt.tensor(x)).detach().numpy(),
        theirs(torch.tensor(x)).detach().numpy(),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("first, second", [("gt", "einops"), ("einops", "gt")])
def test_either_may_be_imported_first(first, second):
    code = f"import {first}, {second}; print(einops.rearrange(gt.ones(2, 3), 'a b -> b a').shape)"
    done = run_python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(3, 2)\n", "")
