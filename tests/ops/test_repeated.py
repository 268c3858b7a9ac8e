"""Results on expanded tensors, and reductions with a cast, have the same bits as on copies."""

import gt
import numpy as np
import pytest
from processes import embedded_only, one_engine_only, run_python, unsharded_only

# Sharded sums of 16-bit floats have 16-bit partial sums.
pytestmark = [embedded_only, one_engine_only, unsharded_only]

#: The stored and the expanded shape of each kind; the engine does not materialize the expanded one.
EXPANDED = {
    "all": ((1, 1, 1), (7, 900, 210)),
    "first": ((1, 900, 700), (3, 900, 700)),
    "middle": ((3, 1, 700), (3, 900, 700)),
    "last": ((3, 900, 1), (3, 900, 700)),
    "outer": ((1, 700, 1), (3, 700, 900)),
    "wide": ((1, 1, 1100), (2, 600, 1100)),
    "one more": ((1, 700, 513), (2, 700, 513)),
}
REDUCTIONS = [
    *("sum", "prod", "mean", "amax", "amin", "max", "min", "any", "all", "argmax", "argmin"),
    *("var", "std", "logsumexp", "norm", "count_nonzero", "nansum"),
]
AXES = [None, 0, 1, 2]


def reduced(x: gt.Tensor, name: str, axis: int | None) -> list[np.ndarray]:
    if axis is None:
        made = x.logsumexp((0, 1, 2)) if name == "logsumexp" else getattr(x, name)()
    else:
        made = getattr(x, name)(dim=axis)
    return [part.numpy() for part in (made if isinstance(made, tuple) else (made,))]


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    drawn = np.random.default_rng(0).normal(size=shape) * 3
    drawn.flat[::7] = 0
    return drawn.astype(dtype) if dtype != "bool" else drawn > 1


def whole(x: np.ndarray, shape: tuple[int, ...]) -> gt.Tensor:
    return gt.from_numpy(np.ascontiguousarray(np.broadcast_to(x, shape)))


def same_bits(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("kind", EXPANDED)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_expanded_tensors_have_the_bits_of_copies(name, kind):
    few, shape = EXPANDED[kind]
    for dtype in ("float32", "int32", "bool"):
        if dtype != "float32" and name in ("mean", "var", "std", "logsumexp", "norm", "nansum"):
            continue
        if dtype == "bool" and name in ("max", "min", "amax", "amin", "argmax", "argmin"):
            continue
        given = numbers(few, dtype)
        expanded, copied = gt.from_numpy(given).expand(shape), whole(given, shape)
        for axis in AXES:
            got, want = reduced(expanded, name, axis), reduced(copied, name, axis)
            assert same_bits(got, want), (name, kind, dtype, axis)


@pytest.mark.parametrize("kind", EXPANDED)
def test_what_goes_element_by_element_repeats_what_all_operands_do(kind):
    few, shape = EXPANDED[kind]
    given, other = numbers(few, "float32"), numbers((1, 1, shape[2]), "float32")
    results = []
    for x, y in (
        (gt.from_numpy(given).expand(shape), gt.from_numpy(other).expand(shape)),
        (whole(given, shape), whole(other, shape)),
    ):
        mask = (x > 0) & (y < 1)
        made = [x + 1, x * y, -x, gt.where(mask, x, y), x.clamp(-1, 1), x.to(gt.float16), mask]
        made += [
            (x - x.mean()).exp(),
            (x + 1).reshape(-1, shape[2]),
            (x + 1).permute(2, 0, 1) @ y[0, :, :9],
        ]
        total = x.requires_grad_()
        (total * total).sum().backward()
        results.append([part.numpy() for part in [*made, total.grad]])
    assert same_bits(*results)


@pytest.mark.parametrize(
    "shape", [(1_100_003,), (3, 500, 811), (900, 3, 500), (2, 600, 1100), (1000, 513), (90_000, 4)]
)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "bfloat16"])
def test_what_is_cast_as_it_is_folded_has_the_bits_of_a_cast_before(shape, dtype):
    dtype = getattr(gt, dtype)
    x = gt.from_numpy(numbers(shape, "float32")).clamp(-100, 100).abs().to(dtype)
    is_float = dtype.is_floating_point
    wide = x.to(gt.float32 if is_float else gt.int64)
    for axis in [None, *range(len(shape))]:
        want = [part.to(dtype) if is_float else part for part in [sums(wide, axis)]]
        assert same_bits([sums(x, axis).float().numpy()], [want[0].float().numpy()]), axis
        turned = x.permute(*reversed(range(len(shape))))
        last = None if axis is None else len(shape) - 1 - axis
        copied = turned.contiguous().clone()
        assert same_bits([sums(turned, last).float().numpy()], [sums(copied, last).float().numpy()])
        got = x.argmax() if axis is None else x.argmax(dim=axis)
        best = wide.float().argmax() if axis is None else wide.float().argmax(dim=axis)
        assert dtype == gt.bool or same_bits([got.numpy()], [best.numpy()])


def sums(x: gt.Tensor, axis: int | None) -> gt.Tensor:
    return x.sum() if axis is None else x.sum(dim=axis)


def test_much_that_is_repeated_takes_no_memory():
    """On a worker with 100 MB, although each of these tensors would need 1 GB."""
    code = """
import gt
x = gt.ones(1).expand(2**14, 2**14)
def show(*values): print(*(value.reshape(-1)[0].item() for value in values))
show(x.sum(), x.mean(1), x.var(0), x.std(), x.argmax(1), x.max(0)[0], x.any(), x.norm())
show((x * 2 + 1).sum(), x.logsumexp(0), (x > 0).sum(), x.count_nonzero(), (x / 3).half().amax())
show(gt.where(x > 0, x, 2).sum(), x.reshape(-1).sum(), (x + 1).reshape(2**10, -1).argmin())
y = gt.ones(1, requires_grad=True)
(y.expand(2**14, 2**14) ** 2).mean().backward()
show(y.grad)
mask = gt.ones(300_000_000 // 4, dtype=gt.bool)
show(mask.sum(), mask.all(), mask.any())
"""
    done = run_python(code, GT_MEMORY="100MB")
    assert done.stdout.splitlines() == [
        "268435456.0 1.0 0.0 0.0 0 1.0 True 16384.0",
        "805306368.0 10.704060554504395 268435456 268435456 0.333251953125",
        "268435456.0 268435456.0 0",
        "2.0",
        "75000000 True True",
    ], done
