"""Optimizers, learning rate schedules and averaged models, compared with PyTorch's."""

import copy
import pickle
import warnings

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import optimizer_database as database  # noqa: E402

OPTIMIZERS = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {"lr": 0.01}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adadelta", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Rprop", {}),
    ("ASGD", {"t0": 2}),
    ("Adafactor", {}),
]


def test_the_database_of_pytorch():
    rows = database.table()
    problems = [problem for row in rows.values() for problem in row[2]]
    count, passed = (sum(row[at] for row in rows.values()) for at in (0, 1))
    assert passed >= 0.95 * count, problems
    assert not problems


def problem_of(lib, name, options):
    """Return a parameter, its optimizer, and a function that takes a training step."""
    start = np.linspace(-1, 1, 12, dtype=np.float64).reshape(3, 4)
    weight = lib.nn.Parameter(lib.tensor(start.tolist(), dtype=lib.float64))
    optimizer = getattr(lib.optim, name)([weight], **options)

    def step():
        optimizer.zero_grad()
        ((weight - 0.3) ** 4 + weight.sin()).sum().backward()
        optimizer.step()

    return weight, optimizer, step


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_states_go_both_ways(name, options):
    w1, ours, step1 = problem_of(gt, name, options)
    w2, theirs, step2 = problem_of(torch, name, options)
    for _ in range(3):
        step1()
        step2()
    mine, other = ours.state_dict(), theirs.state_dict()
    assert list(mine["state"][0]) == list(other["state"][0])
    assert mine["param_groups"][0].keys() == other["param_groups"][0].keys()
    assert mine["state"][0].keys() == other["state"][0].keys()
    w1.data = gt.tensor(w2.detach().numpy())
    ours.load_state_dict(other)
    state = {
        key: {n: torch.tensor(v.tolist(), dtype=torch.float64) for n, v in own.items()}
        for key, own in mine["state"].items()
    }
    theirs.load_state_dict({"state": state, "param_groups": mine["param_groups"]})
    for _ in range(3):
        step1()
        step2()
    np.testing.assert_allclose(w1.detach().numpy(), w2.detach().numpy(), rtol=1e-6)


def test_lbfgs_keeps_what_pytorch_does():
    def after_a_step(lib):
        _, optimizer, _ = problem_of(lib, "LBFGS", {"max_iter": 3, "history_size": 4})
        (weight,) = optimizer.param_groups[0]["params"]

        def loss(weight=weight, optimizer=optimizer):
            optimizer.zero_grad()
            result = ((weight - 0.3) ** 4).sum()
            result.backward()
            return result

        optimizer.step(loss)
        return optimizer.state_dict()

    def kept_of(state):
        return state["state"][0]

    mine, other = after_a_step(gt), after_a_step(torch)
    assert kept_of(mine).keys() == kept_of(other).keys()
    _, restored, _ = problem_of(gt, "LBFGS", {"history_size": 4})
    restored.load_state_dict(other)
    for own in (kept_of(mine)["al"], kept_of(restored.state_dict())["al"]):
        for one, two in zip(own, kept_of(other)["al"], strict=True):
            assert (one is None) == (two is None)
            assert one is None or float(one) == pytest.approx(float(two))


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers_are_copied_and_pickled(name, options):
    _, optimizer, step = problem_of(gt, name, options)
    step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert type(other) is type(optimizer)
        (weight,), (original,) = other.params, optimizer.params
        assert weight is not original and weight.tolist() == original.tolist()
        weight.grad = gt.ones(3, 4, dtype=gt.float64)
        other.step()
    assert repr(optimizer) == repr(problem_of(torch, name, options)[1])


def test_users_write_optimizers():
    class Simple(gt.optim.Optimizer):
        def __init__(self, params, lr=0.1):
            super().__init__(params, {"lr": lr})

        @gt.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    state["step"] = state.get("step", 0) + 1
                    p.add_(p.grad, alpha=-group["lr"])
                    p.data.mul_(1.0)

    w = gt.nn.Parameter(gt.ones(2))
    optimizer = Simple([w], lr=0.5)
    seen = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    (w * 2).sum().backward()
    optimizer.step()
    assert w.tolist() == [0, 0] and seen == ["before", "after"]
    assert optimizer.state[w]["step"] == 1
    assert optimizer.state_dict()["state"][0]["step"].item() == 1


