"""Every operation on every sample, against NumPy."""

import math
from pathlib import Path

import gt
import numpy as np
import pytest
from gradient_references import (
    erf,
    gelu_slope,
    layer_norm,
    layer_norm_backward,
    layer_norm_weight_backward,
    weight_backward,
)
from gt.engines.check.samples import CASES, OPERATIONS, inputs
from primitives import apply, to_gt
from processes import unsharded_only
from promotion import result_type, to_float


def axes(attributes, rank):
    """Return the axes of a reduction in NumPy's form."""
    return tuple(axis % max(rank, 1) for axis in attributes["dim"]) or tuple(range(rank))


def region(attributes):
    """Return the slices of a region."""
    lists = zip(attributes["starts"], attributes["sizes"], attributes["steps"], strict=True)
    return tuple(slice(start, start + size * step, step) for start, size, step in lists)


def assigned(x, value, attributes):
    out = x.copy()
    out[region(attributes)] = value
    return out


def scattered(x, index, source, axis):
    out = x.copy()
    for place in np.ndindex(*index.shape):
        target = list(place)
        target[axis] = index[place]
        out[tuple(target)] += source[place]
    return out


def rows(x, index, source, axis, add):
    out = np.moveaxis(x.copy(), axis, 0)
    for number, row in enumerate(index):
        value = np.moveaxis(source, axis, 0)[number]
        out[row] = out[row] + value if add else value
    return np.moveaxis(out, 0, axis)


def masked_rows_scatter(x, mask, source):
    out = x.copy()
    out[mask] = source
    return out


def softmax(x, dim):
    if x.shape[dim] == 0 or x.size == 0:
        return x
    exp = np.exp(x - x.max(dim, keepdims=True))
    return exp / exp.sum(dim, keepdims=True)


def arg(find):
    def reference(x, dim, keepdim):
        if not dim:
            out = find(x)
            return np.reshape(out, [1] * x.ndim) if keepdim else out
        return find(x, axis=dim[0], keepdims=keepdim)

    return reference


def reduction(function, **fixed):
    def reference(x, keepdim, **attributes):
        attributes_axes = axes(attributes, x.ndim)
        return function(x, axis=attributes_axes, keepdims=keepdim, **fixed)

    return reference


def spread(function):
    def reference(x, keepdim, correction, **attributes):
        return function(x, axis=axes(attributes, x.ndim), keepdims=keepdim, ddof=correction)

    return reference


def logsumexp(x, keepdim, **attributes):
    return np.log(np.exp(x).sum(axis=axes(attributes, x.ndim), keepdims=keepdim))


def linspace(start, end, length, dtype):
    return np.linspace(start, end, length)


