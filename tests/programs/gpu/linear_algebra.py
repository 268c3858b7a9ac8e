"""Compare linear algebra with NumPy's, in four dtypes."""

import gt
import numpy as np

random = np.random.default_rng(0)
BOUNDS = {"float32": 1e-3, "float64": 1e-9, "complex64": 1e-3, "complex128": 1e-9}


def check(dtype, bound):
    a = random.uniform(-1, 1, (6, 6)) + 3 * np.eye(6)
    if "complex" in dtype:
        a = a + 1j * random.uniform(-1, 1, (6, 6))
    a = a.astype(dtype)
    h = (a @ a.conj().T).astype(dtype)
    t, s, b = gt.tensor(a), gt.tensor(h), gt.tensor(a[:, :2].copy())

    def near(got, wanted):
        assert np.abs(got.numpy() - wanted).max() < bound * (1 + np.abs(wanted).max()), dtype

    near(gt.linalg.solve(t, b), np.linalg.solve(a, a[:, :2]))
    near(gt.linalg.inv(t), np.linalg.inv(a))
    near(gt.linalg.det(t), np.linalg.det(a))
    near(gt.linalg.cholesky(s), np.linalg.cholesky(h))
    near(gt.linalg.eigvalsh(s), np.linalg.eigvalsh(h))
    near(gt.linalg.svdvals(t), np.linalg.svd(a, compute_uv=False))
    q, r = gt.linalg.qr(t)
    near(q @ r, a)


for dtype, bound in BOUNDS.items():
    check(dtype, bound)
print("fine")