def test_named_parameters_and_groups():
    def program(lib):
        model = lib.nn.Linear(2, 2)
        optimizer = lib.optim.AdamW(model.named_parameters(), lr=0.1)
        optimizer.add_param_group(
            {"params": [("more", lib.nn.Parameter(lib.ones(1)))], "lr": 0.5, "weight_decay": 0}
        )
        state = optimizer.state_dict()
        return [{k: v for k, v in g.items() if k != "betas"} for g in state["param_groups"]]

    assert program(gt) == program(torch)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda lib, p: lib.optim.SGD([], lr=0.1),
        lambda lib, p: lib.optim.SGD(p, lr=0.1),
        lambda lib, p: lib.optim.SGD([3], lr=0.1),
        lambda lib, p: lib.optim.SGD([p * 2], lr=0.1),
        lambda lib, p: lib.optim.SGD([p], lr=-1.0),
        lambda lib, p: lib.optim.SGD([p], momentun=0.9),
        lambda lib, p: lib.optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1),
        lambda lib, p: lib.optim.SGD([p], lr=0.1).add_param_group([p]),
        lambda lib, p: lib.optim.SGD([{"params": {p}}], lr=0.1),
        lambda lib, p: lib.optim.SGD([("a", p), lib.ones(1)], lr=0.1),
        lambda lib, p: lib.optim.Adam([p], betas=(1.0, 0.9)),
        lambda lib, p: lib.optim.Adam([p], eps=-1.0),
        lambda lib, p: lib.optim.RMSprop([p], alpha=-1.0),
        lambda lib, p: lib.optim.Adadelta([p], rho=2.0),
        lambda lib, p: lib.optim.Rprop([p], etas=(1.0, 0.5)),
        lambda lib, p: lib.optim.NAdam([p], momentum_decay=-1.0),
        lambda lib, p: lib.optim.Muon([lib.nn.Parameter(lib.ones(3))]),
        lambda lib, p: lib.optim.Muon([lib.nn.Parameter(lib.ones(3, 3))], adjust_lr_fn="x"),
        lambda lib, p: lib.optim.LBFGS([p]).step(),
        lambda lib, p: lib.optim.LBFGS([{"params": [p]}, {"params": [lib.ones(1)]}]),
        lambda lib, p: lib.optim.lr_scheduler.StepLR(p, 3),
        lambda lib, p: lib.optim.lr_scheduler.StepLR(lib.optim.SGD([p]), 3, last_epoch=3),
        lambda lib, p: lib.optim.lr_scheduler.OneCycleLR(lib.optim.SGD([p]), 0.1),
        lambda lib, p: lib.optim.lr_scheduler.CyclicLR(lib.optim.Rprop([p]), 0.1, 0.2),
        lambda lib, p: lib.optim.lr_scheduler.LambdaLR(lib.optim.SGD([p]), [1, 2]),
        lambda lib, p: lib.optim.lr_scheduler.SequentialLR(lib.optim.SGD([p]), [], []),
        lambda lib, p: lib.optim.lr_scheduler.ReduceLROnPlateau(lib.optim.SGD([p]), factor=2.0),
    ],
)
def test_mistakes_raise_the_same_errors(mistake):
    def error_of(lib):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            mistake(lib, lib.nn.Parameter(lib.ones(2)))
        return caught.type

    assert issubclass(error_of(gt), error_of(torch))


SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, lambda step: 0.9**step),
    "LambdaLR of groups": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda step: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [5, 5, 30], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 8),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.25, 0.75, 9),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.93),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 20, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 12, 0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.001),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 6, 3),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, 0.01, [0.1, 0.2], 6, mode="triangular2"),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 6, mode="exp_range", gamma=0.9),
    "CyclicLR scale_fn": lambda s, o: s.CyclicLR(
        o, 0.01, 0.1, 6, scale_fn=lambda x: 0.5**x, scale_mode="iterations", cycle_momentum=False
    ),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, 60),
    "OneCycleLR three phases": lambda s, o: s.OneCycleLR(
        o, [0.1, 0.2], epochs=6, steps_per_epoch=10, three_phase=True, anneal_strategy="linear"
    ),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.StepLR(o, 5)], [4, 25]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]
    ),
    "SequentialLR nested": lambda s, o: s.SequentialLR(
        o,
        [s.SequentialLR(o, [s.LinearLR(o), s.StepLR(o, 3)], [6]), s.CosineAnnealingLR(o, 9)],
        [20],
    ),
}


def rates(lib, name, kind="SGD", restore_at=None):
    """Return the learning rates and momentums of 55 steps."""
    options = {"momentum": 0.9} if kind == "SGD" else {}
    groups = [{"params": [lib.nn.Parameter(lib.ones(1))]} for _ in range(2)]
    groups[1]["lr"] = 0.05
    optimizer = getattr(lib.optim, kind)(groups, lr=0.1, **options)
    optimizer.step()
    make = SCHEDULES[name]
    schedule, found = make(lib.optim.lr_scheduler, optimizer), []
    for step in range(55):
        if step == restore_at:
            state, own = copy.deepcopy(schedule.state_dict()), optimizer.state_dict()
            schedule = make(lib.optim.lr_scheduler, optimizer)
            optimizer.load_state_dict(own)
            schedule.load_state_dict(state)
        found.append([g["lr"] for g in optimizer.param_groups])
        found.append([g.get("momentum", g.get("betas", [0])) for g in optimizer.param_groups])
        assert schedule.get_last_lr() == found[-2] or step == restore_at
        schedule.step()
    return found


