"""Tensors as Python objects: creation, values, indexing, in-place forms, NumPy."""

import copy

import gt
import numpy as np
import pytest


def test_creation_and_default_dtypes():
    assert gt.tensor([1, 2]).dtype == gt.float32
    assert gt.tensor([True, False]).dtype == gt.bool
    assert gt.tensor([1, 2], dtype="int64").dtype == "int64"
    assert gt.tensor(np.arange(3, dtype="int16")).dtype == gt.int16
    assert gt.from_numpy(np.ones(2)).dtype == gt.float64
    assert gt.tensor(3.5).shape == ()
    assert gt.arange(3).dtype == gt.int64 and gt.arange(0, 1, 0.5).dtype == gt.float32
    assert gt.full((2,), 7).dtype == gt.int64
    assert gt.zeros(2, 3).shape == gt.zeros((2, 3)).shape == (2, 3)
    assert gt.tensor(np.zeros((2, 2))[::-1].T).tolist() == [[0, 0], [0, 0]]
    assert gt.tensor([1, 2], requires_grad=True).requires_grad
    with pytest.raises(TypeError, match="int64 does not fit, expected a float dtype"):
        gt.tensor([1, 2], dtype=gt.int64, requires_grad=True)
    assert gt.ones_like(gt.zeros(2, dtype=gt.int32)).dtype == gt.int32
    assert gt.tensor(np.array([1, 2], dtype=">f4")).tolist() == [1, 2]


def test_values_are_fetched():
    t = gt.tensor([[1, 2], [3, 4]])
    assert t.tolist() == [[1, 2], [3, 4]] and t[1, 0].item() == 3.0
    assert np.asarray(t).dtype == np.float32
    assert t.data.numpy().shape == (2, 2) and t.data.dtype == gt.float32
    assert len(t) == 2 and [row.tolist() for row in t] == [[1, 2], [3, 4]]
    assert float(t.sum()) == 10 and int(t.sum()) == 10 and bool(t.sum() > 9)
    assert f"{t.mean():.2f}" == "2.50"
    assert gt.tensor(True).item() is True and isinstance(gt.arange(2)[1].item(), int)
    values = t.numpy()
    values[0, 0] = 99
    assert t[0, 0].item() == 1, "numpy() copies"


def test_repr():
    assert repr(gt.tensor([1, 2])) == "tensor([1., 2.], dtype=float32)"
    assert "requires_grad" in repr(gt.ones(1, requires_grad=True))
    assert repr(gt.zeros(0)) == "tensor([], shape=(0,), dtype=float32)"


def test_in_place_forms_change_the_tensor():
    a = gt.tensor([1, 2])
    b, before = a, a * 1
    a += 1
    assert a is b and b.tolist() == [2, 3] and before.tolist() == [1, 2]
    a *= 2
    a -= gt.ones(2)
    a /= 3
    np.testing.assert_allclose(b.numpy(), [1, 5 / 3], rtol=1e-6)
    a.zero_()
    assert b.tolist() == [0, 0]
    c = gt.tensor([1, 2], dtype=gt.int64)
    with pytest.raises(RuntimeError, match="float32.*int64"):
        c += 0.5
    c[0] = 7
    assert c.tolist() == [7, 2]


