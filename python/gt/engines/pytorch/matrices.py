"""Matrix products, factorizations and Fourier transforms with PyTorch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def lu_order(pivots: Tensor, rows: int) -> Tensor:
    """Return the row permutation of LU pivots: the positions of the ones in the columns of P."""
    nothing = torch.zeros((*pivots.shape[:-1], rows, pivots.shape[-1]), device=pivots.device)
    exchanges, _, _ = torch.lu_unpack(nothing, pivots, unpack_data=False)
    return exchanges.argmax(-2) if rows else pivots.new_zeros(pivots.shape, dtype=torch.int64)


def c2c(x: Tensor, dim: int, inverse: bool, scale: float) -> Tensor:
    """Compute a complex FFT without normalization, times `scale`."""
    if inverse:
        return torch.fft.ifft(x, dim=dim, norm="forward") * scale
    return torch.fft.fft(x, dim=dim) * scale


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """Multiply matrices; integers on GPUs by broadcast sums, as they have no kernels for these."""
    if a.is_cuda and not (a.dtype.is_floating_point or a.dtype.is_complex):
        # Process as many rows at a time as need about 2^26 products.
        rows = max(1, (1 << 26) // max(1, a[..., :1, :].numel() * b.shape[-1]))
        parts = [(part[..., None] * b[..., None, :, :]).sum(-2) for part in a.split(rows, -2)]
        return torch.cat(parts, -2).to(a.dtype)
    return torch.matmul(a, b)


def weight_backward(x: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of a weight: xᵀ grad, with all batch axes flattened."""
    return matmul(x.flatten(0, -2).mT, grad.flatten(0, -2))


MATRICES: dict[str, Callable[..., Any]] = {
    "matmul": matmul,
    "weight_backward": weight_backward,
    "_linalg_cholesky": torch.linalg.cholesky_ex,
    "_linalg_lu": torch.linalg.lu_factor_ex,
    "_linalg_lu_order": lu_order,
    "_linalg_qr": lambda x, complete: torch.linalg.qr(x, "complete" if complete else "reduced"),
    "_linalg_geqrf": torch.geqrf,
    "_linalg_svd": torch.linalg.svd,
    "_linalg_eigh": torch.linalg.eigh,
    # On a GPU, eig overwrites an operand that is a view.
    "_linalg_eig": lambda x: torch.linalg.eig(x.clone()),
    "_linalg_solve": torch.linalg.solve_ex,
    "_linalg_solve_triangular": torch.linalg.solve_triangular,
    "_linalg_ldl_factor": torch.linalg.ldl_factor_ex,
    "_linalg_ldl_solve": torch.linalg.ldl_solve,
    "_fft_c2c": c2c,
    "_fft_r2c": lambda x, dim, scale: torch.fft.rfft(x, dim=dim) * scale,
    "_fft_c2r": lambda x, dim, n, scale: torch.fft.irfft(x, n, dim, norm="forward") * scale,
}
