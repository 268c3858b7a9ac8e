"""Fetched values: NumPy arrays, and the elements of an iteration over a tensor."""

import gc

import gt
import numpy as np
import pytest

DTYPES = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_asarray_is_read_only_and_has_the_values(dtype):
    want = (np.arange(600) % 7).astype(dtype).reshape(20, 30)
    x = gt.from_numpy(want) + gt.zeros(20, 30, dtype=getattr(gt, dtype))
    array = np.asarray(x)
    assert array.dtype == want.dtype and (array == want).all()
    assert not array.flags.writeable
    assert (np.asarray(x.T) == want.T).all()
    assert np.asarray(x[:0]).shape == (0, 30)
    assert np.asarray(x[3, 4]).shape == ()


def test_asarray_keeps_its_values():
    """Neither changes of the tensor nor its end affect the array."""
    x = gt.arange(1 << 16)
    array = np.asarray(x)
    x += 1
    x.mul_(3)
    assert (array == np.arange(1 << 16)).all()
    assert x[1].item() == 6
    del x
    gc.collect()
    for _ in range(10):
        gt.full((1 << 16,), 7).sum().item()
    assert (array == np.arange(1 << 16)).all()


def test_copies_may_be_written():
    """`numpy()` and `np.array` copy."""
    x = gt.zeros(3)
    for array in (x.numpy(), np.array(x), x.__array__(copy=True)):
        array[0] = 1.0
    assert x.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.skipif(np.__version__.startswith("1."), reason="`copy` is an argument of NumPy 2")
def test_copy_and_dtype_are_as_numpy_2_defines():
    """`copy=False` raises if a copy is needed."""
    x = gt.ones(3)
    assert not np.asarray(x, copy=False).flags.writeable
    assert np.asarray(x, dtype="float64").dtype == np.float64
    assert np.asarray(x, dtype="float32").dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x, dtype="float64", copy=False)
    half = x.to(gt.bfloat16)
    assert np.asarray(half).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(half, copy=False)


def test_tensors_that_require_gradients_are_not_converted():
    """As in PyTorch."""
    x = gt.ones(3, requires_grad=True)
    for take in (lambda: x.numpy(), lambda: np.asarray(x), lambda: (x * 2).numpy()):
        with pytest.raises(RuntimeError, match="Use tensor.detach\\(\\).numpy\\(\\) instead"):
            take()
    with pytest.raises(BufferError, match="require gradient"):
        x.__dlpack__()
    assert x.detach().numpy().tolist() == x.numpy(force=True).tolist() == [1.0, 1.0, 1.0]
    assert x.tolist() == [1.0, 1.0, 1.0] and x[0].item() == 1.0


def test_iterating_yields_the_values():
    """Over several blocks, and for a view."""
    values = np.arange(3000, dtype="float32")
    x = gt.from_numpy(values)
    assert [float(v) for v in x] == values.tolist()
    assert [int(v) for v in x[::2]] == values[::2].tolist()
    assert [v.item() for v in gt.tensor([True, False])] == [True, False]
    assert [complex(v) for v in gt.tensor([1j, 2.0])] == [1j, 2]
    assert list(gt.zeros(0)) == []


def test_elements_are_operands():
    """Before and after their values are fetched."""
    x = gt.arange(5)
    assert sum(x).item() == 10
    elements = list(x)
    assert int(elements[3]) == 3
    assert (elements[3] * elements[4] + elements[0]).item() == 12
    assert gt.stack(elements[::-1]).tolist() == [4, 3, 2, 1, 0]
    assert elements[2].shape == () and elements[2].dtype == gt.int64


def test_elements_are_views():
    """Writes to the tensor change elements and the other way round, as in PyTorch."""
    x = gt.zeros(4)
    seen = []
    for place, v in enumerate(x):
        seen.append(float(v))
        x[place:] += 1.0
        seen.append(float(v))
    assert seen == [0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]
    first, second, *_ = x
    assert float(first) == 1.0
    second.fill_(9.0)
    assert x.tolist() == [1.0, 9.0, 3.0, 4.0] and float(second) == 9.0
    rows = gt.zeros(2, 3)
    for v in rows[1]:
        v += 2
    assert rows.tolist() == [[0.0] * 3, [2.0] * 3]


def test_elements_of_a_tensor_that_requires_gradients_are_differentiable():
    x = gt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    total = gt.zeros(())
    for v in x:
        assert v.requires_grad
        total = total + float(v) * v
    total.backward()
    assert x.grad.tolist() == [1.0, 2.0, 3.0]
    with gt.no_grad():
        assert not any(v.requires_grad for v in x)


def test_elements_of_a_failed_tensor_raise_at_the_fetch():
    elements = list(gt.zeros(3).index_select(0, gt.tensor([1, 7], dtype=gt.int64)))
    for element in elements:
        with pytest.raises(gt.WorkerError):
            float(element)


def test_elements_of_a_closed_session_raise():
    """Also those whose values were fetched."""
    with gt.Session(workers=1):
        first, second = gt.ones(2)
        assert float(first) == 1.0
    for element in (first, second):
        with pytest.raises((gt.WorkerError, ConnectionError, RuntimeError)):
            float(element)
