"""Tests that optimizers reach known minima and reject invalid arguments."""

import gt
import numpy as np
import pytest
from gt import optim

KINDS = [
    (optim.SGD, {"lr": 0.1}, 150),
    (optim.SGD, {"lr": 0.02, "momentum": 0.9}, 300),
    (optim.SGD, {"lr": 0.02, "momentum": 0.9, "nesterov": True}, 300),
    (optim.Adam, {"lr": 0.1}, 400),
    (optim.AdamW, {"lr": 0.1, "weight_decay": 0.0}, 400),
]


@pytest.mark.parametrize(("kind", "options", "steps"), KINDS)
def test_minimum_of_a_quadratic(kind, options, steps):
    target = gt.tensor([3.0, -1.0])
    x = gt.zeros(2, requires_grad=True)
    optimizer = kind([x], **options)
    for _ in range(steps):
        optimizer.zero_grad()
        ((x - target) ** 2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(x.detach().numpy(), [3, -1], atol=1e-2)
    assert x.is_leaf and x.requires_grad


def test_parameters_without_gradient_stay():
    a, b = gt.ones(2, requires_grad=True), gt.ones(2, requires_grad=True)
    optimizer = optim.SGD([a, b], lr=1.0, momentum=0.9, weight_decay=0.1)
    a.sum().backward()
    optimizer.step()
    assert b.tolist() == [1, 1] and a.tolist() != [1, 1]
    optimizer.zero_grad()
    assert a.grad is None
    frozen = a.tolist()
    optimizer.step()
    assert a.tolist() == frozen


def test_parameters_may_come_from_a_generator():
    a = gt.ones(2, requires_grad=True)
    optimizer = optim.SGD((p for p in [a]), lr=1.0)
    for _ in range(2):
        optimizer.zero_grad()
        a.sum().backward()
        optimizer.step()
    assert a.tolist() == [-1, -1]


def test_a_step_does_not_change_what_was_computed_before():
    a = gt.ones(2, requires_grad=True)
    before = a * 1
    a.sum().backward()
    optim.SGD([a], lr=1.0).step()
    assert before.tolist() == [1, 1] and a.tolist() == [0, 0]


def test_the_learning_rate_may_change():
    a = gt.ones(1, requires_grad=True)
    optimizer = optim.SGD([a], lr=0.5)
    a.sum().backward()
    optimizer.step()
    optimizer.lr = 0.25
    optimizer.step()
    assert a.tolist() == [0.25]


def train(x, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        ((x - 3) ** 2).sum().backward()
        optimizer.step()


@pytest.mark.parametrize(("kind", "options", "_steps"), KINDS)
def test_a_saved_state_goes_on_alike(kind, options, _steps):
    x = gt.zeros(2, requires_grad=True)
    optimizer = kind([x], **options)
    train(x, optimizer, 3)
    other = x.detach().clone().requires_grad_()
    again = kind([other], **{**options, "lr": 9.0})
    again.load_state_dict(optimizer.state_dict())
    train(x, optimizer, 3)
    train(other, again, 3)
    assert x.tolist() == other.tolist()
    with pytest.raises(ValueError, match=r"has groups of \[1\] parameters.*has groups of \[2\]"):
        kind([x, other], lr=0.1).load_state_dict(optimizer.state_dict())


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda p: optim.SGD([]), ValueError, "none were given"),
        (lambda p: optim.SGD([1.0]), TypeError, "not float"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "-1"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "momentum"),
        (lambda p: optim.SGD([p], momentum=0.9, dampening=0.1, nesterov=True), ValueError, "damp"),
        (lambda p: optim.Adam([p], lr=-0.1), ValueError, "-0.1"),
        (lambda p: optim.Adam([p], betas=(0.9, 1.0)), ValueError, "below 1"),
        (lambda p: optim.AdamW([p], betas=(-0.1, 0.9)), ValueError, "betas"),
        (lambda p: optim.SGD([p], lr="x"), TypeError, "not 'x'"),
        (lambda p: setattr(optim.SGD([p]), "lr", "x"), TypeError, "not 'x'"),
        (lambda p: setattr(optim.SGD([p]), "lr", None), TypeError, "not None"),
        (lambda p: setattr(optim.SGD([p]), "lr", -1.0), ValueError, "-1.0"),
        (lambda p: optim.SGD([p], fused=True, foreach=True), RuntimeError, "cannot be `True`"),
        (lambda p: optim.AdamW([p], fused=True, foreach=True), RuntimeError, "cannot be `True`"),
        (lambda p: optim.Adam([p], fused=True, differentiable=True), RuntimeError, "not support"),
    ],
)
def test_bad_arguments(act, error, words):
    with pytest.raises(error, match=words):
        act(gt.ones(1, requires_grad=True))


