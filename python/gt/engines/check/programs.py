"""Plans of several steps, which are run step by step and compiled."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gt.engines.check import reference, wrong
from gt.engines.check.cases import cases_of
from gt.engines.check.plans import Builder
from gt.engines.check.samples import OPERATIONS
from gt.engines.engine import Engine, Meta, Plan
from gt.engines.native import DRAWN


@dataclass
class Program:
    """A plan with its inputs, and other values of the inputs for further runs."""

    builder: Builder
    plan: Plan
    #: Values of inputs in further runs, by number; the same compiled code must take them.
    changes: list[dict[int, Any]] = field(default_factory=list)
    #: Values of inputs, by number, for which a step fails, with the number of that step.
    bad: list[tuple[dict[int, Any], int]] = field(default_factory=list)
    #: The operation whose tolerance applies to each output.
    makers: list[str] = field(default_factory=list)


def f32(*shape: int) -> Meta:
    """Return the meta of a float32 tensor."""
    return Meta("float32", shape)


def training() -> Program:
    """Plan a training step: two layers, cross entropy, its gradient written out, and SGD."""
    random = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return random.uniform(-0.5, 0.5, shape).astype("float32")

    classes = random.integers(0, 3, 8)
    b = Builder(
        *(weights(5, 7), weights(7), weights(7, 3), weights(3)),
        *(weights(8, 5), classes, np.eye(3, dtype="float32"), -0.1, -1 / 8, 0),
    )
    w1, b1, w2, b2, x, y, eye, rate, share, zero = range(10)
    hidden = b.step("matmul", x, w1, output=f32(8, 7))
    hidden = b.step("relu", b.step("add", hidden, b1, output=f32(8, 7)), output=f32(8, 7))
    logits = b.step("matmul", hidden, w2, output=f32(8, 3))
    logits = b.step("add", logits, b2, output=f32(8, 3))
    top = b.step("amax", logits, dim=[1], keepdim=True, output=f32(8, 1))
    exp = b.step("exp", b.step("sub", logits, top, output=f32(8, 3)), output=f32(8, 3))
    total = b.step("sum", exp, dim=[1], keepdim=True, output=f32(8, 1))
    softmax = b.step("div", exp, total, output=f32(8, 3))
    wanted = b.step("index_select", eye, y, dim=0, output=f32(8, 3))
    log = b.step("mul", b.step("log", softmax, output=f32(8, 3)), wanted, output=f32(8, 3))
    loss = b.step("sum", log, dim=[], keepdim=False, output=f32())
    loss = b.step("mul", loss, share, output=f32())
    # The backward pass.
    grad = b.step("sub", wanted, softmax, output=f32(8, 3))
    grad = b.step("mul", grad, share, output=f32(8, 3))
    turned = b.step("permute", hidden, dims=[1, 0], output=f32(7, 8))
    grads = {w2: b.step("matmul", turned, grad, output=f32(7, 3))}
    grads[b2] = b.step("sum", grad, dim=[0], keepdim=False, output=f32(3))
    turned = b.step("permute", w2, dims=[1, 0], output=f32(3, 7))
    grad = b.step("matmul", grad, turned, output=f32(8, 7))
    alive = b.step("gt", hidden, zero, output=Meta("bool", (8, 7)))
    grad = b.step("mul", grad, alive, output=f32(8, 7))
    turned = b.step("permute", x, dims=[1, 0], output=f32(5, 8))
    grads[w1] = b.step("matmul", turned, grad, output=f32(5, 7))
    grads[b1] = b.step("sum", grad, dim=[0], keepdim=False, output=f32(7))
    shapes = {w1: (5, 7), b1: (7,), w2: (7, 3), b2: (3,)}
    new = [b.step("mul_add", w, grads[w], rate, output=f32(*shapes[w])) for w in shapes]
    changes: list[dict[int, Any]] = [{7: -0.05}, {5: np.array([2, 1, 0, 2, 1, 0, 1, 1])}]
    return Program(b, b.plan(*new, loss), changes)


def numbers() -> Program:
    """Plan steps with a scalar of each type, whose value varies from run to run."""
    x, whole = np.array([1.0, 2.0], "float32"), np.array([1, 2], "int32")
    b = Builder(x, whole, 1.5, 2, True)
    outputs = [b.step("mul", 0, number, output=f32(2)) for number in (2, 3, 4)]
    outputs.append(b.step("add", 1, 3, output=Meta("int32", (2,))))
    outputs.append(b.step("add", 1, 2, output=f32(2)))
    outputs.append(b.step("pow", 0, 3, output=f32(2)))
    return Program(b, b.plan(*outputs), [{2: -0.5, 3: 3, 4: False}])


def constants() -> Program:
    """Plan steps with constant scalars."""
    x, whole = np.array([1.5, -2.0], "float32"), np.array([-7, 2], "int32")
    b = Builder(x, whole, 2, 0.5, True)
    outputs = [b.step("pow", 0, 2, output=f32(2)), b.step("pow", 1, 3, output=f32(2))]
    outputs.append(b.step("pow", 1, 2, output=Meta("int32", (2,))))
    outputs.append(b.step("floor_divide", 1, 2, output=Meta("int32", (2,))))
    outputs.append(b.step("mul_add", 0, 3, 0, output=f32(2)))
    outputs.append(b.step("sub", 4, 0, output=f32(2)))
    return Program(b, b.plan(*outputs, constants=True))


def regions() -> Program:
    """Plan slices and slice assignments with varying starts; the input is also an output."""
    x, value = np.arange(30, dtype="float32").reshape(6, 5), np.full((1, 1), -1, "float32")
    b = Builder(x, value, 0, 2)
    region = {"sizes": (2, 2), "steps": (3, 2)}
    cut = b.step("slice", 0, 2, 3, **region, output=f32(2, 2))
    assigned = b.step("slice_assign", 0, 1, 2, 3, **region, output=f32(6, 5))
    turned = b.step("permute", 0, dims=[1, 0], output=f32(5, 6))
    return Program(b, b.plan(cut, assigned, turned, 0), [{2: 2, 3: 1}])


def several() -> Program:
    """Plan an operation with several results, each of which is used."""
    x = np.random.default_rng(1).uniform(-1, 1, (4, 17)).astype("float32")
    b = Builder(x)
    both = b.step("sort", 0, dim=1, descending=True, output=f32(4, 17))
    ordered = b.step("further", both, index=0, output=f32(4, 17))
    places = b.step("further", both, index=1, output=Meta("int64", (4, 17)))
    again = b.step("gather", 0, places, dim=1, output=f32(4, 17))
    return Program(b, b.plan(b.step("sub", ordered, again, output=f32(4, 17)), ordered))


def wrong_values() -> Program:
    """Plan operations that fail for some values of their operands."""
    builder, outputs = wrong.build()
    names = list(wrong.GOOD)
    bad = [({names.index(name): value}, step) for name, value, step in wrong.BAD]
    return Program(builder, builder.plan(*outputs), [], bad)


def everything(engine: Engine) -> Program:
    """Plan all operations that an engine lowers, with a few dtypes each, as one plan."""
    wanted = ("bool", "int64", "float16", "float32")
    cases = []
    for operation in sorted(OPERATIONS.keys() - DRAWN - {"further"}):
        if engine.lowers(operation):
            plain = [case for case in cases_of(operation) if case.plain]
            firsts = {case.dtype: case for case in reversed(plain)}
            cases += [firsts[dtype] for dtype in wanted if dtype in firsts]
    pairs = [zip(case.operands, case.dtypes, strict=True) for case in cases]
    builder, first, outputs = Builder(*(pair for given in pairs for pair in given)), 0, []
    for case in cases:
        operands = range(first, first + len(case.operands))
        first += len(case.operands)
        given = (case.operation, case.operands, case.dtypes, case.attributes)
        output = reference.metas(*given)[0]
        outputs.append(builder.first(case.operation, *operands, output=output, **case.attributes))
    return Program(builder, builder.plan(*outputs), makers=[case.operation for case in cases])


#: All plans by name.
PROGRAMS: dict[str, Callable[[Engine], Program]] = {
    "training": lambda engine: training(),
    "numbers": lambda engine: numbers(),
    "constants": lambda engine: constants(),
    "regions": lambda engine: regions(),
    "several results": lambda engine: several(),
    "wrong values": lambda engine: wrong_values(),
    "everything": everything,
}
