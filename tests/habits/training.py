"""Everyday use of training loops: gradients, modes, averages."""

import copy
import math
from importlib import import_module

from habits.common import batch, classifier, settle, waves


def habit_the_loop(torch):
    model, (x, y) = classifier(torch), batch(torch)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    assert scheduler.get_last_lr() == [0.025] and optimizer.param_groups[0]["lr"] == 0.025
    return losses


def habit_descent_by_hand(torch):
    w = torch.tensor([1.0, -2.0], requires_grad=True)
    lr = 0.1
    for _ in range(3):
        loss = (w**2).sum()
        loss.backward()
        with torch.no_grad():
            w -= lr * w.grad
            w.grad.zero_()
    for _ in range(2):
        ((w - 1) ** 2).sum().backward()
        w.data -= lr * w.grad.data
        w.data.add_(w.grad, alpha=-lr)
        w.grad = None
    assert w.is_leaf and w.requires_grad
    return w.tolist()


def habit_gradients_add_up(torch):
    w = torch.ones(2, requires_grad=True)
    for _ in range(3):
        (w * torch.tensor([1.0, 2.0])).sum().backward()
    assert w.grad.tolist() == [3, 6] and w.grad.requires_grad is False
    (w.sum() * 2).backward(retain_graph=True)
    y = w * 3
    y.backward(torch.tensor([1.0, 0.5]))
    assert w.grad.tolist() == [8, 9.5]


def habit_gradients_of_results(torch):
    x = waves(torch, 3).requires_grad_()
    y = x * 2
    y.retain_grad()
    y.pow(2).sum().backward()
    assert torch.allclose(y.grad, 2 * y) and torch.allclose(x.grad, 8 * x)
    (dx,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), [x], retain_graph=True)
    assert torch.allclose(ddx, -x.sin()) and y.grad_fn is not None and x.grad_fn is None
    penalty = (dx.norm(2) - 1) ** 2
    penalty.backward()
    return x.grad.tolist()


def habit_gradient_modes(torch):
    w = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not (w * 2).requires_grad and not torch.is_grad_enabled()
    with torch.inference_mode():
        assert not (w * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (w * 2).requires_grad
    with torch.no_grad(), torch.enable_grad():
        assert (w * 2).requires_grad

    @torch.no_grad()
    def evaluate(model):
        return model(w)

    @torch.inference_mode()
    def predict():
        return w * 2

    assert not evaluate(lambda w: w * 2).requires_grad and not predict().requires_grad
    previous = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    torch.set_grad_enabled(previous)
    assert (w * 2).requires_grad and not w.detach().requires_grad and w.detach().is_leaf


def habit_hooks_of_tensors(torch):
    w, seen = torch.ones(2, requires_grad=True), []
    handle = w.register_hook(lambda grad: seen.append(grad.clone()) or grad * 2)
    w.sum().backward()
    assert seen[0].tolist() == [1, 1] and w.grad.tolist() == [2, 2]
    handle.remove()
    w.sum().backward()
    assert w.grad.tolist() == [3, 3] and len(seen) == 1


def habit_clipping(torch):
    model, (x, y) = classifier(torch), batch(torch)
    (torch.nn.functional.cross_entropy(model(x), y) * 100).backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    clipped = torch.stack([p.grad.norm(2) for p in model.parameters()]).norm(2)
    assert norm > 1 and abs(clipped.item() - 1) < 1e-4
    torch.nn.utils.clip_grad_value_(model.parameters(), clip_value=0.01)
    assert max(p.grad.abs().max() for p in model.parameters()) <= 0.01
    total = 0.0
    for p in model.parameters():
        total += p.grad.detach().data.norm(2).item() ** 2
    vector = torch.nn.utils.parameters_to_vector(model.parameters())
    torch.nn.utils.vector_to_parameters(vector * 2, model.parameters())
    return norm.item(), math.sqrt(total), vector.sum().item()


def habit_functions_of_ones_own(torch):
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x.sign() * scale

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * (x.abs() <= 1).float() * ctx.scale, None

    x = torch.tensor([0.5, -2.0], requires_grad=True)
    Sign.apply(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3, 0]
    straight = x + (x.round() - x).detach()
    assert straight.tolist() == [0, -2]


def habit_checks_of_gradients(torch):
    x = waves(torch, 3).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: x.sin() * x, (x,))
    assert torch.autograd.gradgradcheck(lambda x: x**3, (x,))
    jacobian = torch.autograd.functional.jacobian(lambda x: x**2, x)
    hessian = torch.autograd.functional.hessian(lambda x: (x**3).sum(), x)
    assert torch.allclose(jacobian, torch.diag(2 * x)) and torch.allclose(
        hessian, torch.diag(6 * x)
    )
    value, product = torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, torch.ones_like(x))
    grads = torch.func.vmap(torch.func.grad(lambda x: x**2))(x.detach())
    assert torch.allclose(grads, 2 * x) and torch.allclose(product, 6 * x)
    return value.item()


def habit_mixed_precision(torch):
    model, (x, y) = classifier(torch), batch(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    use_amp = torch.cuda.is_available()
    scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
    for _ in range(2):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=use_amp):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(x).dtype == torch.bfloat16
    assert scaler.state_dict() == {} or "scale" in scaler.state_dict()
    return loss.item()


def habit_averages_of_weights(torch):
    model, (x, y) = classifier(torch), batch(torch)
    ema = copy.deepcopy(model).eval().requires_grad_(False)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        averaged.update_parameters(model)
        with torch.no_grad():
            for e, p in zip(ema.parameters(), model.parameters(), strict=True):
                e.mul_(0.9).add_(p.data, alpha=0.1)
            for e, p in zip(ema.state_dict().values(), model.state_dict().values(), strict=True):
                e.copy_(e.lerp(p, 0.1))
    assert averaged.n_averaged == 2 and not any(p.requires_grad for p in ema.parameters())
    return ema(x).tolist(), averaged(x).tolist()


def habit_compiled_models(torch):
    model = classifier(torch)
    x, _ = batch(torch)
    compiled = (
        torch.compile(model, backend="eager") if hasattr(torch, "_dynamo") else torch.compile(model)
    )
    function = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    assert torch.allclose(compiled(x), model(x)) and function(x).equal(x * 2)


def habit_checkpointed_layers(torch):

    checkpoint = import_module(f"{torch.__name__}.utils.checkpoint").checkpoint
    layer, x = settle(torch, torch.nn.Linear(4, 4)), waves(torch, 2, 4).requires_grad_()
    checkpoint(layer, x, use_reentrant=False).pow(2).sum().backward()
    return x.grad.tolist(), layer.weight.grad.tolist()


def habit_functional_models(torch):
    model, (x, y) = classifier(torch), batch(torch)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, x, y):
        logits = torch.func.functional_call(model, parameters, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(logits, y.unsqueeze(0))

    grads = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    assert grads["0.weight"].shape == (6, 8, 4)
    return {name: grad.sum().item() for name, grad in grads.items()}
