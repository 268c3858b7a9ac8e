"""The examples of techniques run, and their results have the properties of the techniques."""

import copy
import importlib
import sys
from pathlib import Path

import gt
import numpy as np
import pytest
from gt import nn
from gt.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from processes import unsharded_only

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

accumulation, distillation, lora, steering = (
    importlib.import_module(name) for name in ("accumulation", "distillation", "lora", "steering")
)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("lora", ["digits 5 to 9, 1,864 numbers trained", "merged into the weights"]),
        ("steering", ["strength   called 3", "all scores are as before"]),
        ("distillation", ["teacher", "alone", "distilled", "1,210 numbers"]),
        ("ema", ["averages", "from one epoch to the next"]),
        ("accumulation", ["loss at once", "0      "]),
    ],
)
def test_the_example_runs(name, words, capsys):
    importlib.import_module(name).main(["--epochs", "1"])
    out = capsys.readouterr().out
    for word in words:
        assert word in out, out


def a_batch(count=16):
    rng = np.random.default_rng(0)
    images = rng.random((count, 64), dtype=np.float32)
    return images, rng.integers(0, 10, count)


def test_adapters_train_alone_and_merge():
    images, labels = a_batch(64)
    model = lora.Reader()
    before = copy.deepcopy(model.state_dict())
    plain = model(gt.from_numpy(images))
    model.requires_grad_(False)
    lora.replace(model, nn.Linear, lora.LoRALinear)
    # Two encoder layers with two linear layers each, the embedding and the head.
    adapters = [m for m in model.modules() if isinstance(m, lora.LoRALinear)]
    assert len(adapters) == 6
    assert gt.allclose(model(gt.from_numpy(images)), plain, atol=1e-5), "adapters start as zero"
    assert lora.train(model, images, labels, 3, 1e-2) == sum(
        adapter.down.numel() + adapter.up.numel() for adapter in adapters
    )
    kept = {name.replace(".base.", "."): value for name, value in model.state_dict().items()}
    for name, value in before.items():
        assert (kept[name] == value).all(), name
    assert all((adapter.up != 0).any() for adapter in adapters)

    adapted = model(gt.from_numpy(images))
    assert (adapted - plain).abs().max().item() > 1e-2
    lora.replace(model, lora.LoRALinear, lora.LoRALinear.merged)
    assert list(model.state_dict()) == list(before)
    merged = model(gt.from_numpy(images))
    np.testing.assert_allclose(merged.tolist(), adapted.tolist(), rtol=1e-4, atol=1e-5)


def test_steering_moves_scores_and_leaves_nothing_behind():
    images = gt.from_numpy(a_batch()[0])
    model = steering.make_model()
    before = model(images)
    direction = gt.randn(32)
    # The output of the last block goes directly into the scores.
    handle = steering.steer(model[3], 3 * direction)
    moved = model(images) - before
    expected = 3 * (model[4].weight @ direction)
    np.testing.assert_allclose(moved.tolist(), [expected.tolist()] * 16, rtol=1e-4, atol=1e-4)
    handle.remove()
    assert gt.allclose(model(images), before, atol=1e-5)


@unsharded_only
def test_without_the_hook_all_is_as_before(capsys):
    steering.main(["--epochs", "1"])
    assert "all scores are as before: True" in capsys.readouterr().out


def test_the_direction_between_two_digits_turns_one_into_the_other(capsys):
    shares = steering.main(["--epochs", "4"])
    assert shares[0] < 0.1 and shares[-1] > 0.9 and shares == sorted(shares)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_the_gradient_of_distillation(temperature):
    student, teacher = gt.randn(5, 10, requires_grad=True), gt.randn(5, 10, requires_grad=True)
    distillation.distillation_loss(student, teacher, temperature).backward()
    assert teacher.grad is None
    ours = (student.detach() / temperature).softmax(-1)
    theirs = (teacher.detach() / temperature).softmax(-1)
    expected = (ours - theirs) * (temperature / 5)
    np.testing.assert_allclose(student.grad.tolist(), expected.tolist(), rtol=1e-4, atol=1e-6)
    same = distillation.distillation_loss(teacher, teacher, temperature)
    assert abs(same.item()) < 1e-6


def test_the_gradient_of_distillation_is_that_of_pytorch():
    torch = pytest.importorskip("torch")
    student, teacher = gt.randn(5, 10, requires_grad=True), gt.randn(5, 10)
    loss = distillation.distillation_loss(student, teacher, 2.0)
    loss.backward()
    theirs = torch.tensor(student.tolist(), requires_grad=True)
    expected = 4 * torch.nn.functional.kl_div(
        torch.log_softmax(theirs / 2, -1),
        torch.softmax(torch.tensor(teacher.tolist()) / 2, -1),
        reduction="batchmean",
    )
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    np.testing.assert_allclose(student.grad.tolist(), theirs.grad.tolist(), rtol=1e-4, atol=1e-6)


def test_a_student_learns_more_from_opinions(capsys):
    found = distillation.main(["--epochs", "6"])
    assert found["teacher"] > 0.9 and found["distilled"] > found["alone"] + 0.03


def test_an_average_has_its_closed_form():
    decay, weights = 0.9, []
    model = nn.Linear(3, 2)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
    for _ in range(6):
        with gt.no_grad():
            model.weight.copy_(gt.randn(2, 3))
        averaged.update_parameters(model)
        weights.append(np.array(model.weight.tolist()))
    # The first value has the weight of all earlier ones.
    shares = [decay**5] + [(1 - decay) * decay ** (5 - at) for at in range(1, 6)]
    assert sum(shares) == pytest.approx(1)
    expected = sum(share * weight for share, weight in zip(shares, weights, strict=True))
    np.testing.assert_allclose(averaged.module.weight.tolist(), expected, rtol=1e-5, atol=1e-6)
    assert (model.weight != averaged.module.weight).any()


def test_gradients_of_parts_are_those_of_the_whole():
    images, labels = map(gt.from_numpy, a_batch(50))
    whole = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
    parts = copy.deepcopy(whole)
    # Parts of 16, 16, 16 and 2.
    losses = [
        accumulation.accumulate(whole, images, labels, 50),
        accumulation.accumulate(parts, images, labels, 16),
    ]
    assert losses[0].item() == pytest.approx(losses[1].item(), abs=1e-6)
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        assert (one.grad - other.grad).abs().max().item() < 1e-6
        assert one.grad.abs().max().item() > 1e-3
    assert max(accumulation.main(["--epochs", "2"])) < 1e-6
