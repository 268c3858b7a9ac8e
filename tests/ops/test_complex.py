"""Complex numbers against NumPy, and their gradients by finite differences."""

import cmath
import operator

import gt
import numpy as np
import pytest

DTYPES = ["complex64", "complex128"]
FUNCTIONS = {
    **{
        name: getattr(np, name)
        for name in """exp log log1p expm1 sqrt sin cos tan sinh cosh tanh log2 log10 exp2
        abs angle conj real imag square reciprocal""".split()
    },
    **{name: getattr(np, f"arc{name[1:]}") for name in "asin acos atan asinh acosh atanh".split()},
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sgn": lambda x: x / np.abs(x),
    "neg": np.negative,
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(0),
    "prod": lambda x: x.prod(0),
    "mean": lambda x: x.mean(0),
    "sum": lambda x: x.sum(0),
    "var": lambda x: x.var(0, ddof=1),
}
ALONG = ("cumsum", "cumprod", "prod", "mean", "sum", "var")
ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "matmul": operator.matmul,
}


def numbers(dtype, shape=(4, 4), seed=0):
    """Return normally distributed complex numbers."""
    draw = np.random.default_rng(seed)
    return (draw.normal(size=shape) + 1j * draw.normal(size=shape)).astype(dtype)


def close(got, want, dtype):
    """Compare values and dtype, which may be the real dtype of the parts."""
    want = np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype.name in (dtype, getattr(gt, dtype).to_real().name)
    tolerance = 3e-6 if dtype == "complex64" else 1e-13
    np.testing.assert_allclose(got.numpy(), want, tolerance, 10 * tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    x = numbers(dtype)
    got = getattr(gt, name)(gt.from_numpy(x), *((0,) if name in ALONG else ()))
    close(got, FUNCTIONS[name](x.astype("complex128")), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic(name, dtype):
    x, y = numbers(dtype), numbers(dtype, seed=1)
    compute = ARITHMETIC[name]
    close(compute(gt.from_numpy(x), gt.from_numpy(y)), compute(x, y), dtype)
    if name != "matmul":
        close(compute(gt.from_numpy(x), gt.from_numpy(y.real.copy())), compute(x, y.real), dtype)
        close(compute(gt.from_numpy(x), 2 - 1j), compute(x, 2 - 1j), dtype)


def slope(function, x):
    """Return the derivatives of a real result by real and imaginary parts, as complex numbers."""
    step, grad = 1e-6, np.zeros_like(x)
    for place in np.ndindex(x.shape):
        for part in (1, 1j):
            ends = []
            for sign in (1, -1):
                moved = x.copy()
                moved[place] += sign * part * step
                ends.append(function(gt.from_numpy(moved)).item())
            grad[place] += part * (ends[0] - ends[1]) / (2 * step)
    return grad


def check_gradient(function, x):
    """Compare the gradient of a real function of the result with finite differences."""

    def loss(x):
        result = function(x)
        weights = gt.from_numpy(numbers("complex128", result.shape, 7))
        return gt.real(result * weights).sum() + (result.abs() ** 2).sum()

    leaf = gt.from_numpy(x).requires_grad_()
    loss(leaf).backward()
    np.testing.assert_allclose(leaf.grad.numpy(), slope(loss, x), 1e-5, 1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_functions(name):
    arguments = (0,) if name in ALONG else ()
    check_gradient(lambda x: getattr(gt, name)(x, *arguments), numbers("complex128", (2, 2)) + 0.3)


@pytest.mark.parametrize("name", ARITHMETIC)
def test_gradients_of_arithmetic(name):
    other = gt.from_numpy(numbers("complex128", (2, 2), 1))
    compute = ARITHMETIC[name]
    check_gradient(lambda x: compute(x, other), numbers("complex128", (2, 2)))
    check_gradient(lambda x: compute(other, x), numbers("complex128", (2, 2)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: gt.view_as_real(x) * 2.0,
        lambda x: gt.view_as_complex(gt.view_as_real(x)),
        lambda x: gt.complex(x.real, x.imag * 2),
        lambda x: gt.polar(x.abs(), x.angle()),
        lambda x: x.mH @ x,
        lambda x: gt.where(x.abs() > 0.5, x, 2 * x),
        lambda x: gt.cat([x, x[:1]]).T,
        lambda x: x[[1, 1, 0]],
        lambda x: gt.fft.fft(x, 3),
        lambda x: gt.fft.ifft(x, norm="ortho"),
        lambda x: gt.fft.rfft(x.real, 5),
        lambda x: gt.fft.irfft(x, 3),
        lambda x: gt.fft.hfft(x),
        lambda x: gt.fft.ihfft(x.imag),
    ],
)
def test_gradients_of_other_ways(function):
    check_gradient(function, numbers("complex128", (2, 2)))


def test_a_real_operand_has_a_real_gradient():
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    (x * gt.tensor([1j, 1 + 1j])).abs().sum().backward()
    assert x.grad.dtype is gt.float32
    np.testing.assert_allclose(x.grad.numpy(), [1, 2**0.5], 1e-6)


def test_numbers_that_python_has():
    assert gt.tensor(1 + 2j).item() == 1 + 2j
    assert gt.tensor([1, 2j]).tolist() == [1, 2j]
    assert gt.tensor([1j]).dtype is gt.complex64
    assert (gt.ones(1, dtype=gt.float64) * 1j).dtype is gt.complex128
    assert (gt.ones(1, dtype=gt.int64) + 1j).dtype is gt.complex64
    assert gt.full((2,), 1j).tolist() == [1j, 1j]
    assert complex(gt.tensor(1 + 2j)) == 1 + 2j and bool(gt.tensor(1j))
    assert cmath.isclose(gt.tensor([0.1 + 0.2j], dtype=gt.complex128)[0].item(), 0.1 + 0.2j)
    x = gt.zeros(2, dtype=gt.complex64)
    x[0] = 3j
    assert x.fill_(2j).tolist() == [2j, 2j]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda z: z < 1,
        lambda z: gt.sort(z),
        lambda z: z.amax(),
        lambda z: z // 2,
        lambda z: gt.relu(z),
        lambda z: z.clamp(min=0),
        lambda z: gt.fft.rfft(z),
    ],
)
def test_what_has_no_meaning_is_an_error(wrong):
    with pytest.raises(TypeError, match="complex64"):
        wrong(gt.tensor([1j, 2]))


def test_parts_that_would_be_lost_are_an_error():
    with pytest.raises(RuntimeError, match="without loss"):
        float(gt.tensor(1j))
    with pytest.raises(TypeError, match="cannot be stored as float32"):
        gt.tensor([1j], dtype=gt.float32)


@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
@pytest.mark.parametrize("name", "fft ifft rfft irfft hfft ihfft".split())
def test_transforms_along_an_axis(name, norm):
    real = name in ("rfft", "ihfft")
    for dtype in DTYPES:
        x = numbers(dtype, (3, 5, 4))
        x = x.real.copy() if real else x
        for n, dim in [(None, -1), (3, 0), (8, 1), (6, 2), (None, 0)]:
            want = getattr(np.fft, name)(x, n, dim, norm)
            close(getattr(gt.fft, name)(gt.from_numpy(x), n, dim, norm), want, dtype)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", "fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2".split())
def test_transforms_along_axes(name, norm):
    x = numbers("complex128", (3, 5, 4))
    x = x.real.copy() if name.startswith("r") else x
    dims = [(0, 1), (2, 0), (-2, -1)] + ([(0, 1, 2)] if name.endswith("n") else [])
    for dim in dims:
        for s in (None, [3, 6, 4][: len(dim)]):
            want = getattr(np.fft, name)(x, s, dim, norm)
            close(getattr(gt.fft, name)(gt.from_numpy(x), s, dim, norm), want, "complex128")


def test_frequencies():
    for n in (1, 4, 5):
        close(gt.fft.fftfreq(n, 0.5), np.fft.fftfreq(n, 0.5).astype("f4"), "complex64")
        close(gt.fft.rfftfreq(n, 0.5), np.fft.rfftfreq(n, 0.5).astype("f4"), "complex64")
        assert gt.fft.fftshift(gt.arange(n)).tolist() == np.fft.fftshift(np.arange(n)).tolist()
        assert gt.fft.ifftshift(gt.fft.fftshift(gt.arange(n))).tolist() == list(range(n))


def test_a_signal_comes_back_from_its_spectrogram():
    signal = gt.from_numpy(np.sin(np.arange(400) * 0.3))
    for options in [{}, {"hop_length": 10}, {"normalized": True}, {"onesided": False}]:
        window = gt.hann_window(64, dtype=gt.float64)
        spectra = gt.stft(signal, 64, window=window, return_complex=True, **options)
        back = gt.istft(spectra, 64, window=window, length=400, **options)
        np.testing.assert_allclose(back.numpy(), signal.numpy(), atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_convolution(dtype):
    """Convolutions are sums of products; NumPy's correlate conjugates the second factors."""
    x, w = numbers(dtype, (6,)), numbers(dtype, (3,), seed=1)
    got = gt.nn.functional.conv1d(gt.tensor(x).reshape(1, 6), gt.tensor(w).reshape(1, 1, 3))
    want = np.correlate(x, w.conj())
    np.testing.assert_allclose(got.numpy()[0], want, rtol=1e-5)
    back = gt.nn.functional.conv_transpose1d(gt.tensor(x).reshape(1, 6), gt.tensor(w)[None, None])
    np.testing.assert_allclose(back.numpy()[0], np.convolve(x, w), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_logarithms_of_sums(dtype):
    """There is no overflow, even if the real parts are large."""
    x = numbers(dtype)
    want = np.log(np.exp(x).sum(1))
    np.testing.assert_allclose(gt.logsumexp(gt.tensor(x), 1).numpy(), want, rtol=1e-5)
    shifted = gt.logsumexp(gt.tensor(x) + 1000, 1) - 1000
    np.testing.assert_allclose(shifted.numpy(), want, atol=2e-4)
    pair = gt.logaddexp(gt.tensor(x[0]), gt.tensor(x[1]))
    np.testing.assert_allclose(pair.numpy(), np.log(np.exp(x[0]) + np.exp(x[1])), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_random_numbers(dtype):
    """Both parts are random; normal numbers have a total variance of 1."""
    for uniform in (gt.rand(4000, dtype=dtype), gt.zeros(4000, dtype=dtype).uniform_(0, 1)):
        assert uniform.dtype.name == dtype
        for part in (uniform.real, uniform.imag):
            assert part.min() >= 0 and part.max() < 1
            assert abs(part.mean() - 0.5) < 0.03
    for normal in (gt.randn(4000, dtype=dtype), gt.zeros(4000, dtype=dtype).normal_(0, 1)):
        assert abs((normal.abs() ** 2).mean() - 1) < 0.1
        assert abs((normal.real * normal.imag).mean()) < 0.05


def test_hermitian_matrices_have_real_diagonals():
    """The imaginary parts of a diagonal are not read, as in LAPACK."""
    a = numbers("complex128")
    hermitian = a @ a.conj().T + np.eye(4)
    given = gt.tensor(hermitian + 3j * np.eye(4))
    np.testing.assert_allclose(gt.linalg.eigvalsh(given).numpy(), np.linalg.eigvalsh(hermitian))
    want = np.linalg.cholesky(hermitian)
    np.testing.assert_allclose(gt.linalg.cholesky(given).numpy(), want, atol=1e-12)


def test_the_conjugate_is_taken_once():
    x = gt.tensor([1 + 2j])
    assert x.conj().resolve_conj().tolist() == [1 - 2j] and gt.resolve_conj(x).tolist() == [1 + 2j]
