"""Checks of an engine's plans, step by step and compiled, against the native engine."""

from collections.abc import Callable
from typing import Any

from gt.engines.check.operations import described
from gt.engines.check.programs import Program
from gt.engines.check.reference import Reference
from gt.engines.check.values import difference, get, put, to_array
from gt.engines.engine import Engine
from gt.engines.step_error import StepError

Run = Callable[[list[Any]], Any]


class Runner:
    """Runs a program on an engine, and reports errors to `wrong`."""

    def __init__(
        self,
        engine: Engine,
        program: Program,
        tell: Callable[[str], None],
        wrong: Callable[[str, str], None],
    ):
        self.engine = engine
        self.program = program
        self.tell = tell
        self.wrong = wrong
        self.reference = Reference()

    def can_run(self) -> bool:
        """Return whether the engine lowers all operations; missing ones are reported elsewhere."""
        try:
            for step in self.program.plan.steps:
                self.engine.lowering(self.program.plan.signature(step))
        except Exception:
            return False
        return True

    def compile(self) -> bool:
        """Compile the plan and run it; return whether the engine compiled it."""
        self.tell("compile")
        try:
            compiled = self.engine.compile(self.program.plan)
        except Exception as error:
            self.wrong("compile", f"raises {described(error)}")
            return False
        if compiled is not None:
            self.run(compiled, "compiled")
        return compiled is not None

    def run_plainly(self) -> None:
        """Run the plan step by step."""
        self.run(lambda values: self.engine.run(self.program.plan, values), "step by step")

    def run(self, run: Run, how: str) -> None:
        """Run the plan with `run` on all inputs."""
        for changes in ({}, *self.program.changes, {}):
            about = f"{how}, with {changes}" if changes else how
            self.tell(about)
            try:
                self._compare(run(self._values(self.engine, changes)), changes, about)
            except Exception as error:
                self.wrong(about, f"raises {described(error)}")
        for changes, step in self.program.bad:
            about = f"{how}, with {changes}"
            self.tell(about)
            self._fail(run, changes, step, about)

    def _values(self, engine: Engine, changes: dict[int, Any]) -> list[Any]:
        values = self.program.builder.values(engine)
        for number, value in changes.items():
            values[number] = put(engine, value)
        return values

    def _compare(self, outputs: Any, changes: dict[int, Any], about: str) -> None:
        plan = self.program.plan
        wanted = self.reference.run(plan, self._values(self.reference, changes))
        if len(outputs) != len(wanted):
            raise ValueError(f"{len(outputs)} outputs, expected {len(wanted)}")
        makers = self.program.makers or ["sum"] * len(wanted)
        for number, (output, want, maker) in enumerate(zip(outputs, wanted, makers, strict=True)):
            meta, found = want.meta, self.engine.describe(output)
            if (found.dtype, tuple(found.shape)) != (meta.dtype, meta.shape):
                text = f"is {found.dtype} {found.shape}, expected {meta.dtype} {meta.shape}"
            else:
                got, right = get(self.engine, output), to_array(want.data, meta)
                text = difference(got, right, maker, meta.dtype) or ""
            if text:
                self.wrong(about, f"output {number} (of {maker}) {text}")

    def _fail(self, run: Run, changes: dict[int, Any], step: int, about: str) -> None:
        try:
            self.reference.run(self.program.plan, self._values(self.reference, changes))
            raise AssertionError("the native engine accepts values that it should reject")
        except StepError as error:
            words = str(error)
        try:
            run(self._values(self.engine, changes))
            self.wrong(about, f"returns a result, expected the error: {words}")
        except StepError as error:
            if (error.step, str(error)) != (step, words):
                text = f"step {error.step} fails: {error}\nexpected step {step}: {words}"
                self.wrong(about, text)
        except Exception as error:
            self.wrong(about, f"raises {described(error)}\nexpected StepError: {words}")
