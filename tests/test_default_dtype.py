"""The default dtype of new tensors of floats."""

import gt
import pytest

FLOATS = [gt.float32, gt.float64, gt.float16, gt.bfloat16]


@pytest.fixture(params=FLOATS, ids=lambda dtype: dtype.name)
def default(request):
    """Set each float dtype as the default."""
    gt.set_default_dtype(request.param)
    yield request.param
    gt.set_default_dtype(gt.float32)


def test_new_tensors_have_the_default_dtype(default):
    assert gt.get_default_dtype() == default
    made = [
        gt.tensor([1.5]),
        gt.tensor([1, 2]),
        gt.zeros(2),
        gt.ones(2),
        gt.empty(2),
        gt.full((2,), 1.5),
        gt.rand(2),
        gt.randn(2),
        gt.eye(2),
        gt.arange(0.0, 2.0),
        gt.linspace(0, 1, 3),
        gt.logspace(0, 1, 3),
        gt.hann_window(4),
        gt.scalar_tensor(2),
        gt.fft.fftfreq(4),
    ]
    assert {x.dtype for x in made} == {default}
    assert gt.arange(3).dtype == gt.full((2,), 1).dtype == gt.int64
    assert gt.zeros(2, dtype=gt.float32).dtype == gt.float32
    assert gt.tensor([True]).dtype == gt.bool


def test_operations_of_floats_promote_integers_to_the_default(default):
    i = gt.arange(1, 4)
    results = [i / i, i * 1.5, i.sqrt(), i.exp(), (i > 1) * 0.5, gt.where(i > 1, i, 0.5)]
    assert [x.dtype for x in results] == [default] * len(results)
    assert (i / 2).tolist() == [0.5, 1.0, 1.5]
    assert i.float().dtype == (i.float() * 2.5).dtype == gt.float32
    assert gt.result_type(i, 1.5) == default
    assert (i + 1).dtype == gt.int64 and (i > 1).dtype == gt.bool


def test_a_default_of_float64_keeps_numbers_exact():
    """float32 would round them."""
    gt.set_default_dtype(gt.float64)
    try:
        assert (gt.arange(1, 4) / 3)[0].item() == 1 / 3
        assert gt.tensor([0.1]).item() == 0.1
        assert gt.tensor([(1 << 53) - 1]).item() == (1 << 53) - 1
        assert gt.tensor([0.1j]).dtype == gt.complex128
    finally:
        gt.set_default_dtype(gt.float32)


def test_the_default_must_be_a_float_dtype():
    with pytest.raises(TypeError, match="a float dtype"):
        gt.set_default_dtype(gt.int64)
