"""GT's elementwise operations, reductions and products beside PyTorch's, on the same data."""

import itertools
import operator

import gt
import pytest
from promotion import ORDER
from pytorch import check, draw, to_gt, torch

INF, NAN = float("inf"), float("nan")
EDGES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.5, 1e-30, 1e30, 80.0, -110.0]
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLOAT_UNARY = "exp log log1p expm1 sqrt rsqrt sin cos erf sigmoid tanh".split()
UNARY = "abs neg sign relu floor ceil round".split()
UNARY_PLACES = [(name, dtype) for name in FLOAT_UNARY + UNARY for dtype in ("float32", "float64")]


def torch_of(dtype):
    return getattr(torch, dtype)


@pytest.mark.parametrize(("name", "dtype"), UNARY_PLACES)
def test_unary_at_the_edges(name, dtype):
    values = torch.tensor(EDGES, dtype=torch_of(dtype))
    check(getattr(to_gt(values), name)(), getattr(values, name)(), name)


@pytest.mark.parametrize("name", "gelu silu softplus".split())
def test_activations_at_the_edges(name):
    # PyTorch's softplus is x itself above 20, which is the same in float32. Its vectorized gelu of
    # infinity is NaN.
    for dtype in ("float32", "float64"):
        values = torch.tensor([*EDGES, 19.0, 21.0, -20.0], dtype=torch_of(dtype))
        values = values[values.isfinite()] if name == "gelu" else values
        want = getattr(torch.nn.functional, name)(values)
        check(getattr(to_gt(values), name)(), want, (name, dtype), 1e4 if dtype[-2:] == "64" else 1)


@pytest.mark.parametrize("name", FLOAT_UNARY)
def test_unary_of_whole_numbers_is_float32(name):
    for dtype in ("int64", "uint8", "bool"):
        values = torch.tensor([0, 1, 3], dtype=torch_of(dtype))
        check(getattr(to_gt(values), name)(), getattr(values, name)(), (name, dtype))


@pytest.mark.parametrize("sign", OPERATORS)
def test_operators_at_the_edges(sign):
    function = OPERATORS[sign]
    for dtype in ("float32", "float64"):
        a = torch.tensor(EDGES, dtype=torch_of(dtype))
        want = function(a[:, None], a[None, :])
        check(function(to_gt(a)[:, None], to_gt(a)[None, :]), want, (sign, dtype))
        a = a[a != -INF] if sign == "**" else a  # PyTorch takes a square root of -inf: NaN.
        for number in (2, -1.5, 0, 0.5, 3, -1):
            check(function(to_gt(a), number), function(a, number), (sign, dtype, number))
            check(function(number, to_gt(a)), function(number, a), (sign, number, dtype))


@pytest.mark.parametrize("name", ["maximum", "minimum", "logical_and", "logical_or", "logical_xor"])
def test_named_binary_at_the_edges(name):
    a = torch.tensor(EDGES)
    want = getattr(torch, name)(a[:, None], a[None, :])
    check(getattr(gt, name)(to_gt(a)[:, None], to_gt(a)[None, :]), want, name)


@pytest.mark.parametrize("sign", OPERATORS)
def test_negative_whole_numbers(sign):
    """Division rounds down and the remainder takes the divisor's sign."""
    for dtype in ("int64", "int32", "int16", "int8"):
        a = torch.tensor([7, -7, 6, -6, 1, 0, -1, 100], dtype=torch_of(dtype))
        b = torch.tensor([2, -2, 3, -3, 7, -7, 1, -1], dtype=torch_of(dtype))
        b = b.abs() % 4 if sign == "**" else b
        want = OPERATORS[sign](a[:, None], b[None, :])
        check(OPERATORS[sign](to_gt(a)[:, None], to_gt(b)[None, :]), want, (sign, dtype))


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "//", "%", "**", "==", "<"])
def test_promotion_of_every_pair(sign):
    """Tensors, tensors without axes and Python numbers, on either side."""
    function = OPERATORS[sign]
    for left, right in itertools.product(ORDER, ORDER):
        for left_axes, right_axes in itertools.product((True, False), repeat=2):
            a, b = torch.tensor([1, 3, 2], dtype=torch_of(left)), torch.tensor([1, 1, 2])
            b = b.to(torch_of(right))
            a, b = a if left_axes else a[1], b if right_axes else b[0]
            compare_if_defined(function, a, b, (sign, left, a.shape, right, b.shape))
    for dtype, number in itertools.product(ORDER, (True, 2, 2.5)):
        for a in (
            torch.tensor([1, 3, 2], dtype=torch_of(dtype)),
            torch.tensor(1).to(torch_of(dtype)),
        ):
            compare_if_defined(function, a, number, (sign, dtype, a.shape, number))
            compare_if_defined(function, number, a, (sign, number, dtype, a.shape))


