"""Functions other than operations that programs written for PyTorch call."""

import gt
import numpy as np
import pytest


def test_constructors_of_old_programs():
    assert gt.Tensor([1, 2]).dtype == gt.float32 and gt.Tensor(2, 3).shape == (2, 3)
    assert gt.LongTensor([1, 2]).dtype == gt.int64 and gt.LongTensor(4).shape == (4,)
    assert gt.BoolTensor([True, False]).tolist() == [True, False]
    assert gt.FloatTensor().numel() == 0 and gt.Tensor(gt.ones(2, 3).shape).shape == (2, 3)
    assert gt.DoubleTensor(np.ones(2, "float32")).dtype == gt.float64
    assert isinstance(gt.ones(2), gt.FloatTensor) and not isinstance(gt.ones(2), gt.LongTensor)
    assert isinstance(gt.ones(2), gt.Tensor)
    with pytest.raises(TypeError, match="expected one list"):
        gt.FloatTensor([1], [2])


def test_printing(capsys):
    x = gt.tensor([1 / 3, 1e-6, 2000.0])
    before = repr(x)
    try:
        gt.set_printoptions(precision=2, sci_mode=False)
        assert repr(x) == "tensor([   0.33,    0.00, 2000.00], dtype=float32)"
        gt.set_printoptions(profile="default")
        gt.set_printoptions(sci_mode=True, precision=3)
        assert repr(x) == "tensor([3.333e-01, 1.000e-06, 2.000e+03], dtype=float32)"
        gt.set_printoptions(profile="default")
        gt.set_printoptions(threshold=4, edgeitems=1)
        assert repr(gt.arange(6)) == "tensor([0, ..., 5], dtype=int64)"
        gt.set_printoptions(profile="full")
        assert "..." not in repr(gt.arange(3000))
        with pytest.raises(ValueError, match="'default', 'short' or 'full'"):
            gt.set_printoptions(profile="long")
    finally:
        gt.set_printoptions(profile="default")
    assert repr(x) == before


@pytest.mark.filterwarnings("ignore:device 'cuda'")
def test_settings_that_change_nothing():
    gt.backends.cudnn.benchmark = True
    gt.backends.cuda.matmul.allow_tf32 = True
    assert gt.backends.mps.is_available() is False
    gt.set_num_threads(2)
    assert gt.get_num_threads() >= 1
    gt.set_float32_matmul_precision("high")
    assert gt.get_float32_matmul_precision() == "high"
    gt.set_float32_matmul_precision("highest")
    gt.use_deterministic_algorithms(True)
    assert gt.are_deterministic_algorithms_enabled()
    gt.set_default_device("cuda:0")
    assert gt.get_default_device() == gt.ones(1).device
    with pytest.raises(ValueError, match="'highest', 'high' or 'medium'"):
        gt.set_float32_matmul_precision("low")
    with pytest.raises(RuntimeError, match="positive"):
        gt.set_num_threads(0)


def test_compiled_functions_compute_the_same():
    @gt.compile
    def double(x):
        return x * 2

    @gt.compile(mode="max-autotune")
    def triple(x):
        return x * 3

    assert double(gt.ones(1)).item() == 2 and triple(gt.ones(1)).item() == 3
    with pytest.raises(TypeError, match="not callable"):
        gt.compile(3)


def test_questions_about_memory():
    x = gt.ones(2, 3)
    assert not (x.is_sparse or x.is_quantized or x.is_meta or x.is_cpu or x.is_pinned())
    assert x.layout == gt.strided and x.get_device() == -1 and x.pin_memory() is x
    assert gt.is_same_size(x, x * 2) and x.is_set_to(x) and gt.is_nonzero(gt.ones(1))
    with pytest.raises(RuntimeError, match="no address"):
        x.data_ptr()
    with pytest.raises(RuntimeError, match="6 values"):
        gt.is_nonzero(x)


def test_retains_grad():
    x = gt.ones(2, requires_grad=True)
    y = x * 2
    assert not y.retains_grad and not x.retains_grad
    y.retain_grad()
    assert y.retains_grad


@pytest.mark.parametrize(
    ("shape", "wrap"),
    [((3, 3), False), ((2, 5), False), ((7, 3), False), ((7, 3), True), ((3, 3, 3), False)],
)
def test_diagonals_are_filled(shape, wrap):
    x, want = gt.zeros(shape), np.zeros(shape)
    if len(shape) == 2:
        np.fill_diagonal(want, 2, wrap=wrap)
    else:
        for at in range(shape[0]):
            want[at, at, at] = 2
    assert x.fill_diagonal_(2, wrap) is x
    np.testing.assert_array_equal(x.numpy(), want)


def test_buffers_and_capsules():
    values = np.arange(6, dtype="int16")
    assert gt.frombuffer(values.tobytes(), dtype=gt.int16, count=2, offset=4).tolist() == [2, 3]
    high = np.array([1.5, -2.0], "float32").view("uint32") >> 16
    assert gt.frombuffer(high.astype("uint16"), dtype=gt.bfloat16).tolist() == [1.5, -2.0]
    with pytest.raises(ValueError, match="do not fit a buffer"):
        gt.frombuffer(b"123", dtype=gt.int16)
    assert gt.from_dlpack(values).tolist() == values.tolist()
    assert type(gt.to_dlpack(gt.ones(1))).__name__ == "PyCapsule"
    with pytest.raises(TypeError, match="__dlpack__"):
        gt.from_dlpack([1])


def test_assert_close():
    close = gt.testing.assert_close
    close(gt.ones(2), gt.ones(2) + 1e-6)
    close({"a": [gt.ones(1), 2.0]}, {"a": [gt.ones(1), 2.0]})
    close(gt.tensor([float("nan")]), gt.tensor([float("nan")]), equal_nan=True)
    close(gt.ones(1), gt.ones(1, dtype=gt.float64), check_dtype=False)
    wrong = [
        (gt.ones(2), gt.ones(2) * 1.1, "2 of 2 values differ by more than"),
        (gt.ones(2), gt.ones(3), "The shapes differ"),
        (gt.ones(1), gt.ones(1, dtype=gt.float64), "The dtypes differ"),
        ([gt.ones(1)], [gt.zeros(1)], "at 0"),
        ({"a": 1}, {"b": 1}, "The keys differ"),
        ([1], [1, 2], "The lengths differ"),
        (gt.tensor([float("nan")]), gt.tensor([float("nan")]), "1 of 1"),
    ]
    for actual, expected, text in wrong:
        with pytest.raises(AssertionError, match=text):
            close(actual, expected)
    with pytest.raises(AssertionError, match="own words"):
        close(1, 2, msg="own words")
    with pytest.raises(ValueError, match="both or none"):
        close(1, 1, rtol=1)
