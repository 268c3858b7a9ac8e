"""float16 and bfloat16 beside PyTorch's: sums are kept in float32 and rounded once."""

import gt
import pytest
from pytorch import check, draw, to_gt, torch

HALVES = ("float16", "bfloat16")


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "name", "sum mean prod var std amax logsumexp softmax log_softmax cumsum".split()
)
def test_along_an_axis(name, dtype):
    for shape, axis in [((3, 40), 1), ((40, 3), 0), ((2, 5, 7), 1)]:
        x = draw(1, *shape, dtype=dtype, low=-1.5, high=1.5)
        scale = 4 if name in ("prod", "cumsum") else 1
        check(getattr(to_gt(x), name)(axis), getattr(x, name)(axis), (name, dtype, shape), scale)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", "exp log1p sqrt sigmoid tanh sin erf".split())
def test_elementwise(name, dtype):
    x = draw(1, 200, dtype=dtype, low=0, high=5)
    check(getattr(to_gt(x), name)(), getattr(x, name)(), (name, dtype))


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", "gelu silu softplus".split())
def test_activations(name, dtype):
    x = draw(1, 200, dtype=dtype)
    check(getattr(to_gt(x), name)(), getattr(torch.nn.functional, name)(x), (name, dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_what_lies_between_may_exceed_the_range(dtype):
    """Intermediate sums above 65504 do not make a mean or variance infinite."""
    x = (torch.arange(100) + 1000).to(getattr(torch, dtype))
    for name in ("mean", "var", "std"):
        check(getattr(to_gt(x), name)(), getattr(x, name)(), (name, dtype))
    many = torch.full((3000,), 30.0, dtype=getattr(torch, dtype))
    check(to_gt(many).mean(), many.mean(), "mean")
    a, b = many.reshape(1, -1), many.reshape(-1, 1) * 0.01
    check(to_gt(a) @ to_gt(b), a @ b, "matmul")


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients(dtype):
    x, w = (draw(n, 6, 6, dtype=dtype).requires_grad_() for n in (1, 2))
    ours = to_gt([x, w])
    ((x @ w).tanh().mean(0) * 3).sum().backward()
    ((ours[0] @ ours[1]).tanh().mean(0) * 3).sum().backward()
    check(ours[0].grad, x.grad, dtype, 3)
    check(ours[1].grad, w.grad, dtype, 3)


def test_a_mixed_program_keeps_the_leafs_dtypes():
    for dtype in HALVES:
        x = gt.ones(3, dtype=dtype, requires_grad=True)
        (x * gt.ones(3) * 2).sum().backward()
        assert x.grad.dtype == dtype and x.grad.tolist() == [2, 2, 2]
