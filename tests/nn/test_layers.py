"""Layers: in-place results, lazy layers, states and invalid arguments."""

import copy
import os
import pickle
import subprocess
import sys

import gt
import numpy as np
import pytest
from gt import nn
from processes import embedded_only


def ints(*values):
    return gt.tensor(values, dtype=gt.int64)


@pytest.mark.parametrize(
    "name",
    "CELU Dropout ELU Hardsigmoid Hardswish Hardtanh LeakyReLU Mish ReLU ReLU6 RReLU SELU "
    "SiLU".split(),
)
def test_in_place_layers_change_their_input(name):
    x = gt.tensor([-2.0, 0.5, 3.0], requires_grad=True)
    y = x * 1
    assert getattr(nn, name)(inplace=True)(y) is y
    y.sum().backward()
    gradient = x.grad.tolist()
    x.grad = None
    if name not in ("Dropout", "RReLU"):
        want = getattr(nn, name)()(x)
        assert y.tolist() == want.tolist()
        want.sum().backward()
        assert gradient == x.grad.tolist()
    kept = gt.tensor([-2.0, 0.5])
    assert getattr(nn, name)()(kept) is not kept and kept.tolist() == [-2.0, 0.5]


def test_lazy_layers_become_plain_ones():
    layer = nn.LazyConv2d(4, 3)
    weight = layer.weight
    assert isinstance(weight, nn.UninitializedParameter) and "Uninitialized" in repr(weight)
    with pytest.raises(RuntimeError, match="call the module with an input first"):
        weight.shape  # noqa: B018
    optimizer = gt.optim.SGD(layer.parameters(), lr=1.0)
    assert layer(gt.ones(1, 2, 5, 5)).shape == (1, 4, 3, 3)
    assert type(layer) is nn.Conv2d and layer.in_channels == 2
    assert layer.weight is weight and type(weight) is nn.Parameter and weight.shape == (4, 2, 3, 3)
    before = weight.tolist()
    layer(gt.ones(1, 2, 5, 5)).sum().backward()
    optimizer.step()
    assert weight.tolist() != before, "the optimizer has the parameter itself"
    assert not layer._forward_pre_hooks and not layer._load_state_dict_pre_hooks


def test_lazy_layers_are_copied_pickled_and_cast():
    for make in (copy.deepcopy, lambda layer: pickle.loads(pickle.dumps(layer))):
        layer = make(nn.LazyLinear(3, dtype=gt.float64))
        assert isinstance(layer, nn.LazyLinear)
        assert layer(gt.ones(1, 2, dtype=gt.float64)).dtype == gt.float64
        assert type(layer) is nn.Linear
    norm = nn.LazyBatchNorm1d().double()
    assert norm(gt.randn(4, 2, dtype=gt.float64)).dtype == gt.float64
    assert norm.running_mean.dtype == gt.float64 and type(norm) is nn.BatchNorm1d


def test_a_parameter_without_shape_has_no_size():
    weight = nn.LazyLinear(3).weight
    for use in (lambda: weight.numel(), lambda: weight.dim(), lambda: len(weight), weight.tolist):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            use()
    weight.materialize((3, 2))
    assert (weight.numel(), weight.dim(), len(weight)) == (6, 2, 3)


def test_the_gradient_of_a_parameter_has_its_dtype():
    parameter = nn.Parameter(gt.ones(2))
    with pytest.raises(RuntimeError, match="dtype float64 to a parameter of dtype float32"):
        parameter.grad = gt.ones(2, dtype=gt.float64)
    assert parameter.grad is None
    parameter.grad = gt.ones(2)
    assert parameter.grad.tolist() == [1, 1]
    parameter.grad = None
    assert parameter.grad is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Linear(2, 2, device="meta"),
        lambda: nn.Linear(2, 2).to("meta"),
        lambda: nn.Linear(2, 2).to_empty(device="meta"),
        lambda: gt.ones(2).to(gt.device("meta"), gt.float64),
        lambda: gt.set_default_device("meta"),
    ],
)
def test_the_meta_device_is_rejected(make):
    with pytest.raises(RuntimeError, match="no 'meta' device"):
        make()


