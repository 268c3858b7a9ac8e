"""Pruning, compared with PyTorch."""

import gt
import numpy as np
import pytest
from gt import nn
from gt.nn.utils import prune

torch = pytest.importorskip("torch")
import torch.nn.utils.prune as their_prune  # noqa: E402


def same_layers():
    other = torch.nn.Linear(5, 4)
    own = nn.Linear(5, 4)
    own.load_state_dict(other.state_dict())
    return own, other


def check(own, other):
    ours, theirs = own.state_dict(), other.state_dict()
    assert list(ours) == list(theirs)
    for name, value in theirs.items():
        np.testing.assert_allclose(ours[name].numpy(), value.numpy(), rtol=1e-6, err_msg=name)
    np.testing.assert_allclose(
        own.weight.detach().numpy(), other.weight.detach().numpy(), rtol=1e-6
    )


@pytest.mark.parametrize(
    "steps",
    [
        [("identity",)],
        [("l1_unstructured", 0.3)],
        [("l1_unstructured", 7), ("l1_unstructured", 0.5)],
        [("ln_structured", 1, 2, 0)],
        [("ln_structured", 2, 1, 1), ("l1_unstructured", 3)],
        [("ln_structured", 0.25, float("inf"), -1), ("ln_structured", 1, "fro", 0)],
        [("l1_unstructured", 4), ("ln_structured", 1, 2, 0), ("ln_structured", 1, 2, 0)],
        [("l1_unstructured", 0)],
    ],
    ids=str,
)
def test_masks(steps):
    own, other = same_layers()
    for name, *args in steps:
        assert getattr(prune, name)(own, "weight", *args) is own
        getattr(their_prune, name)(other, "weight", *args)
        check(own, other)
    assert prune.is_pruned(own) and prune.is_pruned(nn.Sequential(own))
    own(gt.ones(2, 5)).sum().backward()
    other(torch.ones(2, 5)).sum().backward()
    np.testing.assert_allclose(own.weight_orig.grad.numpy(), other.weight_orig.grad.numpy())
    kept = own.weight_orig
    prune.remove(own, "weight")
    their_prune.remove(other, "weight")
    check(own, other)
    assert own.weight is kept and not prune.is_pruned(own)
    with pytest.raises(ValueError, match="has to be pruned"):
        prune.remove(own, "weight")


def test_custom_masks_and_scores():
    own, other = same_layers()
    scores = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    mask = (scores > 0).astype(np.float32)
    prune.l1_unstructured(own, "weight", 0.4, importance_scores=gt.from_numpy(scores))
    their_prune.l1_unstructured(other, "weight", 0.4, importance_scores=torch.tensor(scores))
    check(own, other)
    prune.custom_from_mask(own, "weight", gt.from_numpy(mask))
    their_prune.custom_from_mask(other, "weight", torch.tensor(mask))
    check(own, other)


def test_random_pruning():
    own, _ = same_layers()
    prune.random_unstructured(own, "weight", 0.5)
    assert own.weight_mask.sum().item() == 10
    prune.random_structured(own, "weight", 1, dim=0)
    rows = own.weight_mask.sum(dim=1).numpy()
    assert (rows == 0).any() and own.weight_mask.sum().item() <= 10
    names = [
        type(method).__name__ for method in next(iter(own._forward_pre_hooks.values())).function
    ]
    assert names == ["RandomUnstructured", "RandomStructured"]


def test_several_parameters_at_once():
    own, other = same_layers()
    for library, layer in ((prune, own), (their_prune, other)):
        library.l1_unstructured(layer, "bias", 1)
        library.global_unstructured(
            [(layer, "weight"), (layer, "bias")], library.L1Unstructured, amount=0.4
        )
    check(own, other)
    with pytest.raises(TypeError, match="unstructured"):
        prune.global_unstructured([(own, "weight")], prune.LnStructured, amount=1, n=2)


def test_pruning_a_tensor_without_a_module():
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    own = prune.L1Unstructured(0.5).prune(gt.from_numpy(x))
    other = their_prune.L1Unstructured(0.5).prune(torch.tensor(x))
    np.testing.assert_array_equal(own.numpy(), other.numpy())


@pytest.mark.parametrize(
    "call",
    [
        lambda library, layer: library.l1_unstructured(layer, "weight", 1.5),
        lambda library, layer: library.l1_unstructured(layer, "weight", -1),
        lambda library, layer: library.l1_unstructured(layer, "weight", "many"),
        lambda library, layer: library.l1_unstructured(layer, "weight", 100),
        lambda library, layer: library.ln_structured(layer, "bias", 1, 2, 0),
        lambda library, layer: library.ln_structured(layer, "weight", 1, 2, 2),
    ],
)
def test_mistakes(call):
    own, other = same_layers()
    with pytest.raises(Exception) as expected:
        call(their_prune, other)
    with pytest.raises(expected.type):
        call(prune, own)
    assert list(own.state_dict()) == ["weight", "bias"]
