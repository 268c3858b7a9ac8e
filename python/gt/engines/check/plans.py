"""A builder of plans."""

from typing import Any

from gt.engines.check.samples import OPERATIONS
from gt.engines.check.values import meta_of, put
from gt.engines.engine import Engine, Meta, Plan, Step


class Builder:
    """Builds a plan step by step; `given` are the inputs: values, or pairs of values and dtype."""

    def __init__(self, *given: Any):
        self.given: list[tuple[Any, str | None]] = [
            pair if isinstance(pair, tuple) else (pair, None) for pair in given
        ]
        self.steps: list[Step] = []

    def step(self, operation: str, *operands: int, output: Meta, **attributes: Any) -> int:
        """Add a step; return the number of its value."""
        self.steps.append(Step(operation, operands, attributes, output))
        return len(self.given) + len(self.steps) - 1

    def first(self, operation: str, *operands: int, output: Meta, **attributes: Any) -> int:
        """Add a step; return the number of its result, or of the first of several results."""
        made = self.step(operation, *operands, output=output, **attributes)
        if not OPERATIONS[operation]["several"]:
            return made
        return self.step("further", made, output=output, index=0)

    def plan(self, *outputs: int, constants: bool = False) -> Plan:
        """Return the plan; with `constants`, its scalar inputs are constants of the plan."""
        metas = tuple(
            values if constants and isinstance(values, int | float) else meta_of(values, dtype)
            for values, dtype in self.given
        )
        return Plan(metas, tuple(self.steps), outputs)

    def values(self, engine: Engine) -> list[Any]:
        """Create the inputs in an engine and return them."""
        return [put(engine, values, dtype) for values, dtype in self.given]


def one_step(operation: str, *given: Any, output: Meta, **attributes: Any) -> tuple[Builder, Plan]:
    """Plan a single step on all inputs."""
    builder = Builder(*given)
    last = builder.first(operation, *range(len(given)), output=output, **attributes)
    return builder, builder.plan(last)
