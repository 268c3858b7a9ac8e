"""Hooks that run after a leaf's gradient was accumulated, beside those of PyTorch."""

import gc
import weakref

import gt
import pytest

torch = pytest.importorskip("torch")


def leaf(lib, *values):
    return lib.tensor(list(values or (1.0, 2.0)), requires_grad=True)


def calls(lib):
    """Return what hooks see in several passes."""
    x, seen = leaf(lib), []
    note = lambda p: seen.append((p is x, p.grad.tolist(), lib.is_grad_enabled()))  # noqa: E731
    handle = x.register_post_accumulate_grad_hook(note)
    (x * x + x).sum().backward()
    (x * 3).sum().backward(inputs=[x])
    lib.autograd.backward([(x * 2).sum()])
    lib.autograd.grad((x * 3).sum(), x)
    handle.remove()
    (x * 3).sum().backward()
    with x.register_post_accumulate_grad_hook(note):
        x.sum().backward()
    x.sum().backward()
    return seen


def updates(lib):
    """Return parameters that hooks update during backward passes, as an optimizer does."""
    x, y = leaf(lib), leaf(lib, 3.0)

    def step(p):
        p.add_(p.grad, alpha=-0.5)
        p.grad = None

    for p in (x, y):
        p.register_post_accumulate_grad_hook(step)
    for _ in range(6):
        (x * y).sum().backward()
    return [x.tolist(), y.tolist(), x.grad, y.grad]


def orders(lib):
    """Return the order of hooks of one tensor, and whether each sees the accumulated gradient."""
    x, seen = leaf(lib), []
    for name in "ab":
        x.register_post_accumulate_grad_hook(lambda p, name=name: seen.append((name, p.grad)))
    x.register_hook(lambda g: seen.append(("gradient", x.grad)))
    (x * 3).sum().backward()
    return [(name, grad if grad is None else grad.tolist()) for name, grad in seen]


def graphs(lib):
    """Return what a hook sees in a pass that is recorded itself."""
    x, seen = leaf(lib), []
    x.register_post_accumulate_grad_hook(
        lambda p: seen.append((lib.is_grad_enabled(), p.grad.requires_grad))
    )
    (x**3).sum().backward(create_graph=True)
    x.grad = None
    return seen


def switches(lib):
    """Return how often a hook is called after gradients were off for a while."""
    x, seen = leaf(lib), []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(1))
    x.requires_grad_(False).requires_grad_()
    x.sum().backward()
    return seen


def parameters(lib):
    """Return the types that hooks of a module's parameters get."""
    model, seen = lib.nn.Linear(2, 2), []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: seen.append(type(p).__name__))
    model(lib.ones(1, 2)).sum().backward()
    return seen


@pytest.mark.filterwarnings("ignore:Using backward")
@pytest.mark.parametrize("program", [calls, updates, orders, graphs, switches, parameters])
def test_hooks_do_the_same_as_those_of_pytorch(program):
    assert program(gt) == program(torch)


def no_leaf(lib):
    (leaf(lib) * 2).register_post_accumulate_grad_hook(lambda p: None)


def no_gradients(lib):
    lib.ones(2).register_post_accumulate_grad_hook(lambda p: None)


def returns(result):
    def act(lib):
        x = leaf(lib)
        x.register_post_accumulate_grad_hook(lambda p: result(lib))
        x.sum().backward()

    return act


def raises(lib):
    x = leaf(lib)
    x.register_post_accumulate_grad_hook(lambda p: [][p.grad.ndim])
    x.sum().backward()


ACTS = [no_leaf, no_gradients, returns(lambda lib: 5), returns(lambda lib: lib.ones(2)), raises]


@pytest.mark.parametrize("act", ACTS)
def test_errors_are_of_the_kind_of_pytorchs(act):
    kinds = []
    for lib in (gt, torch):
        with pytest.raises(Exception) as caught:
            act(lib)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


def test_the_gradient_stays_after_a_hook_has_failed():
    x = leaf(gt)
    x.register_post_accumulate_grad_hook(lambda p: [][1])
    with pytest.raises(IndexError):
        x.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_a_hook_does_not_keep_its_tensor():
    x = leaf(gt)
    seen = weakref.ref(x)
    x.register_post_accumulate_grad_hook(lambda p: None)
    result = x.sum()
    del x
    gc.collect()
    assert seen() is None
    result.backward()


def test_no_inputs_are_an_error():
    for lib in (gt, torch):
        with pytest.raises(RuntimeError, match="inputs"):
            leaf(lib).sum().backward(inputs=[])
