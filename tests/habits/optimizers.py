"""Everyday use of optimizers and schedules."""

import copy
import pickle

from habits.common import batch, classifier, waves


def habit_groups_of_parameters(torch):
    model = classifier(torch)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": decay, "weight_decay": 0.1},
        {"params": others, "weight_decay": 0.0, "lr": 1.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, fused=False)
    assert [g["weight_decay"] for g in optimizer.param_groups] == [0.1, 0.0]
    assert optimizer.param_groups[1]["lr"] == 1.0 and optimizer.defaults["lr"] == 3e-4
    for group in optimizer.param_groups:
        group["lr"] = 1e-3
    extra = torch.nn.Parameter(torch.zeros(2))
    optimizer.add_param_group({"params": [extra], "lr": 0.5})
    assert len(optimizer.param_groups) == 3 and len(optimizer.param_groups[0]["params"]) == 2


def habit_arguments_of_optimizers(torch):
    optim, results = torch.optim, []
    makers = [
        lambda p: optim.Adam(p, 0.1, (0.8, 0.9), 1e-6, 0.01, True),
        lambda p: optim.Adam(p, lr=0.1, amsgrad=True, foreach=True, maximize=True),
        lambda p: optim.AdamW(p, lr=0.1, foreach=False, fused=None, capturable=False),
        lambda p: optim.SGD(p, 0.1, 0.9, 0, 0.1, True),
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
        lambda p: optim.RMSprop(p, lr=0.1, alpha=0.9, centered=True),
        lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
        lambda p: optim.Adadelta(p),
        lambda p: optim.NAdam(p, lr=0.1),
        lambda p: optim.RAdam(p, lr=0.1),
        lambda p: optim.Adamax(p, lr=0.1),
        lambda p: optim.Rprop(p, lr=0.1),
        lambda p: optim.ASGD(p, lr=0.1),
    ]
    for make in makers:
        p = torch.nn.Parameter(waves(torch, 3))
        optimizer = make([p])
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            (p**2).sum().backward()
            optimizer.step()
        results.append(p.tolist())
    return results


def habit_state_of_optimizers(torch):
    p = torch.nn.Parameter(waves(torch, 3))
    optimizer = torch.optim.Adam([p], lr=0.1)
    (p**2).sum().backward()
    optimizer.step()
    state = optimizer.state[p]
    assert {"step", "exp_avg", "exp_avg_sq"} == set(state) and state["exp_avg"].shape == p.shape
    assert float(state["step"]) == 1 and p in optimizer.state and len(optimizer.state) == 1
    saved = optimizer.state_dict()
    assert sorted(saved) == ["param_groups", "state"] and saved["param_groups"][0]["params"] == [0]
    for again in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert again.param_groups[0]["lr"] == 0.1 and len(again.state) == 1
    other = torch.optim.Adam([torch.nn.Parameter(waves(torch, 3))], lr=1.0)
    other.load_state_dict(copy.deepcopy(saved))
    assert other.param_groups[0]["lr"] == 0.1
    for state in other.state.values():
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                state[name] = value.to("cpu")
    return state["exp_avg"].tolist(), list(saved["state"][0])


def habit_optimizers_of_ones_own(torch):
    class Signs(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1, beta=0.5):
            super().__init__(params, dict(lr=lr, beta=beta))

        @torch.no_grad()
        def step(self, closure=None):
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["momentum"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                    state["momentum"].mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])
                    p.add_(state["momentum"].sign(), alpha=-group["lr"])
            return loss

    p = torch.nn.Parameter(waves(torch, 3))
    optimizer = Signs([p])
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(3)]
    scheduler.step()
    assert "lr: 0.05" in repr(optimizer) and len(optimizer.state_dict()["state"]) == 1
    return losses, p.tolist()


def habit_schedules(torch):
    schedulers, rates = torch.optim.lr_scheduler, []
    makers = [
        lambda o: schedulers.CosineAnnealingLR(o, T_max=5, eta_min=0.01),
        lambda o: schedulers.LambdaLR(o, lr_lambda=lambda step: min(1.0, (step + 1) / 4)),
        lambda o: schedulers.OneCycleLR(o, max_lr=1.0, total_steps=10),
        lambda o: schedulers.MultiStepLR(o, milestones=[2, 4], gamma=0.1),
        lambda o: schedulers.CosineAnnealingWarmRestarts(o, T_0=3),
        lambda o: schedulers.LinearLR(o, start_factor=0.1, total_iters=4),
        lambda o: schedulers.PolynomialLR(o, total_iters=4, power=2.0),
        lambda o: schedulers.CyclicLR(o, base_lr=0.1, max_lr=0.5, step_size_up=2),
        lambda o: schedulers.SequentialLR(
            o, [schedulers.ConstantLR(o, 0.1, 2), schedulers.ExponentialLR(o, 0.9)], [2]
        ),
    ]  # fmt: skip
    for make in makers:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5, momentum=0.9)
        scheduler = make(optimizer)
        for _ in range(5):
            optimizer.step()
            scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])
        assert "last_epoch" in scheduler.state_dict()
    return rates


def habit_plateaus(torch):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=1)
    rates = []
    for loss in (1.0, 0.9, 0.95, 0.95, 0.95):
        scheduler.step(torch.tensor(loss))
        rates.append(optimizer.param_groups[0]["lr"])
    return rates, scheduler.get_last_lr()


def habit_resuming(torch):
    x, y = batch(torch)

    def step(model, optimizer, scheduler):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        return loss.item()

    def start():
        model = classifier(torch)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
        return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

    parts = start()
    first = [step(*parts) for _ in range(2)]
    saved = [copy.deepcopy(part.state_dict()) for part in parts]
    again = start()
    for part, state in zip(again, saved, strict=True):
        part.load_state_dict(state)
    on = [step(*parts) for _ in range(2)]
    assert on == [step(*again) for _ in range(2)]
    return first + on


def habit_lbfgs(torch):
    w = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    optimizer = torch.optim.LBFGS([w], lr=1, max_iter=5, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = ((w - 1) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert (w - 1).abs().max() < 1e-4
