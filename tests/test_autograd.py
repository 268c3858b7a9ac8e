"""Gradients from Python: backward, grad, modes and graphs."""

import threading

import gt
import numpy as np
import pytest


def leaf(*values):
    return gt.tensor(list(values), requires_grad=True)


def test_gradients_accumulate_and_can_be_reset():
    a = leaf(1.0, 2.0)
    (a * a).sum().backward()
    (a * 3).sum().backward()
    assert a.grad.tolist() == [5, 7]
    a.grad.zero_()
    assert a.grad.tolist() == [0, 0]
    a.grad = None
    assert a.grad is None


def test_several_graphs_exist_at_once():
    a = leaf(1.0, 2.0)
    losses = [(a * k).sum() for k in (1, 2, 3)]
    for loss in reversed(losses):
        loss.backward()
    assert a.grad.tolist() == [6, 6]


def test_a_graph_is_freed_unless_retained():
    a = leaf(2.0)
    loss = (a * a).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert a.grad.tolist() == [8]
    with pytest.raises(RuntimeError, match="retain_graph"):
        loss.backward()


def test_a_graph_without_saved_tensors_can_be_used_again():
    a = leaf(1.0, 2.0)
    loss = (-a + 1).reshape(2, 1).sum()
    loss.backward()
    loss.backward()
    assert a.grad.tolist() == [-2, -2]


def test_no_grad_detach_and_integers():
    a = leaf(1.0)
    with gt.no_grad():
        assert not (a * 2).requires_grad
        a += 1
    assert a.is_leaf and a.requires_grad and a.tolist() == [2]

    @gt.no_grad()
    def silent():
        return a * 2

    assert not silent().requires_grad and (a * 2).requires_grad
    assert not (a * 2).detach().requires_grad and not (a > 1).requires_grad
    assert not (a * 2).long().requires_grad
    with pytest.raises(TypeError, match="float"):
        gt.arange(3).requires_grad_()
    with pytest.raises(RuntimeError, match="in place"):
        a += 1


def test_gradients_of_broadcasts_slices_cat_and_stack():
    a, b = leaf(1.0, 2.0, 3.0), leaf(10.0)
    out = gt.cat([a[1:] * b, gt.stack([a[0], a[2]])]).reshape(2, 2).T
    out.backward(gt.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert a.grad.tolist() == [2, 10, 34] and b.grad.tolist() == [2 * 1 + 3 * 3]
    c = leaf(1.0, 2.0, 3.0)
    first, second = c.split([1, 2])
    (first.sum() + (second * second).sum()).backward()
    assert c.grad.tolist() == [1, 4, 6]
    d = leaf(1.0, 2.0, 3.0)
    d[gt.tensor([0, 0, 2], dtype=gt.int64)].sum().backward()
    assert d.grad.tolist() == [2, 0, 1]


def test_gradients_of_an_assignment_to_an_index():
    a, b = leaf(1.0, 2.0, 3.0), leaf(5.0)
    x = a * 2
    x[1:2] = b
    (x * x).sum().backward()
    assert a.grad.tolist() == [8, 0, 24] and b.grad.tolist() == [10]


def test_shapes_and_errors_of_backward():
    a = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="single number"):
        (a * 2).backward()
    with pytest.raises(ValueError, match="shape"):
        (a * 2).backward(gt.ones(3))
    with pytest.raises(RuntimeError, match="requires_grad"):
        gt.ones(1).backward()
    with pytest.raises(RuntimeError, match="allow_unused"):
        gt.autograd.grad((a * 2).sum(), leaf(1.0))


def test_long_chains_do_not_overflow():
    a = leaf(1.0)
    x = a
    for _ in range(20_000):
        x = x + 1
    x.sum().backward()
    assert a.grad.tolist() == [1]
    y = a
    for _ in range(50_000):
        y = y * 1
    del y


def test_threads_have_their_own_mode():
    seen = []
    with gt.no_grad():
        thread = threading.Thread(target=lambda: seen.append(gt.is_grad_enabled()))
        thread.start()
        thread.join()
        assert not gt.is_grad_enabled()
    assert seen == [True]


