"""Tests that a failed step leaves parameters and optimizer state unchanged, bit for bit."""

import gt
import numpy as np
import pytest
from gt.nn import functional as F

OPTIMIZERS = {
    "ASGD": lambda p: gt.optim.ASGD(p, lr=0.05),
    "ASGD averaging": lambda p: gt.optim.ASGD(p, lr=0.05, t0=1),
    "SGD": lambda p: gt.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda p: gt.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "SGD nesterov": lambda p: gt.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adadelta": lambda p: gt.optim.Adadelta(p),
    "Adafactor": lambda p: gt.optim.Adafactor(p, weight_decay=0.01),
    "Adagrad": lambda p: gt.optim.Adagrad(p),
    "Adam": lambda p: gt.optim.Adam(p, lr=0.01),
    "Adam amsgrad": lambda p: gt.optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p: gt.optim.AdamW(p, lr=0.01),
    "Adamax": lambda p: gt.optim.Adamax(p),
    "Lion": lambda p: gt.optim.Lion(p, lr=0.01, weight_decay=0.1),
    "Muon": lambda p: gt.optim.Muon([one for one in p if one.ndim == 2]),
    "NAdam": lambda p: gt.optim.NAdam(p),
    "RAdam": lambda p: gt.optim.RAdam(p, weight_decay=0.1, decoupled_weight_decay=True),
    "RMSprop": lambda p: gt.optim.RMSprop(p, momentum=0.9, centered=True),
    "Rprop": lambda p: gt.optim.Rprop(p),
}


def labels(bad):
    values = [0, 1, 2, 11 if bad else 3]
    return gt.tensor(values, dtype=gt.int64)


class Training:
    def __init__(self, make):
        gt.manual_seed(3)
        self.model = gt.nn.Sequential(gt.nn.Linear(5, 6), gt.nn.Tanh(), gt.nn.Linear(6, 4))
        self.x = gt.randn(4, 5)
        self.optimizer = make(list(self.model.parameters()))

    def step(self, bad=False):
        self.model.zero_grad()
        loss = F.cross_entropy(self.model(self.x), labels(bad))
        loss.backward()
        self.optimizer.step()
        return loss

    def values(self):
        """Return the parameters and all tensors of the optimizer state, as bytes."""
        kept = [own[name] for own in self.optimizer.state.values() for name in sorted(own)]
        tensors = [*self.model.parameters(), *(one for one in kept if isinstance(one, gt.Tensor))]
        return [tensor.detach().numpy().tobytes() for tensor in tensors]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("before", [0, 2, 9])
def test_a_bad_label_changes_nothing(name, before):
    training = Training(OPTIMIZERS[name])
    for _ in range(before):
        training.step()
    values = training.values()
    loss = training.step(bad=True)
    after = training.values()
    # A failed first step may add state entries: zeros, or the optimizer's initial values.
    assert after[: len(values)] == values
    with pytest.raises(gt.WorkerError, match="cross_entropy: target 11 is not in"):
        loss.item()
    first = training.step().item()
    for _ in range(12):
        last = training.step().item()
    assert np.isfinite(last)
    assert last < first or name == "Adadelta"
    assert training.values() != values


@pytest.mark.parametrize("name", ["SGD", "SGD momentum", "AdamW", "Rprop"])
def test_steps_that_fail_are_as_if_they_had_not_been_asked_for(name):
    """Training with failed steps, whose step counts are undone, ends as training without them."""

    def trained(bad):
        training = Training(OPTIMIZERS[name])
        for step in range(20):
            if step in bad:
                training.step(bad=True)
                for own in training.optimizer.state.values():
                    own["step"] = own.get("step", 0) - 1
            training.step()
        return training.values()

    assert trained((3, 11, 12, 17)) == trained(())


def test_a_step_that_fails_at_the_first_time_leaves_zeros():
    training = Training(OPTIMIZERS["Adam"])
    training.step(bad=True)
    for own in training.optimizer.state.values():
        assert not own["exp_avg"].any().item() and not own["exp_avg_sq"].any().item()


def test_an_exception_in_the_middle_of_a_step_leaves_everything_as_it_was():
    class Stops(gt.optim.AdamW):
        limit = None

        def _update(self, parameter, grad, state, group):
            if parameter.ndim == 1 and self.limit:
                raise ArithmeticError("stop")
            super()._update(parameter, grad, state, group)

    training = Training(lambda p: Stops(p, lr=0.1))
    for limit in (None, True, None):
        values = training.values()
        training.optimizer.limit = limit
        if limit:
            with pytest.raises(ArithmeticError, match="stop"):
                training.step()
            assert training.values() == values
        else:
            training.step()
            assert training.values() != values


def test_an_optimizer_of_a_users_is_a_transaction_too():
    class Signs(gt.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

        def step(self, closure=None):
            with gt.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        own = self.state[parameter]
                        own["mean"] = own.get("mean", 0) * 0.5 + parameter.grad
                        parameter.mul_(0.999)
                        parameter -= group["lr"] * own["mean"].sign()

    training = Training(Signs)
    training.step()
    values = training.values()
    training.step(bad=True)
    assert training.values() == values
    training.step()
    assert training.values() != values


def test_parameters_that_are_views_and_views_of_parameters_go_back():
    flat = gt.ones(6)
    first, second = flat[:2].requires_grad_(), flat[2:].reshape(2, 2).requires_grad_()
    optimizer = gt.optim.SGD([first, second], lr=0.5, momentum=0.9)
    whole = gt.ones(3, requires_grad=True)
    part = whole.detach()[1:]
    optimizer.add_param_group({"params": [whole]})
    for step in range(8):
        bad = step in (0, 5)
        index = gt.tensor([7 if bad else 1], dtype=gt.int64)
        before = [one.detach().tolist() for one in (flat, first, second, whole, part)]
        optimizer.zero_grad()
        ((first[index].sum() + second.sum()) * whole.sum()).backward()
        optimizer.step()
        after = [one.detach().tolist() for one in (flat, first, second, whole, part)]
        assert (before == after) == bad, step
        assert flat.tolist() == first.tolist() + sum(second.tolist(), [])
        assert whole.tolist()[1:] == part.tolist()


def test_complex_parameters_go_back():
    w = gt.tensor([1 + 2j, 3 - 1j]).requires_grad_()
    optimizer = gt.optim.Adam([w], lr=0.1)
    for bad in (False, True, False):
        before = w.detach().tolist()
        index = gt.tensor([5 if bad else 0], dtype=gt.int64)
        optimizer.zero_grad()
        w[index].abs().sum().backward()
        optimizer.step()
        assert (w.detach().tolist() == before) == bad


def test_what_was_read_before_a_step_keeps_its_value():
    training = Training(OPTIMIZERS["AdamW"])
    training.step()
    kept = [one.detach().clone() for one in training.model.parameters()]
    bytes_before = [one.numpy().tobytes() for one in kept]
    grads = [one.grad for one in training.model.parameters()]
    finite = [grad.tolist() for grad in grads]
    training.step(bad=True)
    assert [one.numpy().tobytes() for one in kept] == bytes_before
    assert [grad.tolist() for grad in grads] == finite
    with pytest.raises(gt.WorkerError, match="cross_entropy"):
        training.model[0].weight.grad.tolist()