def flat(value):
    """Return all numbers in nested lists and tuples."""
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in flat(item)]
    return [float(value)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_schedules_are_the_same(name, kind):
    want = flat(rates(torch, name, kind))
    np.testing.assert_allclose(flat(rates(gt, name, kind)), want, rtol=1e-12, atol=1e-15)
    restored = flat(rates(gt, name, kind, restore_at=23))
    np.testing.assert_allclose(restored, want, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "max", "patience": 2},
        {"threshold_mode": "abs", "threshold": 0.1, "cooldown": 3, "patience": 1},
        {"min_lr": [0.01, 0.02], "factor": 0.5, "patience": 0},
    ],
)
def test_plateaus_are_the_same(options):
    metrics = np.random.default_rng(0).uniform(0, 1, 60).tolist()

    def program(lib):
        groups = [{"params": [lib.nn.Parameter(lib.ones(1))]} for _ in range(2)]
        optimizer = lib.optim.SGD(groups, lr=0.1)
        schedule = lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
        found = []
        for metric in metrics:
            schedule.step(lib.tensor(metric, dtype=lib.float64))
            found += schedule.get_last_lr()
        return found

    assert program(gt) == program(torch)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_steps_by_number_and_rates_that_are_tensors():
    def program(lib):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=lib.tensor(0.1))
        schedule = lib.optim.lr_scheduler.StepLR(optimizer, 3)
        schedule.step(7)
        found = [float(optimizer.param_groups[0]["lr"])]
        warm = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 4, 2)
        for at in (0.5, 3.25, 4, 11.5, 13):
            warm.step(at)
            found.append(float(optimizer.param_groups[0]["lr"]))
        return found

    np.testing.assert_allclose(program(gt), program(torch), rtol=1e-6)


def test_a_schedule_before_the_optimizer_warns():
    optimizer = gt.optim.SGD([gt.nn.Parameter(gt.ones(1))])
    schedule = gt.optim.lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="opposite order"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = gt.optim.SGD([gt.nn.Parameter(gt.ones(1))])
        schedule = gt.optim.lr_scheduler.StepLR(other, 3)
        other.step()
        schedule.step()


@pytest.mark.parametrize("kind", ["mean", "ema", "own", "buffers"])
def test_averaged_models(kind):
    def program(lib):
        swa = lib.optim.swa_utils
        options = {
            "mean": {},
            "ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.8)},
            "own": {"avg_fn": swa.get_ema_avg_fn(0.7)},
            "buffers": {"use_buffers": True},
        }[kind]
        model = lib.nn.Linear(2, 1)
        model.register_buffer("seen", lib.zeros(1))
        with lib.no_grad():
            for parameter in model.parameters():
                parameter.fill_(1.0)
        average = swa.AveragedModel(model, **options)
        for step in range(4):
            with lib.no_grad():
                for parameter in model.parameters():
                    parameter.add_(float(step + 1))
                model.seen.add_(1.0)
            average.update_parameters(model)
        state = average.state_dict()
        return {name: np.array(value.tolist()) for name, value in state.items()}

    ours, theirs = program(gt), program(torch)
    assert list(ours) == list(theirs)
    for name, want in theirs.items():
        np.testing.assert_allclose(ours[name], want, rtol=1e-6, err_msg=name)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 7])
def test_swa_rates(strategy, epochs):
    def program(lib):
        optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1)
        schedule = lib.optim.swa_utils.SWALR(optimizer, 0.02, epochs, strategy)
        found = []
        for _ in range(10):
            schedule.step()
            found.append(optimizer.param_groups[0]["lr"])
        return found

    np.testing.assert_allclose(program(gt), program(torch), rtol=1e-9)


@pytest.mark.parametrize("name", ["Adam", "AdamW", "NAdam", "RAdam", "Adamax"])
@pytest.mark.parametrize("betas", [(0, 0.9), (0.0, 0.0), (0.9, 0)])
def test_decay_rates_of_zero(name, betas):
    """PyTorch's Adam refuses an int beside a float; GT takes it for the float."""

    def after_steps(lib, betas):
        parameter = lib.nn.Parameter(lib.tensor([1.0, -2.0, 3.0]))
        optimizer = getattr(lib.optim, name)([parameter], betas=betas)
        for step in range(5):
            parameter.grad = lib.tensor([0.1 * step, -0.2, 0.3])
            optimizer.step()
        return parameter.tolist()

    want = after_steps(torch, tuple(map(float, betas)))
    np.testing.assert_allclose(after_steps(gt, betas), want, rtol=1e-6)
