"""Linear algebra against NumPy, by products of factors, and its errors."""

import gt
import numpy as np
import pytest

DTYPES = ["float32", "float64", "complex128"]
SHAPES = [(3, 3), (2, 3, 3), (5, 5), (0, 0), (0, 3, 3), (1, 1)]
OBLONG = [(4, 2), (2, 4), (3, 5, 2), (2, 3, 5), (0, 3), (3, 0), *SHAPES]


def matrices(shape, dtype, seed=0):
    """Return matrices of normally distributed values."""
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape)
    if dtype.startswith("complex"):
        values = values + 1j * random.standard_normal(shape)
    return values.astype(dtype)


def positive(shape, dtype):
    """Return random Hermitian positive-definite matrices."""
    values = matrices(shape, dtype)
    return values @ adjoint(values) + np.eye(shape[-1], dtype=dtype)


def adjoint(values):
    """Return the conjugate transposes."""
    return values.conj().swapaxes(-1, -2)


def close(got, want):
    """Compare with the tolerance of float32 or float64."""
    got = got.numpy() if isinstance(got, gt.Tensor) else got
    want = want.numpy() if isinstance(want, gt.Tensor) else np.asarray(want)
    assert got.shape == want.shape
    tolerance = 2e-4 if want.dtype in (np.float32, np.complex64) else 1e-9
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_square_matrices_against_numpy(shape, dtype):
    values = matrices(shape, dtype) + 2 * np.eye(shape[-1], dtype=dtype)
    A = gt.tensor(values)
    close(gt.linalg.inv(A), np.linalg.inv(values))
    close(gt.linalg.det(A), np.linalg.det(values))
    for got, want in zip(gt.linalg.slogdet(A), np.linalg.slogdet(values), strict=True):
        close(got, want)
    right = matrices((*shape[:-1], 2), dtype, 1)
    X = np.linalg.solve(values, right)
    close(gt.linalg.solve(A, gt.tensor(right)), X)
    close(gt.linalg.solve(A, gt.tensor(adjoint(right)), left=False) @ A, adjoint(right))
    factors = gt.linalg.lu_factor(A)
    close(gt.linalg.lu_solve(*factors, gt.tensor(right)), X)
    close(A.mH @ gt.linalg.lu_solve(*factors, gt.tensor(right), adjoint=True), right)
    if values.size:
        close(gt.linalg.cond(A), np.linalg.cond(values))
        close(gt.linalg.cond(A, 1), np.linalg.cond(values, 1))
    close(gt.linalg.matrix_power(A, -2), np.linalg.matrix_power(values, -2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", OBLONG)
def test_factors_multiply_to_the_matrix(shape, dtype):
    values = matrices(shape, dtype)
    A, k = gt.tensor(values), min(shape[-2:])
    P, L, U = gt.linalg.lu(A)
    close(P @ L @ U, values)
    for mode in ("reduced", "complete"):
        Q, R = gt.linalg.qr(A, mode)
        close(Q @ R, values)
        close(Q.mH @ Q, np.broadcast_to(np.eye(Q.shape[-1]), (Q.mH @ Q).shape).astype(dtype))
    U, S, Vh = gt.linalg.svd(A)
    close((U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :], values)
    close(gt.linalg.svdvals(A), np.linalg.svd(values, compute_uv=False))
    close(gt.linalg.pinv(A), np.linalg.pinv(values))
    if shape[-2] >= shape[-1]:
        U, H = gt.linalg.polar(A)
        close(U @ H, values)
        close(gt.linalg.householder_product(*gt.geqrf(A)), gt.linalg.qr(A).Q)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_hermitian_matrices(shape, dtype):
    values = positive(shape, dtype)
    A = gt.tensor(values)
    close(gt.linalg.cholesky(A), np.linalg.cholesky(values))
    upper = gt.linalg.cholesky(A, upper=True)
    close(upper.mH @ upper, values)
    close(gt.cholesky_inverse(upper, True), np.linalg.inv(values))
    for uplo in "LU":
        L, V = gt.linalg.eigh(A, uplo)
        close(L, np.linalg.eigvalsh(values, uplo))
        close((V * L.unsqueeze(-2)) @ V.mH, values)
    root = gt.linalg.matrix_sqrth(A)
    close(root @ root, values)
    right = matrices((*shape[:-1], 2), dtype, 1)
    solved = gt.linalg.ldl_solve(
        *gt.linalg.ldl_factor(A, hermitian=True), gt.tensor(right), hermitian=True
    )
    close(solved, np.linalg.solve(values, right))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors(dtype):
    values = matrices((2, 4, 4), dtype)
    L, V = gt.linalg.eig(gt.tensor(values))
    close(gt.tensor(values)._cast(V.dtype) @ V, V * L.unsqueeze(-2))
    close(gt.linalg.eigvals(gt.tensor(values)).sum(-1), np.linalg.eigvals(values).sum(-1))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (3, 3)])
