"""Plans for tests, and values on their way into and out of engines."""

import numpy as np
from gt.engines.engine import Engine, Meta, Plan, Step
from samples import OPERATIONS, apply, inputs, to_gt

RANDOM = {"rand", "randn", "randint"}
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


def to_bytes(values: np.ndarray, dtype: str) -> bytes:
    """Give values as `create` takes them; bfloat16 ones come as float32."""
    if dtype == "bfloat16":
        return (np.asarray(values, "float32").view("uint32") >> 16).astype("uint16").tobytes()
    return np.asarray(values, dtype).tobytes()


def to_array(data, meta: Meta) -> np.ndarray:
    """Give values as `read` gives them; bfloat16 as float32."""
    flat = np.frombuffer(memoryview(data), "uint8")
    assert flat.nbytes == meta.bytes, (flat.nbytes, meta)
    if meta.dtype == "bfloat16":
        values = (flat.view("uint16").astype("uint32") << 16).view("float32")
    else:
        values = flat.view(meta.dtype)
    return values.reshape(meta.shape)


def put(engine: Engine, values, dtype: str | None = None):
    """Give an array to an engine; numbers stay as they are."""
    if dtype is None and not isinstance(values, np.ndarray):
        return values
    dtype = dtype or values.dtype.name
    data = memoryview(bytearray(to_bytes(values, dtype)))
    return engine.create(data, dtype, np.shape(values))


def get(engine: Engine, tensor) -> np.ndarray:
    """Read a tensor."""
    return to_array(engine.read(tensor), engine.describe(tensor))


def meta_of(values, dtype: str | None = None):
    """Describe an array, or a number."""
    if dtype is None and not isinstance(values, np.ndarray):
        return type(values)
    return Meta(dtype or values.dtype.name, tuple(np.shape(values)))


class Builder:
    """Builds a plan step by step; `given` are the inputs' values with their dtypes."""

    def __init__(self, *given):
        self.given = [pair if isinstance(pair, tuple) else (pair, None) for pair in given]
        self.steps: list[Step] = []

    def step(self, operation: str, *operands: int, output: Meta, **attributes) -> int:
        """Add a step; give the number of its value."""
        self.steps.append(Step(operation, operands, attributes, output))
        return len(self.given) + len(self.steps) - 1

    def first(self, operation: str, *operands: int, output: Meta, **attributes) -> int:
        """Add a step; give the number of its result, of several of the first."""
        made = self.step(operation, *operands, output=output, **attributes)
        if not OPERATIONS[operation]["several"]:
            return made
        return self.step("further", made, output=output, index=0)

    def plan(self, *outputs: int, constants: bool = False) -> Plan:
        """Give the plan; with `constants`, its numbers are always these."""
        metas = tuple(
            values if constants and isinstance(values, int | float) else meta_of(values, dtype)
            for values, dtype in self.given
        )
        return Plan(metas, tuple(self.steps), outputs)

    def values(self, engine: Engine) -> list:
        """Put the inputs into an engine, anew each time."""
        return [put(engine, values, dtype) for values, dtype in self.given]


def one_step(operation: str, *given, output: Meta, **attributes) -> tuple[Builder, Plan]:
    """Plan a single step on all inputs."""
    builder = Builder(*given)
    return builder, builder.plan(
        builder.first(operation, *range(len(given)), output=output, **attributes)
    )


def reference(operation: str, operands, dtypes, attributes) -> tuple[Meta, np.ndarray]:
    """Compute an operation on the native engine."""
    given = [to_gt(value, dtype) for value, dtype in zip(operands, dtypes, strict=True)]
    result = apply(operation, given, **attributes)
    result = result[0] if isinstance(result, tuple) else result
    return Meta(result.dtype.name, tuple(result.shape)), result.numpy()


def sample(operation: str, index: int):
    """Give a sample's inputs with their dtypes, its attributes, and what the native engine gives.

    The dtype attribute is a name, as workers give it.
    """
    operands, dtypes, attributes = inputs(operation, index)
    meta, want = reference(operation, operands, dtypes, attributes)
    if "dtype" in attributes:
        attributes["dtype"] = attributes["dtype"].name
    return list(zip(operands, dtypes, strict=True)), attributes, meta, want


TOLERANCE = {
    "float16": 4e-3,
    "bfloat16": 3e-2,
    "float32": 3e-6,
    "float64": 1e-12,
    "complex64": 3e-6,
    "complex128": 1e-12,
}
SUMS = "matmul prod sum mean cumsum var std".split()


#: PyTorch's own, in float64, are right to eight or nine digits.
APPROXIMATE = frozenset(
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 polygamma digamma zeta igamma igammac".split()
)


def check(got: np.ndarray, want: np.ndarray, operation: str, dtype: str, context) -> None:
    """Compare values: floats to the dtype's tolerance, others exactly."""
    tolerance = TOLERANCE.get(dtype, 0) * (20 if operation in SUMS else 3)
    if operation in APPROXIMATE:
        tolerance = max(tolerance, 1e-7)
    if operation.startswith("_linalg"):
        tolerance *= 10
    if operation == "_linalg_svd":  # the signs of vectors are anybody's choice
        got, want = np.abs(got), np.abs(want)
    if operation == "_linalg_eig":  # and so is the order
        got, want = np.sort_complex(got), np.sort_complex(want)
    np.testing.assert_allclose(
        got, want, rtol=tolerance, atol=tolerance, err_msg=f"{operation} {context}"
    )