def test_groups_have_rates_of_their_own():
    a, b = (gt.ones(1, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=0.1)
    (a + b).sum().backward()
    optimizer.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.9, 0.0], atol=1e-6)
    optimizer.param_groups[0]["lr"] = 0.5
    optimizer.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0]
    (a + b).sum().backward()
    optimizer.step()
    np.testing.assert_allclose([a.item(), b.item()], [0.4, -1.0], atol=1e-6)


def test_settings_must_not_be_negative():
    w = gt.ones(1, requires_grad=True)
    for make in (
        lambda: optim.SGD([w], momentum=-1),
        lambda: optim.SGD([w], lr=-1),
        lambda: optim.Adam([w], eps=-1),
        lambda: optim.Adam([w], betas=(0.9, 1.0)),
    ):
        with pytest.raises(ValueError, match=r"-1|1\.0"):
            make()


def test_momentum_is_not_the_gradients_own_tensor():
    """Zeroing a gradient in place does not change the momentum buffer."""
    w = gt.ones(2, requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(3):
        (w * w).sum().backward()
        optimizer.step()
        w.grad.zero_()
    assert np.allclose(w.tolist(), 0.062, atol=1e-6)


def test_groups_have_options_of_their_own():
    a, b = gt.ones(2, requires_grad=True), gt.ones(2, requires_grad=True)
    optimizer = gt.optim.SGD([{"params": [a], "weight_decay": 0.5}, {"params": b}], lr=0.1)
    (a * 0 + b * 0).sum().backward()
    optimizer.step()
    assert np.allclose(a.tolist(), 0.95) and b.tolist() == [1, 1]
    optimizer.param_groups[0]["weight_decay"] = 0
    optimizer.step()
    assert np.allclose(a.tolist(), 0.95)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0, 0.0]
    with pytest.raises(ValueError, match="momentum is -1"):
        optimizer.add_param_group({"params": [gt.ones(1, requires_grad=True)], "momentum": -1})


def test_parameters_that_cannot_be_trained():
    w = gt.ones(2, 3, requires_grad=True)
    with pytest.raises(ValueError, match="must be a leaf"):
        gt.optim.SGD([w * 1])
    with pytest.raises(TypeError, match="a list of parameters"):
        gt.optim.SGD(w)
    with pytest.raises(ValueError, match="given twice"):
        gt.optim.SGD([w, w])


def test_a_closure_is_called_first():
    w = gt.ones(2, requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.5)

    def loss():
        total = (w * w).sum()
        total.backward()
        return total

    assert optimizer.step(loss).item() == 2 and w.tolist() == [0, 0]


def test_gradients_of_frozen_parameters_are_forgotten_too():
    w = gt.ones(2, requires_grad=True)
    optimizer = gt.optim.SGD([w], lr=0.5)
    (w * w).sum().backward()
    w.requires_grad_(False)
    assert w.grad.tolist() == [2, 2]
    optimizer.zero_grad()
    optimizer.step()
    assert w.grad is None and w.tolist() == [1, 1]