def test_least_squares(shape, driver):
    values, right = matrices(shape, "float64"), matrices((shape[0], 2), "float64", 1)
    found = gt.linalg.lstsq(gt.tensor(values), gt.tensor(right), driver=driver)
    want, residuals, rank, singular = np.linalg.lstsq(values, right, rcond=None)
    close(found.solution, want)
    if shape == (5, 3) and driver != "gelsy":
        close(found.residuals, residuals)
    if driver != "gels":
        assert found.rank.item() == rank
    if driver in ("gelsd", "gelss"):
        close(found.singular_values, singular)


def test_tensors_as_matrices():
    A = matrices((2, 3, 6), "float64")
    close(gt.linalg.tensorinv(gt.tensor(A)), np.linalg.tensorinv(A))
    right = matrices((2, 3), "float64", 1)
    close(gt.linalg.tensorsolve(gt.tensor(A), gt.tensor(right)), np.linalg.tensorsolve(A, right))


def test_ranks():
    values = np.diag([3.0, 1e-3, 0.0])
    A = gt.tensor(values)
    assert gt.linalg.matrix_rank(A).item() == np.linalg.matrix_rank(values) == 2
    assert gt.linalg.matrix_rank(A, 0.1).item() == 1
    assert gt.linalg.matrix_rank(A, atol=0.1, hermitian=True).item() == 1
    assert gt.linalg.matrix_rank(gt.stack([A, A]), rtol=gt.tensor([1e-9, 0.5])).tolist() == [2, 1]


def test_singular_matrices_raise():
    singular = gt.stack([gt.eye(2), gt.zeros(2, 2)])
    for compute in (
        gt.linalg.inv,
        gt.inverse,
        gt.linalg.lu_factor,
        gt.linalg.cholesky,
        lambda A: gt.linalg.solve(A, gt.ones(2, 2, 1)),
    ):
        with pytest.raises(gt.linalg.LinAlgError, match="matrix 1 of the batch"):
            compute(singular)
    assert gt.linalg.inv_ex(singular).info.tolist() == [0, 1]
    assert gt.linalg.cholesky_ex(-gt.eye(2)).info.item() == 1
    assert gt.linalg.det(singular).tolist() == [1.0, 0.0]
    assert gt.linalg.cond(gt.zeros(2, 2), 1).item() == float("inf")
    P, L, U = gt.linalg.lu(singular)
    close(P @ L @ U, singular)


@pytest.mark.parametrize("name", "inv det cholesky qr svd eigh pinv eig".split())
def test_arguments_that_do_not_fit(name):
    compute = getattr(gt.linalg, name)
    with pytest.raises(TypeError, match=f"linalg.{name}.*int64"):
        compute(gt.ones(2, 2, dtype="int64"))
    with pytest.raises(TypeError, match=f"linalg.{name}.*float16"):
        compute(gt.ones(2, 2, dtype="float16"))
    with pytest.raises(ValueError, match=f"linalg.{name}"):
        compute(gt.ones(2))


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="square"):
        gt.linalg.inv(gt.ones(2, 3))
    with pytest.raises(ValueError, match="do not fit"):
        gt.linalg.solve(gt.eye(2), gt.ones(3, 1))
    with pytest.raises(ValueError, match="mode"):
        gt.linalg.qr(gt.eye(2), "full")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name", "inv_ex det slogdet cholesky_ex qr svd svdvals eigh eig lu lu_factor_ex pinv".split()
)
def test_values_that_are_no_numbers_give_a_result_or_an_error(name, value):
    try:
        found = getattr(gt.linalg, name)(gt.full((3, 3), value))
        [part.tolist() for part in (found if isinstance(found, tuple) else [found])]
    except (RuntimeError, ValueError) as error:
        assert str(error)


def test_gradients_of_complex_results_add_up():
    values = np.array([[1.0, 2.0], [-1.0, 1.5]])
    weights = gt.tensor(np.array([1 + 2j, 3 - 1j])), gt.tensor(matrices((2, 2), "float64"))

    def gradient(*chosen):
        A = gt.tensor(values, requires_grad=True)
        L, V = gt.linalg.eig(A)
        results = [(L, V.abs())[one] for one in chosen]
        return gt.autograd.grad(results, [A], [weights[one] for one in chosen])[0]

    close(gradient(0, 1), gradient(0) + gradient(1))