def compare_if_defined(function, a, b, context):
    try:
        want = function(a, b)
    except (RuntimeError, TypeError):
        return  # PyTorch has no such operation, such as bool - bool.
    if function is operator.pow and want.dtype == torch.bool:
        return  # PyTorch defines it for numbers, but not for two tensors.
    check(function(to_gt(a), to_gt(b)), want, context)


def test_where_promotes_and_broadcasts():
    condition = torch.tensor([[True], [False]])
    for left, right in itertools.product(ORDER, ORDER):
        a, b = torch.tensor([1, 0, 1]).to(torch_of(left)), torch.tensor(1).to(torch_of(right))
        for x, y in [(a, b), (b, a), (a, 2.5), (3, a)]:
            want = torch.where(condition, x, y)
            check(gt.where(to_gt(condition), to_gt(x), to_gt(y)), want, (left, right))


def test_clamp():
    x = torch.tensor(EDGES)
    for low, high in [(-1, 2), (None, 0.5), (0, None), (2, 1)]:
        check(to_gt(x).clamp(low, high), x.clamp(low, high), (low, high))
    whole = torch.arange(-3, 4)
    check(to_gt(whole).clamp(-1, 1), whole.clamp(-1, 1))
    check(to_gt(whole).clamp(-1.5, 1), whole.clamp(-1.5, 1), "integers between floats")


@pytest.mark.parametrize("dtype", ORDER)
def test_casts(dtype):
    for other in ORDER:
        values = draw(3, 12, dtype=dtype, low=0, high=9)
        check(to_gt(values).to(other), values.to(torch_of(other)), (dtype, other))
    # Values between representable ones round to nearest, ties to even; a cast to bool tests for 0.
    between = torch.tensor([1.00048828125, 2049.0, 2051.0, -0.1, 65504.0, 0.0, NAN, INF, -INF])
    for other in ("float16", "bfloat16", "float64", "bool"):
        check(to_gt(between).to(other), between.to(torch_of(other)), other)


REDUCTIONS = {
    "sum": ("float32", "float64", "int64", "int32", "uint8", "bool"),
    "mean": ("float32", "float64", "float16"),
    "prod": ("float32", "float64", "int64", "bool"),
    "amax": ("float32", "int64", "bool"),
    "amin": ("float32", "int64", "bool"),
    "any": ("float32", "int64", "bool"),
    "all": ("float32", "int64", "bool"),
    "argmax": ("float32", "int64"),
    "argmin": ("float32", "int64"),
    "logsumexp": ("float32", "float64"),
    "var": ("float32", "float64"),
    "std": ("float32", "float64"),
}
PLACES = [((), None), ((), 0), ((5,), None), ((5,), -1), ((2, 3, 4), None), ((2, 3, 4), 1)]
PLACES += [((2, 3, 4), (0, 2)), ((2, 3, 4), (-1, 1)), ((0, 3), 1), ((0, 3), 0), ((3, 0), None)]
PLACES += [((1, 1), 0), ((2, 1, 3), (0, 1, 2)), ((33, 70), 0), ((4, 1030), 1)]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_reductions(name):
    for dtype, (shape, axis), keepdim in itertools.product(REDUCTIONS[name], PLACES, (0, 1)):
        keepdim = bool(keepdim)
        x = draw(len(shape), *shape, dtype=dtype, low=-2 if dtype != "uint8" else 0, high=2)
        several = isinstance(axis, tuple)
        if several and name in ("prod", "argmax", "argmin"):
            continue
        if axis is None and name in ("amax", "amin"):
            axis = ()
        if axis is None:
            if keepdim or name == "logsumexp":
                continue
            given = []
        else:
            given = [axis]
        if name == "logsumexp" and 0 in shape:
            continue  # Tested below.
        try:
            want = getattr(x, name)(*given, keepdim=keepdim) if given else getattr(x, name)()
        except (RuntimeError, IndexError):
            continue  # The extreme of no elements, which test_errors covers.
        axis = None if axis == () else axis
        got = getattr(to_gt(x), name)(axis=axis, keepdims=keepdim)
        check(got, want, (name, dtype, shape, axis, keepdim), 30)


