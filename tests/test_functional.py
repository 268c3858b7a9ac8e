"""`gt.nn.functional`, where PyTorch's operator database has no tests."""

import gt
import numpy as np
import pytest

F = gt.nn.functional


@pytest.mark.parametrize("name", "relu elu celu selu leaky_relu hardtanh rrelu".split())
def test_activations_write_in_place(name):
    x = gt.tensor([-2.0, 0.5, 3.0])
    want = getattr(F, name)(x).tolist()
    for write in (getattr(F, f"{name}_"), lambda y: getattr(F, name)(y, inplace=True)):
        y = x.clone()
        assert write(y) is y and y.tolist() == want


def test_gradients_flow_through_activations_in_place():
    x = gt.tensor([1.0, -1.0], requires_grad=True)
    F.leaky_relu_(x * 2, 0.5).sum().backward()
    assert x.grad.tolist() == [2, 1]


def test_deprecated_reductions_are_mapped_with_a_warning():
    x, y = gt.tensor([1.0, 3.0]), gt.zeros(2)
    for options, want in [
        ({"size_average": False}, 10),
        ({"reduce": False}, [1, 9]),
        ({"size_average": True}, 5),
    ]:
        with pytest.warns(UserWarning, match="deprecated: give reduction="):
            assert F.mse_loss(x, y, **options).tolist() == want
    assert F.mse_loss(x, y, "sum").item() == 10


def test_targets_may_be_lists_and_arrays():
    x = gt.tensor([1.0, 3.0])
    assert F.l1_loss(x, [0, 0]).item() == F.l1_loss(x, np.zeros(2)).item() == 2
    logits = gt.zeros(2, 4)
    assert F.cross_entropy(logits, [0, -100]).item() == pytest.approx(np.log(4))
    assert F.nll_loss(logits, np.array([0, 1])).item() == 0


def test_running_statistics_follow_the_batches():
    mean, var = gt.zeros(1), gt.ones(1)
    F.batch_norm(gt.tensor([[1.0], [3.0]]), mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1] and var.tolist() == [1.5]
    still = mean.tolist()
    F.batch_norm(gt.tensor([[1.0], [3.0]]), mean, var)
    assert mean.tolist() == still


def test_max_norm_scales_rows_in_the_table():
    table = gt.tensor([[3.0, 4.0], [3.0, 4.0]])
    F.embedding(gt.tensor([1], dtype=gt.int64), table, max_norm=1.0)
    np.testing.assert_allclose(table.numpy(), [[3, 4], [0.6, 0.8]], rtol=1e-6)


def test_hard_samples_have_the_gradient_of_soft_ones():
    gt.manual_seed(0)
    logits = gt.zeros(50, 3).requires_grad_()
    hard = F.gumbel_softmax(logits, hard=True)
    assert set(np.unique(hard.detach().numpy().round(5))) == {0, 1}
    assert hard.detach().argmax(-1).numpy().std() > 0
    (hard * gt.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert np.abs(logits.grad.numpy()).max() > 0


def test_an_impossible_alignment_has_infinite_loss():
    log_p = gt.randn(2, 1, 3).log_softmax(-1).requires_grad_()
    sizes = ([[1, 1]], [2], [2])  # A repeated label needs a blank in between, so three steps.
    target, steps, length = (gt.tensor(size, dtype=gt.int64) for size in sizes)
    assert F.ctc_loss(log_p, target, steps, length).item() == float("inf")
    F.ctc_loss(log_p, target, steps, length, zero_infinity=True).backward()
    assert not log_p.grad.numpy().any()


def test_dropout2d_drops_whole_channels():
    gt.manual_seed(0)
    kept = F.dropout2d(gt.ones(20, 10, 3, 3), 0.5).numpy() != 0
    assert (kept.all((2, 3)) | ~kept.any((2, 3))).all() and 0.3 < kept.mean() < 0.7


@pytest.mark.parametrize(
    ("error", "words", "act"),
    [
        (TypeError, ["elu", "int64", "input.float()"], lambda: F.elu(gt.arange(3))),
        (TypeError, ["alpha", "number", "'x'"], lambda: F.elu(gt.ones(2), "x")),
        (
            ValueError,
            ["(2,)", "(2, 1)", "same shape"],
            lambda: F.l1_loss(gt.ones(2), gt.ones(2, 1)),
        ),
        (
            ValueError,
            ["'most'", "'mean'"],
            lambda: F.l1_loss(gt.ones(2), gt.ones(2), reduction="most"),
        ),
        (ValueError, ["5 channels", "2 equal groups"], lambda: F.group_norm(gt.ones(2, 5), 2)),
        (
            ValueError,
            ["one value per channel"],
            lambda: F.batch_norm(gt.ones(1, 2), None, None, training=True),
        ),
        (
            ValueError,
            ["mode is 'most'", "'max'"],
            lambda: F.embedding_bag(gt.arange(2), gt.ones(2, 2), mode="most"),
        ),
        (
            ValueError,
            ["not both"],
            lambda: F.scaled_dot_product_attention(*[gt.ones(2, 2)] * 4, is_causal=True),
        ),
        (TypeError, ["normalized_shape", "hint: layer_norm("], lambda: F.layer_norm(gt.ones(2))),
    ],
)
def test_error_messages(error, words, act):
    with pytest.raises(error) as caught:
        act()
    for word in words:
        assert word in str(caught.value), str(caught.value)