def test_lazy_layers_load_states():
    plain, lazy = nn.Linear(2, 3), nn.LazyLinear(3)
    lazy.load_state_dict(plain.state_dict())
    assert lazy.weight.tolist() == plain.weight.tolist()
    assert lazy(gt.ones(1, 2)).tolist() == plain(gt.ones(1, 2)).tolist()
    assert type(lazy) is nn.Linear and lazy.in_features == 2
    with pytest.raises(RuntimeError, match="uninitialized"):
        plain.load_state_dict(nn.LazyLinear(3).state_dict())


def test_batch_norm_counts_batches_and_averages_all_of_them():
    norm, batches = nn.BatchNorm1d(2, momentum=None), [gt.randn(5, 2) for _ in range(3)]
    for batch in batches:
        norm(batch)
    assert norm.num_batches_tracked.dtype == gt.int64 and norm.num_batches_tracked.item() == 3
    mean = np.mean([batch.mean(0).numpy() for batch in batches], 0)
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, rtol=1e-4, atol=1e-6)
    norm.reset_running_stats()
    assert norm.num_batches_tracked.item() == 0 and norm.running_var.tolist() == [1, 1]


def test_batch_norm_loads_states_without_a_batch_count():
    norm = nn.BatchNorm1d(2)
    old = {name: value for name, value in norm.state_dict().items() if "batches" not in name}
    norm.load_state_dict(old)
    assert norm.num_batches_tracked.item() == 0


def test_batch_norms_are_converted_with_their_tensors():
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.BatchNorm1d(3)), nn.BatchNorm1d(3))
    names, shared = list(model.state_dict()), model[1][0].weight
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model.eval())
    assert converted is model and list(model.state_dict()) == names
    assert isinstance(model[1][0], nn.SyncBatchNorm) and isinstance(model[2], nn.SyncBatchNorm)
    assert model[1][0].weight is shared and not model[2].training


def test_embeddings_from_pretrained_tables():
    table = gt.tensor([[1.0, 2.0], [3.0, 4.0]])
    frozen = nn.Embedding.from_pretrained(table)
    assert not frozen.weight.requires_grad and frozen(ints(1)).tolist() == [[3, 4]]
    bags = nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum")
    assert bags.weight.requires_grad and bags(ints([0, 1])).tolist() == [[4, 6]]
    assert nn.Embedding(3, 2, padding_idx=-1).weight[2].tolist() == [0, 0]
    for kind in (nn.Embedding, nn.EmbeddingBag):
        with pytest.raises(NotImplementedError, match="sparse=False"):
            kind(3, 2, sparse=True)


def test_deprecated_arguments_and_buffers_of_losses():
    for options, reduction in [
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": True}, "mean"),
    ]:
        for kind in (nn.MSELoss, nn.CrossEntropyLoss, nn.TripletMarginLoss, nn.BCEWithLogitsLoss):
            with pytest.warns(UserWarning, match=f"reduction='{reduction}'"):
                assert kind(**options).reduction == reduction
    weight = gt.tensor([1.0, 2.0])
    assert list(nn.CrossEntropyLoss(weight).state_dict()) == ["weight"]
    assert list(nn.BCEWithLogitsLoss(pos_weight=weight).state_dict()) == ["pos_weight"]
    with pytest.warns(FutureWarning, match="NLLLoss is the same"):
        nn.NLLLoss2d()


def test_targets_of_minus_100_are_ignored():
    logits, targets = gt.randn(3, 4), ints(1, -100, 2)
    want = nn.CrossEntropyLoss()(logits[[0, 2]], ints(1, 2)).item()
    assert abs(nn.CrossEntropyLoss()(logits, targets).item() - want) < 1e-6
    with pytest.raises(ValueError, match="probabilities"):
        nn.CrossEntropyLoss(ignore_index=1)(logits, gt.ones(3, 4) / 4)
    with pytest.raises(IndexError):
        nn.CrossEntropyLoss()(logits, ints(1, 4, 2)).item()