def test_gradients_of_a_network_by_finite_differences():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(5, 4)), random.integers(0, 3, 5)
    w = random.normal(size=(4, 3))

    def loss(weights):
        logits = gt.tensor(x) @ weights
        normal = (logits - logits.mean(1, True)) / (
            logits.var(1, keepdims=True, correction=0) + 1e-5
        ).sqrt()
        return gt.nn.cross_entropy_loss(normal, gt.tensor(y))

    weights = gt.tensor(w, requires_grad=True)
    loss(weights).backward()
    for place in [(0, 0), (3, 2), (1, 1)]:
        step = np.zeros_like(w)
        step[place] = 1e-6
        want = (loss(gt.tensor(w + step)).item() - loss(gt.tensor(w - step)).item()) / 2e-6
        assert abs(weights.grad.numpy()[place] - want) < 1e-6


def test_grad_returns_gradients_of_inputs():
    a, b = leaf(1.0, 2.0), leaf(3.0)
    loss = (a * b).sum()
    grads = gt.autograd.grad(loss, [a, b], retain_graph=True)
    assert [g.tolist() for g in grads] == [[3, 3], [3]] and a.grad is None and b.grad is None
    (given,) = gt.autograd.grad(a * 2, a, gt.tensor([1.0, 10.0]))
    assert given.tolist() == [2, 20]
    assert gt.autograd.grad(loss, [a, leaf(1.0)], allow_unused=True)[1] is None
    hidden = a * 2
    (middle,) = gt.autograd.grad((hidden * hidden).sum(), hidden)
    assert middle.tolist() == [4, 8], "not only of leaves"


def test_backward_with_given_gradients_accumulates_in_leaves():
    a = leaf(2.0)
    for _ in range(3):
        (a * a).backward(gt.tensor([0.5]))
    assert a.grad.tolist() == [6]
    assert not a.grad.requires_grad and a.grad.is_leaf


def test_gradients_have_the_dtype_and_shape_of_their_leaf():
    x = gt.ones(2, 1, dtype="float64", requires_grad=True)
    y = gt.ones(3, dtype="float32", requires_grad=True)
    z = gt.tensor(2.0, requires_grad=True)
    (x * y * z * gt.arange(3)).sum().backward()
    assert (x.grad.dtype, x.grad.shape) == (gt.float64, (2, 1))
    assert (y.grad.dtype, y.grad.shape) == (gt.float32, (3,))
    assert (z.grad.dtype, z.grad.shape, z.grad.item()) == (gt.float32, (), 6)


def test_backward_uses_the_values_before_an_in_place_change():
    a = leaf(2.0)
    x = a * 3
    product = x * x
    x += 100
    product.sum().backward()
    assert a.grad.tolist() == [36]
    b = leaf(2.0)
    y = b * 1
    y *= y
    y += b
    y.sum().backward()
    assert b.grad.tolist() == [5]


def test_a_detached_tensor_shares_memory_and_no_history():
    a = leaf(1.0)
    with gt.no_grad():
        free = a.detach()
        a += 1
    assert free.tolist() == [2] and not free.requires_grad and free.is_leaf
    assert a.data.tolist() == [2] and not a.data.requires_grad
    a.data = gt.tensor([7.0])
    assert a.tolist() == [7] and a.requires_grad and a.is_leaf
    assert a.clone().requires_grad and not a.clone().is_leaf


def test_modes_nest_and_survive_errors():
    with pytest.raises(ZeroDivisionError), gt.no_grad():
        with gt.enable_grad():
            assert gt.is_grad_enabled()
        assert not gt.is_grad_enabled()
        raise ZeroDivisionError
    assert gt.is_grad_enabled()
    with gt.set_grad_enabled(False):
        assert not gt.is_grad_enabled()
    assert gt.is_grad_enabled()


def test_a_mode_decorates_a_function_alone():
    @gt.set_grad_enabled(False)
    def recorded():
        return gt.is_grad_enabled()

    assert gt.is_grad_enabled()
    assert not recorded()
    assert not recorded()
    assert gt.is_grad_enabled()


