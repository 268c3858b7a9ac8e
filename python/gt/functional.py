"""Operations as functions: `gt.exp(x)` is `x.exp()`."""

from gt._gt import Tensor, tensor

_UNARY = (
    "abs ceil cos erf exp expm1 floor isnan log log1p logical_not neg relu round rsqrt sigmoid "
    "sign sin sqrt tanh"
).split()
_BINARY = (
    "add sub mul div floor_divide remainder pow maximum minimum eq ne lt le gt ge bitwise_and "
    "bitwise_or bitwise_xor logical_and logical_or logical_xor matmul"
).split()
_WITH_ARGUMENTS = (
    "sum mean prod amax amin argmax argmin any all var std max min softmax log_softmax logsumexp "
    "cumsum clamp reshape flatten permute transpose squeeze unsqueeze flip tril triu split chunk "
    "gather scatter_add index_select index_add nonzero clone"
).split()


def _function(name: str):
    method = getattr(Tensor, name)

    def function(input, *args, **kwargs):
        if not isinstance(input, Tensor):
            input = tensor(input)
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


def mm(input: Tensor, other: Tensor) -> Tensor:
    """The product of two matrices."""
    return input.matmul(other)


bmm = mm


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
    "bmm",
    "concat",
    "concatenate",
    "divide",
    "is_tensor",
    "mm",
    "multiply",
    "numel",
    "subtract",
]
