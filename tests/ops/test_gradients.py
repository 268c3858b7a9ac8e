"""Every differentiable operation on every sample: gradients by central differences."""

import gt
import numpy as np
import pytest
from gt.engines.check.samples import CASES, OPERATIONS, inputs
from primitives import apply, to_gt

#: Only for complex numbers, whose gradients are tested in test_complex.py and test_linalg.py.
COMPLEX = {"_fft_c2c", "_fft_c2r", "view_as_real", "_linalg_eig"}
#: The signs of vectors are arbitrary, so differences may jump; test_linalg.py compares products.
FREE = {"_linalg_svd"}
#: Declared differentiable, but without a gradient rule.
UNDERIVED = {"_linalg_geqrf", "_linalg_ldl_factor", "_linalg_ldl_solve"}
DIFFERENTIABLE = sorted(
    {name for name, op in OPERATIONS.items() if op["differentiable"]} - COMPLEX - FREE - UNDERIVED
)
STEP = 1e-6
#: Step functions, for which finite differences are meaningless.
NO_DIFFERENCES = {"sign", "floor", "ceil", "round"}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradient(name):
    tried = []
    for index in (index for other, index in CASES if other == name):
        operands, dtypes, attributes = inputs(name, index, in_float64=True)
        if "float64" not in dtypes:
            continue
        # Differences of rounded values are meaningless.
        if "dtype" in attributes and attributes["dtype"] != "float64":
            continue
        # In float64 many samples are the same.
        shapes = [np.shape(operand) for operand in operands]
        if (dtypes, shapes, attributes) not in tried:
            check(name, operands, dtypes, attributes, index)
            tried.append((dtypes, shapes, attributes))
    assert tried, "no sample in a float dtype"


def first(results):
    """Return the first of several results, which is the one with a gradient."""
    return results[0] if isinstance(results, tuple) else results


def check(name, operands, dtypes, attributes, index):
    tensors = [to_gt(o, d) for o, d in zip(operands, dtypes, strict=True)]
    underived = OPERATIONS[name]["underived"]
    wanted = [None if underived >> place & 1 else of for place, of in enumerate(dtypes)]
    for tensor, dtype in zip(tensors, wanted, strict=True):
        if dtype == "float64":
            tensor.requires_grad_()
    if "float64" not in wanted:
        return
    result = first(apply(name, tensors, **attributes))
    if result.dtype.name != "float64":
        result = result.double() if result.requires_grad else result
    weight = np.random.default_rng(index).uniform(0.5, 1.5, result.shape)
    assert result.requires_grad, (name, index)
    result.backward(gt.tensor(weight, dtype="float64"))

    def value(arrays):
        again = [to_gt(o, d) for o, d in zip(arrays, dtypes, strict=True)]
        return (first(apply(name, again, **attributes)).double().numpy() * weight).sum()

    for number, dtype in enumerate(wanted):
        if dtype != "float64":
            continue
        got = tensors[number].grad
        if operands[number].size == 0:
            continue
        assert got is not None and got.shape == operands[number].shape
        if name in NO_DIFFERENCES:
            assert (got.numpy() == 0).all()
            continue
        want = np.zeros(operands[number].shape)
        # About a dozen elements suffice, as the rule is the same for all.
        places = list(np.ndindex(*want.shape))
        places = places[:: max(1, len(places) // 12)]
        for place in places:
            sides = []
            for sign in (1, -1):
                moved = [np.array(o) if d else o for o, d in zip(operands, dtypes, strict=True)]
                moved[number] = moved[number].astype("float64")
                moved[number][place] += sign * STEP
                sides.append(value(moved))
            want[place] = (sides[0] - sides[1]) / (2 * STEP)
        for place in places:
            np.testing.assert_allclose(
                got.numpy()[place],
                want[place],
                rtol=2e-4,
                atol=2e-5,
                err_msg=str((name, index, number, place, attributes)),
            )


def test_second_derivatives():
    for function, second in [
        (lambda x: x.exp(), np.exp),
        (lambda x: x * x * x, lambda x: 6 * x),
        (lambda x: x.tanh(), lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)),
    ]:
        x = gt.tensor([0.3, -0.7, 1.1], dtype="float64", requires_grad=True)
        (first,) = gt.autograd.grad(function(x).sum(), x, create_graph=True)
        (got,) = gt.autograd.grad(first.sum(), x)
        np.testing.assert_allclose(got.numpy(), second(x.detach().numpy()), rtol=1e-9)
