"""`torch.return_types` for PyTorch programs: the named tuples of operations with several results.

Operations with results of the same names share a type: those of `max` and `sort` are one.
"""

from gt import _results

__all__ = [
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "geqrf",
    "histogram",
    "histogramdd",
    "kthvalue",
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "linalg_inv_ex",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_lstsq",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_polar",
    "linalg_qr",
    "linalg_slogdet",
    "linalg_solve_ex",
    "linalg_svd",
    "lu_unpack",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "slogdet",
    "sort",
    "svd",
    "topk",
    "triangular_solve",
]

aminmax = _results.MinMax
cummax = cummin = kthvalue = max = median = min = mode = nanmedian = _results.ValuesIndices
sort = topk = _results.ValuesIndices
frexp = _results.Frexp
geqrf = _results.Geqrf
histogram = histogramdd = _results.Histogram
linalg_cholesky_ex = _results.CholeskyEx
linalg_eig = linalg_eigh = _results.Eigen
linalg_inv_ex = _results.InvEx
linalg_ldl_factor = _results.LDLFactor
linalg_ldl_factor_ex = _results.LDLFactorEx
linalg_lstsq = _results.Lstsq
linalg_lu = lu_unpack = _results.PLU
linalg_lu_factor = _results.LUFactor
linalg_lu_factor_ex = _results.LUFactorEx
linalg_polar = _results.Polar
linalg_qr = _results.QR
linalg_slogdet = slogdet = _results.SignLogAbsDet
linalg_solve_ex = _results.SolveEx
linalg_svd = _results.SVD
svd = _results.OldSVD
triangular_solve = _results.TriangularSolve