def test_threads_differentiate_concurrently():
    shared, failures = leaf(*range(10)), []

    def work(number):
        try:
            for _ in range(20):
                (grad,) = gt.autograd.grad((shared * shared * number).sum(), shared)
                assert grad.tolist() == [2.0 * number * k for k in range(10)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and shared.grad is None


def test_wide_and_shared_graphs():
    """The graph has 2^60 paths, but the backward pass visits each operation once."""
    a = leaf(1.0)
    x = a
    for _ in range(60):
        x = x + x
    x.sum().backward()
    assert a.grad.tolist() == [2.0**60]
    b = leaf(1.0)
    sum(b * k for k in range(500)).sum().backward()
    assert b.grad.tolist() == [sum(range(500))]


def test_gradients_of_several_outputs_depend_on_the_given_gradients():
    """The result is differentiable by given gradients, which are constants in the first pass."""
    a, weight = leaf(1.0, 2.0), leaf(3.0, 5.0)
    outputs = [a * a, a * 2]
    (first,) = gt.autograd.grad(outputs, a, [weight, weight * a], create_graph=True)
    assert first.tolist() == [2 * 3 + 2 * 3, 2 * 2 * 5 + 2 * 5 * 2]
    by_a, by_weight = gt.autograd.grad(first.sum(), [a, weight])
    assert by_a.tolist() == [2 * 3 + 2 * 3, 2 * 5 + 2 * 5]
    assert by_weight.tolist() == [2 + 2, 4 + 4]
    with pytest.raises(RuntimeError, match="does not depend on any"):
        gt.autograd.grad([a * a, gt.ones(2)], a, [gt.ones(2), gt.ones(2)])


VALUES = [[2.0, 0.3, -0.1], [0.4, 3.0, 0.2], [0.5, -0.6, 4.0]]


def at_zero(which):
    """Return a tensor whose subtraction makes columns of VALUES zero."""
    return gt.tensor(np.array(VALUES) * which)


@pytest.mark.parametrize(
    "function",
    [
        gt.linalg.inv,
        gt.linalg.det,
        lambda x: gt.linalg.eigh(x + x.mT)[0],
        lambda x: gt.linalg.qr(x)[1],
        lambda x: (x - at_zero([0, 1, 0])).prod(1),
        lambda x: (x - at_zero([1, 1, 0])).prod(1),
        lambda x: (x - at_zero([1, 1, 1])).prod(1),
        lambda x: (x - at_zero([0, 1, 0])).cumprod(1),
        lambda x: (x - at_zero([1, 0, 1])).cumprod(1),
        lambda x: (x - at_zero([1, 1, 1])).cumprod(1),
    ],
)
def test_gradients_of_gradients_by_finite_differences(function):
    """Also of results that an operation saves, and of products at zeros."""
    at = np.array(VALUES)
    step, direction = 1e-6, np.arange(1.0, 10.0).reshape(3, 3)

    def curved(y):
        return (y * y + y * gt.arange(y.numel()).reshape(y.shape)).sum()

    def slope(values, create_graph=False):
        x = gt.tensor(values, requires_grad=True)
        (grad,) = gt.autograd.grad(curved(function(x)), x, create_graph=create_graph)
        return x, grad

    x, first = slope(at, create_graph=True)
    (got,) = gt.autograd.grad((first * gt.tensor(direction)).sum(), x)
    above, below = (slope(at + sign * step * direction)[1].numpy() for sign in (1, -1))
    np.testing.assert_allclose(got.numpy(), (above - below) / (2 * step), rtol=1e-4, atol=1e-5)


def test_a_backward_pass_of_a_long_graph_waits_for_credit():
    """A backward pass waits for room in the window, as every instruction does; frees do not."""
    x = y = gt.ones(4, requires_grad=True)
    for _ in range(150_000):
        y = y * 1.0
    y.sum().backward()
    assert x.grad.tolist() == [1] * 4
    kept = [x.detach() + number for number in range(150_000)]
    del kept, y
    assert x.sum().item() == 4
