"""Every operation mapped by vmap returns the stacked results of single calls."""

import functools

import gt
import numpy as np
import pytest
from gt.engines.check.samples import CASES, OPERATIONS, inputs
from primitives import apply, to_gt
from processes import unsharded_only

SIZE = 3
#: The count of values is an attribute, so each example of a batch would have to select as many.
COUNTED = {"nonzero", "masked_rows", "masked_rows_scatter"}
DRAWN = {"rand", "randn", "randint", "draw_poisson", "draw_binomial"}
#: The signs of factors are arbitrary, and so are those of their gradients.
FREE = {"_linalg_svd", "_linalg_eigh", "_linalg_eig", "_linalg_geqrf"}
UNDERIVED = {
    "_linalg_geqrf",
    "_linalg_ldl_factor",
    "_linalg_ldl_solve",
    "igamma",
    "igammac",
    "zeta",
}
#: `further` returns another result of an operation, and cannot be called alone.
MAPPED = sorted(set(OPERATIONS) - DRAWN - {"further"})
HALF = {gt.float16, gt.bfloat16}


def same(got, want):
    """Compare results of one tensor or several."""
    if isinstance(want, (tuple, list)):
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    half = got.dtype in HALF
    got, want = (tensor.float() if half else tensor for tensor in (got, want))
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if half else {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(got.numpy(), want.numpy(), **tolerance)


def stacked(results):
    """Return the stacked results of single calls."""
    if isinstance(results[0], (tuple, list)):
        return [gt.stack(list(parts)) for parts in zip(*results, strict=True)]
    return gt.stack(list(results))


def patterns(name, tensors):
    """Return which operands to map over: all of them, then each one alone."""
    if name in COUNTED:
        return [[place == 0 for place in tensors]] if name != "nonzero" else []
    alone = [[place == one for place in tensors] for one in tensors] if len(tensors) > 1 else []
    return [[True] * len(tensors), *alone]


@unsharded_only
@pytest.mark.parametrize("name", MAPPED)
def test_mapped_operation(name):
    for index in (index for other, index in CASES if other == name):
        operands, dtypes, attributes = inputs(name, index)
        tensors = [place for place, dtype in enumerate(dtypes) if dtype is not None]
        if not tensors:
            continue
        batch = [[to_gt(*pair) for pair in zip(operands, dtypes, strict=True)]]
        for shift in range(1, SIZE):
            batch.append(
                [
                    one if place not in tensors else shifted(one, shift)
                    for place, one in enumerate(batch[0])
                ]
            )
        for pattern in patterns(name, tensors):
            for axis in (0, -1):
                check(name, batch, tensors, pattern, attributes, axis)


def shifted(tensor, shift):
    """Return the tensor's values in another order, which keeps their range."""
    if tensor.dtype is gt.bool or tensor.numel() == 0:
        return tensor
    return tensor.reshape(-1).roll(shift).reshape(tensor.shape)


def check(name, batch, tensors, pattern, attributes, axis):
    def call(*given):
        operands = list(batch[0])
        for place, tensor in zip(tensors, given, strict=True):
            operands[place] = tensor
        return apply(name, operands, **attributes)

    mapped, dims, singles = [], [], [[] for _ in batch]
    for place, is_mapped in zip(tensors, pattern, strict=True):
        for single, operands in zip(singles, batch, strict=True):
            single.append(operands[place] if is_mapped else batch[0][place])
        whole = gt.stack([operands[place] for operands in batch]).movedim(0, axis)
        mapped.append(whole if is_mapped else batch[0][place])
        dims.append(axis if is_mapped else None)
    want = stacked([call(*single) for single in singles])
    same(gt.vmap(call, in_dims=tuple(dims))(*mapped), want)


DIFFERENTIABLE = sorted(
    name
    for name, operation in OPERATIONS.items()
    if operation["differentiable"] and name not in FREE | UNDERIVED | COUNTED
)


@unsharded_only
@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_mapped_gradient(name):
    for index in (index for other, index in CASES if other == name):
        operands, dtypes, attributes = inputs(name, index)
        places = [place for place, dtype in enumerate(dtypes) if dtype == "float32"]
        if not places or attributes.get("dtype") not in (None, "float32"):
            continue
        first = [to_gt(*pair) for pair in zip(operands, dtypes, strict=True)]
        whole = [gt.stack([shifted(first[p], shift) for shift in range(SIZE)]) for p in places]
        loss = functools.partial(_loss, name, first, places, attributes)
        gradient = gt.func.grad(loss, argnums=tuple(range(len(places))))
        want = stacked([gradient(*(tensor[at] for tensor in whole)) for at in range(SIZE)])
        same(gt.vmap(gradient)(*whole), want)
        # The reverse: gradients through vmap, including an operand that is not mapped.
        first_alone = (None, *[0] * (len(places) - 1)) if len(places) > 1 else (0,)

        def total(*given, loss=loss, dims=first_alone):
            return gt.vmap(loss, in_dims=dims)(*given).sum()

        given = [whole[0][0] if first_alone[0] is None else whole[0], *whole[1:]]
        got = gt.func.grad(total, argnums=tuple(range(len(places))))(*given)
        singles = [
            gradient(
                *(
                    tensor if dim is None else tensor[at]
                    for tensor, dim in zip(given, first_alone, strict=True)
                )
            )
            for at in range(SIZE)
        ]
        want = stacked(singles)
        want = [w.sum(0) if dim is None else w for w, dim in zip(want, first_alone, strict=True)]
        same(got, want)
        return


def _loss(name, operands, places, attributes, *given):
    operands = list(operands)
    for place, tensor in zip(places, given, strict=True):
        operands[place] = tensor
    result = apply(name, operands, **attributes)
    result = result[0] if isinstance(result, (tuple, list)) else result
    return (result.abs() if result.dtype.is_complex else result).sin().sum()


@pytest.mark.parametrize("draw", [lambda x: gt.rand(4) + x, lambda x: gt.poisson(x)])
def test_random_numbers_as_told(draw):
    x = gt.full((3, 4), 20.0)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        gt.vmap(draw)(x)
    different = gt.vmap(draw, randomness="different")(x).numpy()
    assert different.shape == (3, 4)
    assert not (different[0] == different[1]).all()


def test_the_same_random_numbers_for_all():
    same_for_all = gt.vmap(lambda x: gt.rand(4) + x, randomness="same")(gt.zeros(3)).numpy()
    assert (same_for_all[0] == same_for_all[1]).all()
    nested = gt.vmap(
        gt.vmap(lambda x: gt.rand(2) + x, randomness="different"), randomness="different"
    )(gt.zeros(2, 3))
    assert nested.shape == (2, 3, 2) and len(set(nested.numpy().ravel())) == 12
