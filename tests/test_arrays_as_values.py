"""Arrays of NumPy's and PyTorch's tensors as values: assigned, as gradients, and converted."""

import warnings

import gt
import numpy as np
import pytest

torch = pytest.importorskip("torch")

VALUES = np.array([1.0, 2.0, 3.0], "float32")
KINDS = pytest.mark.parametrize("kind", [np.array, torch.tensor, gt.tensor])


@KINDS
def test_copy_takes_arrays(kind):
    assert gt.zeros(3).copy_(kind(VALUES)).tolist() == [1, 2, 3]
    assert gt.zeros(2, 3, dtype=gt.int64).copy_(kind(VALUES)).tolist() == [[1, 2, 3]] * 2


@KINDS
def test_backward_takes_arrays(kind):
    x = gt.ones(3, requires_grad=True)
    (x * 2).backward(kind(VALUES))
    y = torch.ones(3, requires_grad=True)
    (y * 2).backward(torch.tensor(VALUES))
    assert x.grad.tolist() == y.grad.tolist()


@pytest.mark.parametrize("given", ["a", {}, object()])
def test_other_objects_are_named(given):
    x = gt.ones(3, requires_grad=True)
    with pytest.raises(
        TypeError, match=f"expected a tensor or an array, not {type(given).__name__}"
    ):
        gt.zeros(3).copy_(given)
    with pytest.raises(TypeError, match="expected a tensor or an array"):
        (x * 2).backward(given)


class Labelled(torch.Tensor):
    """A user's subclass."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(VALUES, requires_grad=True),
        lambda: torch.nn.Parameter(torch.tensor(VALUES)),
        lambda: torch.tensor(VALUES).as_subclass(Labelled).requires_grad_(),
    ],
)
def test_a_tensor_that_requires_grad_is_detached_with_a_warning(make):
    with pytest.warns(UserWarning, match="use detach"):
        made = gt.tensor(make())
    assert made.tolist() == [1, 2, 3] and not made.requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gt.tensor(make().detach()).tolist() == [1, 2, 3]


def test_views_that_numpy_cannot_read_are_resolved():
    z = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert gt.tensor(z).tolist() == z.tolist()
    assert gt.tensor(z.imag).tolist() == z.imag.tolist()


def test_tensors_without_plain_values_are_refused():
    with pytest.raises(TypeError, match="meta has no values"):
        gt.tensor(torch.ones(2, device="meta"))
    with pytest.raises(TypeError, match="to_dense"):
        gt.tensor(torch.ones(2).to_sparse())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    with pytest.raises(TypeError, match=r"dequantize\(\)"):
        gt.tensor(quantized)


def test_a_masked_array_is_refused():
    masked = np.ma.masked_array(VALUES, [0, 1, 0])
    for use in (gt.tensor, lambda given: gt.ones(3) + given, gt.zeros(3).copy_):
        with pytest.raises(TypeError, match=r"\.filled\(value\)"):
            use(masked)
    assert gt.tensor(masked.filled(0)).tolist() == [1, 0, 3]
