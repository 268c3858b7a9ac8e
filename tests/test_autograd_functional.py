"""Jacobians, Hessians, their products and gradcheck, compared with PyTorch."""

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="pytorch: make test-all")

POINT = np.array([0.5, -1.0, 2.0])
DIRECTION = np.array([1.0, 2.0, -0.5])


def quadratic(x):
    return (x[:2] * x[1:]).outer(x)


def energy(x):
    return (x**3).sum() + x.prod()


def two_numbers(x, y):
    return (x * y).sum(), x.sin() + y.mean()


def mixed(x, y):
    return (x.exp() * y**2).sum()


def flat(given):
    return (
        [tensor for each in given for tensor in flat(each)] if isinstance(given, tuple) else [given]
    )


def same(call):
    """Compare the results of a call with GT and with PyTorch."""
    got, want = (flat(call(m)) for m in (gt, torch))
    assert [tuple(each.shape) for each in got] == [tuple(each.shape) for each in want]
    for one, other in zip(got, want, strict=True):
        assert not one.requires_grad
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-12)


def of(m, values):
    return m.from_numpy(values.copy())


CALLS = {
    "jacobian": lambda f, m: f.jacobian(quadratic, of(m, POINT)),
    "jacobian of two": lambda f, m: f.jacobian(two_numbers, (of(m, POINT), of(m, DIRECTION))),
    "hessian": lambda f, m: f.hessian(energy, of(m, POINT)),
    "hessian of two": lambda f, m: f.hessian(mixed, (of(m, POINT), of(m, DIRECTION))),
    "vjp": lambda f, m: f.vjp(lambda x: x.sin() * x, of(m, POINT), of(m, DIRECTION)),
    "vjp of a number": lambda f, m: f.vjp(energy, of(m, POINT)),
    "jvp": lambda f, m: f.jvp(quadratic, of(m, POINT), of(m, DIRECTION)),
    "jvp of two": lambda f, m: f.jvp(
        two_numbers, (of(m, POINT), of(m, DIRECTION)), (of(m, DIRECTION), of(m, POINT))
    ),
    "jvp of a constant": lambda f, m: f.jvp(lambda x: x.detach() * 2, of(m, POINT), of(m, POINT)),
    "hvp": lambda f, m: f.hvp(energy, of(m, POINT), of(m, DIRECTION)),
    "vhp of two": lambda f, m: f.vhp(
        mixed, (of(m, POINT), of(m, DIRECTION)), (of(m, DIRECTION), of(m, POINT))
    ),
    "hvp of a line": lambda f, m: f.hvp(lambda x: x.sum(), of(m, POINT), of(m, DIRECTION)),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_equal_those_of_pytorch(name):
    same(lambda m: CALLS[name](m.autograd.functional, m))


@pytest.mark.parametrize("m", [gt, torch])
def test_results_can_be_differentiated(m):
    x = of(m, POINT).requires_grad_()
    rows = m.autograd.functional.jacobian(lambda x: x**3, x, create_graph=True)
    (slopes,) = m.autograd.grad(rows.sum(), x)
    np.testing.assert_allclose(slopes.numpy(), 6 * POINT)


@pytest.mark.parametrize("m", [gt, torch])
def test_mistakes(m):
    f, x = m.autograd.functional, of(m, POINT)
    with pytest.raises(RuntimeError):
        f.vjp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError):
        f.vjp(lambda x: x * 2, x, x[:2])
    with pytest.raises(RuntimeError):
        f.hessian(lambda x: x * 2, x)
    with pytest.raises(RuntimeError):
        f.jacobian(lambda x, y: x * 2, (x, x), strict=True)
    with pytest.raises(TypeError):
        f.jacobian(lambda x: 3, x)


@pytest.mark.parametrize("m", [gt, torch])
def test_gradients_of_several_outputs(m):
    x = of(m, POINT).requires_grad_()
    weight = m.ones(3, dtype=m.float64, requires_grad=True)
    first, second = x.sin(), (x * x).sum()
    (slope,) = m.autograd.grad([first, second], x, [weight, None], create_graph=True)
    np.testing.assert_allclose(slope.detach().numpy(), np.cos(POINT) + 2 * POINT)
    # The result is differentiable by the given gradients, too.
    (back,) = m.autograd.grad(slope.sum(), weight, retain_graph=True)
    np.testing.assert_allclose(back.numpy(), np.cos(POINT))
    m.autograd.backward([first, second], [weight.detach(), None])
    np.testing.assert_allclose(x.grad.numpy(), np.cos(POINT) + 2 * POINT)


class WrongSquare(gt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * 2.1


def test_gradcheck():
    x = of(gt, POINT).requires_grad_()
    z = gt.tensor([1 + 2j, -0.5j], dtype=gt.complex128, requires_grad=True)
    assert gt.autograd.gradcheck(two_numbers, (x, of(gt, DIRECTION)))
    assert gt.autograd.gradcheck(lambda z: (z * z.conj() + z.exp(), z.abs()), z)
    assert gt.autograd.gradgradcheck(lambda x: x.sin() * x, x)
    assert gt.autograd.gradgradcheck(lambda z: z * z * z, z)


def test_gradcheck_finds_wrong_gradients():
    x = of(gt, POINT).requires_grad_()
    with pytest.raises(gt.autograd.GradcheckError, match="gradients of output 0 by input 0 differ"):
        gt.autograd.gradcheck(WrongSquare.apply, x)
    assert not gt.autograd.gradcheck(WrongSquare.apply, x, raise_exception=False)
    with pytest.raises(ValueError, match="none of the inputs"):
        gt.autograd.gradcheck(gt.sin, x.detach())
    with pytest.warns(UserWarning, match="float32"):
        gt.autograd.gradcheck(gt.sin, x.detach().float().requires_grad_(), eps=1e-3, atol=1e-2)