def test_adaptive_softmax_agrees_with_its_probabilities():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], 2.0)
    x, targets = gt.randn(6, 8), ints(0, 19, 4, 5, 9, 10)
    log_p = layer.log_prob(x)
    np.testing.assert_allclose(log_p.exp().sum(1).tolist(), [1] * 6, rtol=1e-5)
    output, loss = layer(x, targets)
    want = log_p.gather(1, targets.unsqueeze(1)).squeeze(1)
    np.testing.assert_allclose(output.tolist(), want.tolist(), rtol=1e-4)
    assert abs(loss.item() + want.mean().item()) < 1e-5
    assert layer.predict(x).tolist() == log_p.argmax(1).tolist()
    assert layer(x[0], targets[0]).output.shape == ()
    with pytest.raises(RuntimeError, match=r"\[0, 19\]"):
        layer(x, ints(0, 20, 4, 5, 9, 10))


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: nn.Linear(-1, 2), ValueError, "-1"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "in_channels"),
        (lambda: nn.Conv2d(2, 4, 3, padding="half"), ValueError, "'half'"),
        (lambda: nn.Conv2d(2, 4, 3, 2, padding="same"), ValueError, "strided"),
        (lambda: nn.Conv1d(2, 4, 3, padding_mode="mirror"), ValueError, "'mirror'"),
        (lambda: nn.ConvTranspose1d(2, 4, 3, padding_mode="reflect"), ValueError, "zeros"),
        (lambda: nn.ConvTranspose1d(2, 4, 3)(gt.ones(1, 2, 5), [9]), ValueError, "range"),
        (lambda: nn.BatchNorm2d(2)(gt.ones(2, 2)), ValueError, "expected 4D"),
        (lambda: nn.GroupNorm(3, 4), ValueError, "divisible"),
        (lambda: nn.Dropout(1.5), ValueError, "1.5"),
        (lambda: nn.Hardtanh(2.0, 1.0), AssertionError, "min_val"),
        (lambda: nn.Softmax("rows"), TypeError, "dim"),
        (lambda: nn.Embedding(3, 2, 5), AssertionError, "padding_idx"),
        (lambda: nn.LPPool1d(0, 2), ValueError, "norm_type"),
        (lambda: nn.FractionalMaxPool2d(2), ValueError, "output size"),
        (lambda: nn.Unflatten(1, ("a",)), TypeError, "str"),
        (lambda: nn.CircularPad1d(1)(gt.ones(2)), ValueError, "2D or 3D"),
        (lambda: nn.MultiMarginLoss(3), ValueError, "p == 2"),
        (lambda: nn.TripletMarginLoss(0), ValueError, "margin"),
        (lambda: nn.LinearCrossEntropyOptions(acc_policy="exact"), ValueError, "'exact'"),
    ],
)
def test_invalid_arguments_raise(make, error, words):
    with pytest.raises(error, match=words):
        make()


TRAINING = """
import gt
from gt import nn

model = nn.Sequential(
    nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, momentum=None), nn.ReLU(inplace=True),
    nn.Dropout2d(0.1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 7 * 7, 10),
)
table = nn.Embedding(10, 4, padding_idx=0, max_norm=1.0, scale_grad_by_freq=True)
loss_of = nn.CrossEntropyLoss(gt.ones(10))
optimizer = gt.optim.SGD([*model.parameters(), *table.parameters()], lr=0.1)
x, y = gt.randn(4, 3, 16, 16), gt.randint(0, 10, (4,))
for _ in range(3):
    optimizer.zero_grad()
    loss = loss_of(model(x), y) + table(y).sum()
    loss.backward()
    optimizer.step()
loss.item()
"""


@embedded_only
def test_training_waits_for_no_value(tmp_path):
    log = tmp_path / "log"
    environment = {**os.environ, "GT_INSTRUCTION_LOG": str(log)}
    subprocess.run([sys.executable, "-c", TRAINING], env=environment, check=True)
    fetches = [line for line in log.read_text().splitlines() if "| RECV" in line]
    assert sum("GetData" in line for line in fetches) == 1, "only the one of loss.item()"