def test_numbers_arrays_and_reflected_forms():
    t = gt.tensor([1.0, 2.0])
    assert (1 - t).tolist() == [0, -1] and (2 / t).tolist() == [2, 1] and (2**t).tolist() == [2, 4]
    assert (t + np.array([1.0, 1.0], "float32")).tolist() == [2, 3]
    assert (t // 2).tolist() == [0, 1] and (-t % 3).tolist() == [2, 1]
    assert (t == gt.tensor([1.0, 5.0])).tolist() == [True, False]
    assert ((t > 1) & (t < 3) | ~(t > 0)).tolist() == [False, True]
    assert (t @ t).item() == 5
    assert t is not None and (t == None) is False  # noqa: E711


def test_hash_and_copies():
    t = gt.ones(2, requires_grad=True)
    assert {t: 1}[t] == 1 and t in {t}
    other = copy.deepcopy(t)
    assert other is not t and other.requires_grad and other.is_leaf
    t.clone().sum().backward()
    assert t.grad.tolist() == [1, 1] and other.grad is None


def test_indexing_matches_numpy():
    x = np.arange(60).reshape(3, 4, 5).astype("float32")
    t = gt.from_numpy(x)
    rows, mask = np.array([2, 0, -1]), x[:, :, 0] > 20
    for key in [
        0,
        -1,
        (1, 2, 3),
        slice(1, None),
        (slice(None, None, 2), 1),
        (None, Ellipsis, -1),
        (Ellipsis, None),
        (slice(5, 2),),
        (slice(-2, None), slice(None), slice(1, 4, 2)),
        rows,
        (slice(None), rows),
        (rows, rows),
        (rows, slice(None), rows),
        (rows[:, None], rows),
        (0, rows),
        mask,
        x > 30,
        (slice(None), slice(None), np.array([True, False, True, True, False])),
    ]:
        want = x[key]
        got = t[key]
        assert got.shape == want.shape, (key, got.shape, want.shape)
        np.testing.assert_array_equal(got.numpy(), want, err_msg=str(key))
        changed = x.copy()
        changed[key] = -1
        again = gt.from_numpy(x)
        again[key] = -1
        np.testing.assert_array_equal(again.numpy(), changed, err_msg=f"assigned {key}")
        value = np.arange(want.size).reshape(want.shape).astype("float32")
        changed[key] = value
        again[key] = value
        np.testing.assert_array_equal(again.numpy(), changed, err_msg=f"assigned {key}")
    index = gt.tensor([[0, 2]], dtype=gt.int64)
    assert t[index].shape == (1, 2, 4, 5) and t[[0, 2]].shape == (2, 4, 5)


def test_split_cat_and_reductions():
    t = gt.arange(10)
    assert [p.tolist() for p in t.split(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [len(p) for p in t.chunk(3)] == [4, 4, 2] and [len(p) for p in t.split([3, 7])] == [3, 7]
    assert gt.cat([t, t]).shape == (20,) and gt.stack([t, t], dim=1).shape == (10, 2)
    values, indices = gt.tensor([[1.0, 5.0], [7.0, 2.0]]).max(1)
    assert values.tolist() == [5, 7] and indices.tolist() == [1, 0]
    assert gt.tensor([[1.0, 5.0]]).max(axis=1, keepdims=True).tolist() == [[5]]
    assert gt.where(t > 5, t, 0).sum().item() == 30
    assert t.reshape(2, -1).T.shape == (5, 2) and t.view(5, 2).mT.shape == (2, 5)
    assert gt.ones(1, 2, 1).squeeze().shape == (2,) and gt.ones(2).unsqueeze(-1).shape == (2, 1)


def test_numbers_are_exact():
    assert gt.tensor([2**60 + 1], dtype="int64").tolist() == [2**60 + 1]
    assert gt.full((1,), 2**53 + 1).item() == 2**53 + 1
    assert (gt.tensor([2**60], dtype="int64") + 1).item() == 2**60 + 1
    assert gt.tensor(np.array([0.1])).item() == 0.1
    assert gt.tensor(0.1, dtype="float64").item() == 0.1
    for number in (float("inf"), -0.0, 5e-324, 1.7976931348623157e308):
        assert repr(gt.tensor(number, dtype="float64").item()) == repr(number)


@pytest.mark.parametrize(
    "dtype", "bool uint8 int8 int16 int32 int64 float16 float32 float64".split()
)
def test_arrays_of_every_dtype_round_trip(dtype):
    for shape in [(), (0,), (3,), (2, 3), (2, 0, 3), (1, 1, 2, 1)]:
        values = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
        for given in (values, np.array(values, order="F"), values.T.copy().T):
            back = gt.tensor(given).numpy()
            assert back.dtype == values.dtype and back.shape == shape
            np.testing.assert_array_equal(back, values)
        assert gt.tensor(values).tolist() == values.tolist()


def test_a_tensor_copies_its_array():
    values = np.ones(5, "float32")
    for make in (gt.tensor, gt.from_numpy):
        made = make(values)
        values += 1
        assert made.tolist() == [values[0] - 1] * 5


def test_dtypes_compare_and_print():
    assert gt.float32 == "float32" != gt.float64 and str(gt.int64) == "gt.int64"
    assert repr(gt.bfloat16) == "gt.bfloat16" and gt.bfloat16.itemsize == 2
    assert gt.float16.is_floating_point and not gt.bool.is_floating_point
    assert len({gt.float32, gt.ones(1).dtype, gt.float}) == 1
    for given in (np.float64, np.dtype("float64"), "float64", gt.float64, gt.double):
        assert gt.ones(1, dtype=given).dtype == gt.float64
    assert (gt.ones(1, dtype=float).dtype, gt.ones(1, dtype=int).dtype) == (gt.float64, gt.int64)


def test_an_integer_tensor_is_an_index():
    assert [10, 20, 30][gt.tensor(1, dtype="int64")] == 20
    assert list(range(gt.arange(3)[2].item())) == [0, 1]
    with pytest.raises(TypeError, match="integer"):
        [10, 20][gt.tensor(1.0)]


@pytest.mark.parametrize("name", "exp neg abs sqrt relu sigmoid tanh floor round sign".split())
def test_named_in_place_forms(name):
    t = gt.tensor([0.25, 2.0])
    alias, want = t, getattr(t, name)().tolist()
    assert getattr(t, name + "_")() is t and alias.tolist() == want


def test_in_place_forms_with_operands():
    t = gt.ones(2, 2)
    assert t.add_(1).mul_(3).sub_(gt.ones(2)).div_(2).pow_(2) is t
    assert t.tolist() == [[6.25, 6.25], [6.25, 6.25]]
    assert t.copy_(gt.zeros(2)).tolist() == [[0, 0], [0, 0]]
    assert t.fill_(3).tolist() == [[3, 3], [3, 3]]
    with pytest.raises(ValueError, match=r"\(2, 2\).*\(3, 2, 2\)|\(3, 2, 2\).*\(2, 2\)"):
        t += gt.ones(3, 2, 2)
    assert t.shape == (2, 2)
    t **= 2
    t //= 2
    t %= 3
    assert t.tolist() == [[1, 1], [1, 1]]


def test_numpy_functions_take_tensors():
    t = gt.tensor([1.0, 2.0])
    assert np.allclose(np.exp(t), np.exp([1, 2]))
    w = gt.ones(2, requires_grad=True)
    for product in (np.ones(2, "float32") * w, np.float32(1) * w, np.float64(1) * w):
        assert isinstance(product, gt.Tensor) and product.requires_grad
        assert product.dtype == gt.float32, "NumPy does not handle the operation"
    assert isinstance(t + np.ones(2), gt.Tensor) and (t + np.ones(2)).dtype == gt.float64
    assert (t * np.float64(2)).dtype == gt.float32, "a NumPy scalar is a number, not an array"
    assert np.array(t, copy=False).tolist() == [1.0, 2.0]


def test_functions_are_methods():
    t = gt.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert gt.exp([0.0]).tolist() == [1] and gt.sum(t, 0).tolist() == [4, 6]
    assert gt.mm(t, t).tolist() == (t @ t).tolist() == gt.matmul(t, t).tolist()
    assert gt.is_tensor(t) and not gt.is_tensor(3) and gt.numel(t) == 4
    assert set(gt.__all__) <= set(dir(gt)) and all(hasattr(gt, name) for name in gt.__all__)


def test_data_is_the_tensor_itself_without_history():
    w = gt.ones(3, requires_grad=True)
    w.data.mul_(0.5)
    w.data[0] = 9
    assert w.tolist() == [9, 0.5, 0.5] and w.requires_grad and not w.data.requires_grad
    (w * 2).sum().backward()
    w.grad.data.zero_()
    assert w.grad.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="detach"):
        w.data.requires_grad_()


def test_numbers_must_fit_everywhere():
    for make in (
        lambda: gt.full((2,), 1e10, dtype=gt.int32),
        lambda: gt.full_like(gt.ones(2, dtype=gt.uint8), 300),
        lambda: gt.ones(2, dtype=gt.uint8).fill_(300),
    ):
        with pytest.raises(ValueError, match="cannot be stored"):
            make()


def test_comparisons_and_replacements():
    x = gt.tensor([[1.0, 5.0], [3.0, float("inf")]])
    assert gt.equal(x, x) and not gt.equal(x, x[0])
    assert gt.allclose(x, x + 1e-9) and not gt.allclose(x, x * 1.1)
    assert x.isfinite().tolist() == [[True, True], [True, False]]
    assert x.isinf().sum().item() == 1
    assert x.masked_fill(x > 2, 0).tolist() == [[1, 0], [0, 0]]
    assert gt.clip(x, 2, 4).tolist() == [[2, 4], [3, 4]]
    assert x.flip(dims=(0,)).tolist() == x.flip(0).tolist()
    assert gt.as_tensor(x) is x and gt.as_tensor([1.0]).tolist() == [1.0]
    assert np.array_equal(np.from_dlpack(x), x.numpy())


@pytest.mark.parametrize("shape", [(1001,), (40, 30), (3, 500), (2, 30, 40), (7, 7, 7, 7)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_long_tensors_print_as_numpy_prints_them(shape, dtype):
    values = (np.random.default_rng(0).normal(size=shape) * 10).astype(dtype)
    expected = np.array2string(values, separator=", ", prefix="tensor(", threshold=1000)
    assert repr(gt.from_numpy(values)) == f"tensor({expected}, dtype={dtype})"


def test_fill_keeps_numbers_exact():
    assert gt.ones(2).fill_(1e30).tolist() == np.full(2, 1e30, "float32").tolist()
    assert gt.zeros(1, dtype=gt.int64).fill_(2**53 + 1).tolist() == [2**53 + 1]
    assert gt.zeros(2, dtype=gt.bool).fill_(True).tolist() == [True, True]
    assert gt.zeros(1, dtype=gt.int32).fill_(gt.tensor(7.0)).tolist() == [7]
    with pytest.raises(TypeError, match="'value' must be"):
        gt.ones(2).fill_("x")
