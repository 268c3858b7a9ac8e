"""Operations as functions: `gt.exp(x)` is `x.exp()`."""

from gt._gt import Tensor, tensor, tensor_beside

_UNARY = (
    "abs ceil cos erf exp expm1 floor isfinite isinf isnan log log1p logical_not neg relu round "
    "rsqrt sigmoid sign sin sqrt square tanh"
).split()
_BINARY = (
    "add sub mul div floor_divide remainder pow maximum minimum eq ne lt le gt ge bitwise_and "
    "bitwise_or bitwise_xor logical_and logical_or logical_xor matmul"
).split()
_WITH_ARGUMENTS = (
    "sum mean prod amax amin argmax argmin any all var std max min softmax log_softmax logsumexp "
    "cumsum clamp reshape flatten permute transpose squeeze unsqueeze flip tril triu split chunk "
    "gather scatter_add index_select index_add nonzero clone broadcast_to masked_fill"
).split()


def _function(name: str):
    method = getattr(Tensor, name)

    def function(input, *args, **kwargs):
        if not isinstance(input, Tensor):
            beside = next((given for given in args if isinstance(given, Tensor)), None)
            input = tensor(input) if beside is None else tensor_beside(beside, input)
        return method(input, *args, **kwargs)

    function.__name__ = name
    function.__qualname__ = name
    function.__doc__ = method.__doc__ or f"`{name}` of a tensor; see `Tensor.{name}`."
    return function


for _name in _UNARY + _BINARY + _WITH_ARGUMENTS:
    globals()[_name] = _function(_name)

multiply = globals()["mul"]
subtract = globals()["sub"]
divide = globals()["div"]
clip = globals()["clamp"]


def mm(input: Tensor, other: Tensor) -> Tensor:
    """The product of two matrices."""
    _check_axes("mm", 2, input, other)
    return input.matmul(other)


def bmm(input: Tensor, other: Tensor) -> Tensor:
    """The products of two batches of as many matrices."""
    _check_axes("bmm", 3, input, other)
    if input.shape[0] != other.shape[0]:
        raise ValueError(
            f"bmm: batches of {input.shape[0]} and {other.shape[0]} matrices, expected as many"
        )
    return input.matmul(other)


def _check_axes(name: str, axes: int, *tensors: Tensor) -> None:
    for given in tensors:
        if given.ndim != axes:
            raise ValueError(
                f"{name}: a tensor of shape {given.shape} is given, expected {axes} axes\n"
                "  hint: matmul takes other shapes, too"
            )


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and values. Waits until they are computed."""
    return input.shape == other.shape and bool((input == other).all())


def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether |input - other| <= atol + rtol * |other| everywhere. Waits for the values."""
    close = (input == other) | ((input - other).abs() <= atol + rtol * other.abs())
    if equal_nan:
        close = close | (input.isnan() & other.isnan())
    return bool(close.all())


def numel(input: Tensor) -> int:
    """How many elements a tensor has."""
    return input.numel()


def is_tensor(value) -> bool:
    """Whether a value is a tensor."""
    return isinstance(value, Tensor)


from gt._gt import cat as _cat  # noqa: E402

concat = concatenate = _cat

__all__ = [
    *_UNARY,
    *_BINARY,
    *_WITH_ARGUMENTS,
    "allclose",
    "bmm",
    "clip",
    "concat",
    "concatenate",
    "divide",
    "equal",
    "is_tensor",
    "mm",
    "multiply",
    "numel",
    "subtract",
]