def test_logsumexp_of_nothing_is_the_logarithm_of_zero():
    x = torch.ones(0, 3)
    check(to_gt(x).logsumexp(0), x.logsumexp(0))
    check(to_gt(x).logsumexp(1), x.logsumexp(1))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_corrections_of_variance():
    x = draw(0, 3, 4, dtype="float64")
    for correction, axis in itertools.product((0, 1, 2, 4, 5), (None, 0, (0, 1))):
        for name in ("var", "std"):
            want = getattr(x, name)(axis, correction=correction)
            got = getattr(to_gt(x), name)(axis, correction=correction)
            check(got, want, (name, correction, axis))
    check(to_gt(x).var(0, unbiased=False), x.var(0, unbiased=False))
    # A mean far from zero must not cost precision.
    far = draw(1, 1000) + 1e4
    check(to_gt(far).var(), far.var(), "far from zero", 3e3)


def test_pairs_of_values_and_indices():
    for dtype, shape in itertools.product(("float32", "int64"), [(4,), (3, 5), (2, 3, 4)]):
        x = draw(5, *shape, dtype=dtype, low=-90, high=90)
        for axis, keepdim, name in itertools.product((0, -1), (True, False), ("max", "min")):
            got, want = getattr(to_gt(x), name)(axis, keepdim), getattr(x, name)(axis, keepdim)
            check(got.values, want.values, (name, shape, axis))
            check(got.indices, want.indices, (name, shape, axis))
    x = torch.tensor([[1.0, 3.0, 3.0], [NAN, 1.0, NAN]])
    for name in ("max", "min", "argmax", "argmin", "amax", "amin"):
        check(getattr(to_gt(x), name)(1), getattr(x, name)(1), f"{name} with ties and NaN")
        check(getattr(to_gt(x), name)(), getattr(x, name)(), f"{name} with NaN")


def test_softmax_and_cumulative_sums():
    for shape, axis in [((5,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 3, 4), 1), ((0, 3), 1), ((), 0)]:
        for dtype in ("float32", "float64"):
            x = draw(7, *shape, dtype=dtype, low=-90, high=90)
            for name in ("softmax", "log_softmax", "cumsum"):
                check(getattr(to_gt(x), name)(axis), getattr(x, name)(axis), (name, shape), 20)
    rows = torch.tensor([[INF, 1.0], [-INF, 0.0], [-INF, -INF], [NAN, 1.0], [1e30, -1e30]])
    for name in ("softmax", "log_softmax", "logsumexp"):
        check(getattr(to_gt(rows), name)(1), getattr(rows, name)(1), name)
    check(to_gt(torch.arange(5)).cumsum(0), torch.arange(5).cumsum(0))


MATMULS = [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 3, 4), (4,))]
MATMULS += [((4,), (2, 4, 3)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4))]
MATMULS += [((2, 1, 3, 4), (5, 4, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,))]
MATMULS += [((65, 33), (33, 70)), ((1, 200), (200, 1)), ((2, 2, 0), (0, 3)), ((0, 2, 3), (3, 4))]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16", "bfloat16"])
def test_matmul_in_all_forms(dtype):
    for left, right in MATMULS:
        a, b = draw(1, *left, dtype=dtype), draw(2, *right, dtype=dtype)
        check(to_gt(a) @ to_gt(b), a @ b, (dtype, left, right), 30)
        # Transposed and sliced operands have the same result.
        a, b = draw(1, *left[::-1], dtype=dtype).mT if len(left) == 2 else a, b
        if len(left) == 2:
            check(to_gt(a.mT).mT @ to_gt(b), a @ b, (dtype, left, right, "transposed"), 30)
        if len(right) == 2:
            wide = draw(3, *(2 * n for n in right), dtype=dtype)
            want = a @ wide[::2, 1::2]
            check(to_gt(a) @ to_gt(wide)[::2, 1::2], want, (left, right, "sliced"), 30)
