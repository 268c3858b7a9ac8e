"""opt_einsum contracts tensors: it finds `tensordot`, `transpose` and `einsum` in `gt`."""

import gt
import numpy as np
import pytest

opt_einsum = pytest.importorskip("opt_einsum", reason="opt_einsum is not installed: make test-all")

CASES = [
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,kj->", (2, 3), (4, 3)),
    ("ijk->kji", (2, 3, 4)),
    ("bij,bjk,bkl->bil", (5, 2, 3), (5, 3, 4), (5, 4, 2)),
    ("...ij,...jk->...ik", (5, 2, 3), (5, 3, 4)),
    ("ii,ij->j", (3, 3), (3, 2)),
    ("αβ,βγ->αγ", (2, 3), (3, 2)),
]


def operands(*shapes):
    draw = np.random.default_rng(0)
    return [draw.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("equation, shapes", [(case[0], case[1:]) for case in CASES])
def test_contractions_are_those_of_arrays(equation, shapes):
    arrays = operands(*shapes)
    found = opt_einsum.contract(equation, *map(gt.tensor, arrays))
    assert isinstance(found, gt.Tensor)
    expected = opt_einsum.contract(equation, *arrays)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_expressions_with_constants():
    first, *others = operands((2, 3), (3, 4), (4, 2))
    expression = opt_einsum.contract_expression(
        "ij,jk,kl->il", gt.tensor(first), (3, 4), (4, 2), constants=[0]
    )
    found = expression(*map(gt.tensor, others))
    np.testing.assert_allclose(found.numpy(), first @ others[0] @ others[1], rtol=1e-4, atol=1e-5)


def test_gradients_flow():
    first, second, third = map(gt.tensor, operands((2, 3), (3, 4), (4, 5)))
    second.requires_grad_()
    opt_einsum.contract("ij,jk,kl->", first, second, third).backward()
    expected = np.outer(first.numpy().sum(0), third.numpy().sum(1))
    np.testing.assert_allclose(second.grad.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_axes_are_named_as_in_numpy():
    a, b = operands((2, 3, 4), (4, 3, 5))
    found = gt.tensordot(gt.tensor(a), gt.tensor(b), axes=([1, 2], [1, 0]))
    np.testing.assert_allclose(found.numpy(), np.tensordot(a, b, ([1, 2], [1, 0])), rtol=1e-4)
    assert gt.transpose(gt.tensor(a), axes=(2, 0, 1)).shape == (4, 2, 3)
    assert gt.tensor(a).transpose([1, 0, 2]).shape == (3, 2, 4)
    with pytest.raises(TypeError, match=r"dim0 must be an int beside dim1, not tuple \(0, 1\)"):
        gt.transpose(gt.tensor(a), (0, 1), 2)