#: References, computed in float64 or int64 and compared in the promoted dtype.
REFERENCE = {
    "full": lambda value, size, dtype: np.full(size, value),
    "arange": lambda start, step, length, dtype: start + step * np.arange(length),
    "linspace": linspace,
    "eye": lambda n, m, dtype: np.eye(n, m),
    "cast": lambda x, dtype: cast(x, dtype.name),
    "neg": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "erf": erf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.round,
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
    "isnan": np.isnan,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "where": np.where,
    "clamp": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "mul_add": lambda a, b, c: a + b * c,
    "sum": reduction(np.sum),
    "mean": reduction(np.mean),
    "prod": reduction(np.prod),
    "amax": reduction(np.max),
    "amin": reduction(np.min),
    "argmax": arg(np.argmax),
    "argmin": arg(np.argmin),
    "var": spread(np.var),
    "std": spread(np.std),
    "any": reduction(np.any),
    "all": reduction(np.all),
    "logcumsumexp": lambda x, dim: np.logaddexp.accumulate(x, dim) if x.ndim else x,
    "cumsum": lambda x, dim: np.cumsum(x, dim) if x.ndim else x,
    "matmul": np.matmul,
    "reshape": lambda x, shape: x.reshape(shape),
    "permute": lambda x, dims: x.transpose(dims),
    "expand": lambda x, size: np.broadcast_to(x, size),
    "place": lambda x: x,
    "flip": lambda x, dims: np.flip(x, dims),
    "slice": lambda x, **attributes: x[region(attributes)],
    "slice_assign": lambda x, value, **attributes: assigned(x, value, attributes),
    "cat": lambda *tensors, dim: np.concatenate(tensors, dim),
    "tril": lambda x, diagonal: np.tril(x, diagonal),
    "triu": lambda x, diagonal: np.triu(x, diagonal),
    "gather": lambda x, index, dim: np.take_along_axis(x[: len(index)] if dim else x, index, dim),
    "scatter_add": lambda x, index, source, dim: scattered(x, index, source, dim),
    "index_select": lambda x, index, dim: np.take(x, index, dim),
    "index_add": lambda x, index, source, dim: rows(x, index, source, dim, True),
    "index_copy": lambda x, index, source, dim: rows(x, index, source, dim, False),
    "nonzero": lambda x, count: np.argwhere(x),
    "masked_rows": lambda x, mask, count: x[mask],
    "masked_rows_scatter": masked_rows_scatter,
    "wrap_index": lambda index, length: np.where(index < 0, index + length, index),
    "softmax": softmax,
    "log_softmax": lambda x, dim: (
        x
        if x.size == 0
        else x
        - x.max(dim, keepdims=True)
        - np.log(np.exp(x - x.max(dim, keepdims=True)).sum(dim, keepdims=True))
    ),
    "logsumexp": logsumexp,
    "running_mean": lambda average, x, keep, weight: keep * average + weight * x,
    "running_square": lambda average, x, keep, weight: keep * average + weight * x * x,
    "adam_step": lambda x, mean, square, keep, rate, scale, eps: (
        keep * x - rate * mean / (scale * np.sqrt(square) + eps)
    ),
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "layer_norm_weight_backward": layer_norm_weight_backward,
    "weight_backward": weight_backward,
    "softmax_backward": lambda grad, y, dim: y * (grad - (grad * y).sum(dim, keepdims=True)),
    "log_softmax_backward": lambda grad, y, dim: grad - np.exp(y) * grad.sum(dim, keepdims=True),
    "gelu_backward": lambda grad, x, approximate: grad * gelu_slope(x, approximate),
    "gelu": lambda x, approximate: (
        0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))
        if approximate == "tanh"
        else 0.5 * x * (1 + erf(x / math.sqrt(2)))
    ),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
}
#: Tested in test_random.py.
RANDOM = {"rand", "randn", "randint", "draw_poisson", "draw_binomial"}

FLOAT_RESULT = (
    "exp log log1p expm1 sqrt rsqrt sin cos erf sigmoid tanh div gelu silu softplus "
    "logsumexp".split()
)
BOOL_RESULT = (
    "logical_not isnan eq ne lt le gt ge logical_and logical_or logical_xor any all".split()
)
INDEX_RESULT = ("argmax", "argmin", "wrap_index", "nonzero")
INDEXED = "gather scatter_add index_select index_add index_copy".split()
WIDENED = ("sum", "prod", "cumsum")
OF_FIRST = (
    "slice_assign gather scatter_add index_select index_add index_copy "
    "masked_rows masked_rows_scatter".split()
)  # The result has the dtype of the first operand.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 3e-6, "float64": 1e-12}
TOLERANCE |= {"complex64": 3e-6, "complex128": 1e-12}


def cast(x, dtype):
    """Return the values to cast: bools, the real parts of complex numbers, or the values."""
    if dtype == "bool":
        return x.astype(bool)
    return x.real if np.iscomplexobj(x) and not dtype.startswith("complex") else x


#: The entry of PyTorch's database that tests each operation without a reference here.
IN_DATABASE = {
    "_attention": "nn.functional.scaled_dot_product_attention",
    "_attention_backward": "nn.functional.scaled_dot_product_attention",
    "conv_general": "nn.functional.conv2d",
    "further": "sort",
    "_fft_c2c": "fft.fft",
    "_fft_c2r": "fft.irfft",
    "_fft_r2c": "fft.rfft",
    "_linalg_cholesky": "linalg.cholesky",
    "_linalg_eig": "linalg.eig",
    "_linalg_eigh": "linalg.eigh",
    "_linalg_geqrf": "geqrf",
    "_linalg_ldl_factor": "linalg.ldl_factor",
    "_linalg_ldl_solve": "linalg.ldl_solve",
    "_linalg_lu": "linalg.lu_factor",
    "_linalg_lu_order": "linalg.lu",
    "_linalg_qr": "linalg.qr",
    "_linalg_solve": "linalg.solve",
    "_linalg_solve_triangular": "linalg.solve_triangular",
    "_linalg_svd": "linalg.svd",
    "max_along": "max/reduction_with_dim",
    "max_pool": "nn.functional.max_pool2d",
    "polygamma": "polygamma/polygamma_n_1",
    "min_along": "min/reduction_with_dim",
    "scatter_reduce": "scatter_reduce/amax",
}


def test_every_operation_has_a_reference():
    passing = (
        (Path(__file__).parent.parent / "coverage" / "passing" / "float32.txt")
        .read_text()
        .split("\n")
    )
    # `commit`, the end of a step, has no value: it is tested in tests/optim/test_transactions.py.
    for name in set(OPERATIONS) - set(REFERENCE) - RANDOM - {"commit"}:
        entry = IN_DATABASE.get(name, name)
        assert entry in passing or f"special.{entry}" in passing, name


def expected_dtype(name, operands, dtypes, attributes):
    if "dtype" in attributes:
        return attributes["dtype"].name
    if name in BOOL_RESULT:
        return "bool"
    if name in INDEX_RESULT:
        return "int64"
    described = [
        operand if dtype is None else (dtype, operand.ndim)
        for operand, dtype in zip(operands, dtypes, strict=True)
    ]
    if name == "where":
        return result_type(described[1:])
    if name in OF_FIRST:
        return dtypes[0]
    promoted = result_type(described)
    if name == "cat":
        promoted = result_type([(dtype, 1) for dtype in dtypes])
    if name in FLOAT_RESULT:
        return to_float(promoted)
    if name in WIDENED and ("int" in promoted or promoted == "bool"):
        return "int64"
    return promoted


def wide(name, operand, dtype, compute):
    """Return an operand in the dtype in which the reference computes."""
    if dtype is None:
        return operand
    if dtype == "bool":
        return operand.astype("float64") if name in FLOAT_RESULT else operand
    if name in INDEXED and "int" in dtype:
        return operand.astype("int64")
    if dtype.startswith("complex"):
        return operand.astype("complex128")
    return operand.astype("float64" if compute == "float" else "int64")


def check(got, want, dtype, context, scale=1.0):
    assert got.dtype.name == dtype, (context, got.dtype, dtype)
    assert got.shape == np.shape(want), (context, got.shape, np.shape(want))
    values = got.numpy()
    if dtype in TOLERANCE:
        tolerance = TOLERANCE[dtype] * scale
        np.testing.assert_allclose(
            values,
            np.asarray(want, "complex128" if dtype.startswith("complex") else "float64"),
            rtol=tolerance,
            atol=tolerance,
            err_msg=str(context),
        )
    else:
        np.testing.assert_array_equal(values, np.asarray(want).astype(dtype), err_msg=str(context))


@pytest.mark.parametrize("name", sorted(set(REFERENCE)))
def test_values(name):
    for index in (index for other, index in CASES if other == name):
        operands, dtypes, attributes = inputs(name, index)
        dtype = expected_dtype(name, operands, dtypes, attributes)
        any_float = any(d and "float" in d for d in dtypes) or name in FLOAT_RESULT
        compute = "float" if any_float or "float" in dtype else "int"
        with np.errstate(all="ignore"):
            want = REFERENCE[name](
                *(wide(name, o, d, compute) for o, d in zip(operands, dtypes, strict=True)),
                **attributes,
            )
        if name == "cast" and "int" in dtype and compute == "float":
            want = np.trunc(want)
        got = apply(
            name, [to_gt(o, d) for o, d in zip(operands, dtypes, strict=True)], **attributes
        )
        scale = 20 if name in ("matmul", "prod", "sum", "mean", "cumsum", "var") else 3
        check(got, want, dtype, (name, index, dtypes, attributes), scale)


@unsharded_only
@pytest.mark.parametrize("name", sorted(set(REFERENCE)))
def test_non_contiguous_operands(name):
    """Operands that are transposed and sliced have the same results as contiguous ones."""
    for index in (index for other, index in CASES if other == name):
        operands, dtypes, attributes = inputs(name, index)
        plain, twisted = [], []
        for operand, dtype in zip(operands, dtypes, strict=True):
            tensor = to_gt(operand, dtype)
            plain.append(tensor)
            if dtype is None or operand.ndim == 0:
                twisted.append(tensor)
                continue
            # Stored transposed, with a border that is sliced off.
            order = list(range(operand.ndim))[::-1]
            stored = gt.tensor(np.pad(operand, 1).transpose(order).copy(), dtype=dtype)
            inner = tuple(slice(1, size - 1) for size in stored.shape)
            twisted.append(stored[inner].permute(*order))
        a = apply(name, plain, **attributes).numpy()
        b = apply(name, twisted, **attributes).numpy()
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6, err_msg=str((name, index)))
