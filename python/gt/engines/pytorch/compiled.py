"""Whole plans, compiled by Inductor.

A plan is traced with the exact lowerings and passed to Inductor directly, without Dynamo: there is
no bytecode to analyse, and there are no guards that could cause recompilation. Numbers are passed
in two tensors, one of floats and one of integers, so that their values are not compiled into the
code. Whether all requirements on values hold is an additional output.
"""

import os
import warnings
from typing import TYPE_CHECKING, Any

# Compile in this process only: workers do not fork, and other cores are busy.
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
if (cache := os.environ.get("GT_COMPILE_CACHE")) and cache != "off":
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(cache, "inductor"))

import torch
from torch._guards import TracingContext, tracing
from torch._inductor import config
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.virtualized import V
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from gt.engines.engine import Meta, Plan, bound
from gt.engines.pytorch.devices import GPU
from gt.engines.pytorch.graphs import captured, is_worth
from gt.engines.pytorch.values import DTYPES, take_required

if TYPE_CHECKING:
    from gt.engines.pytorch.engine import PyTorchEngine

_OPTIONS = {
    "compile_threads": 1,
    # Round to 16-bit floats at every step of the plan, not only when values are stored.
    "emulate_precision_casts": True,
    # Outputs of Inductor's graphs are only valid until the next run; see `graphs`.
    "triton.cudagraphs": False,
}


class CompiledPlan:
    """A compiled plan: a function from the list of inputs to the list of outputs."""

    def __init__(self, engine: "PyTorchEngine", plan: Plan):
        self._engine, self._plan = engine, plan
        places = list(enumerate(plan.inputs))
        self._tensors = [at for at, given in places if isinstance(given, Meta)]
        self._floats = [at for at, given in places if given is float]
        self._whole = [at for at, given in places if given in (int, bool)]
        #: The numbers of the computed values that are outputs, without duplicates.
        self._computed = sorted({at for at in plan.outputs if at >= len(plan.inputs)})
        self._looks = False
        #: The source code that Inductor generated.
        self.code = ""
        self._code = self._compile()

    def __call__(self, values: list[Any]) -> list[Any]:
        """Run the plan."""
        try:
            results = self._code(self._inputs(values))
        except RuntimeError as error:
            if not self._engine.hardware.is_out_of_memory(error):
                raise
            results = None
        if results is None:
            # Step by step the plan needs less memory, and the error names the step that fails.
            self._engine.release_memory()
            return self._engine.run(self._plan, values)
        if self._looks and not results[-1]:
            # Running step by step raises the error of the step that failed.
            return self._engine.run(self._plan, values)
        computed = dict(zip(self._computed, results, strict=False))
        return [
            computed[output] if output in computed else values[output]
            for output in self._plan.outputs
        ]

    def _inputs(self, values: list[Any]) -> list[torch.Tensor]:
        """Return the code's arguments: contiguous tensors, and one tensor per type of number."""
        inputs = [values[at].contiguous() for at in self._tensors]
        for numbers, dtype in ((self._floats, torch.float64), (self._whole, torch.int64)):
            if numbers:
                row = torch.tensor([values[at] for at in numbers], dtype=dtype)
                inputs.append(row.to(self._engine.device, non_blocking=True))
        return inputs

    def _compile(self) -> Any:
        mode = FakeTensorMode()
        with torch.no_grad(), mode:
            examples = self._inputs(
                [
                    torch.empty(given.shape, dtype=DTYPES[given.dtype], device=self._engine.device)
                    if isinstance(given, Meta)
                    else 0
                    for given in self._plan.inputs
                ]
            )
            graph = make_fx(self._traced, decomposition_table=select_decomp_table())(*examples)
        with (
            V.set_fake_mode(mode),
            tracing(TracingContext(mode)),
            config.patch(_OPTIONS),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            code = compile_fx_inner(graph, examples)
        self.code = getattr(code, "source_code", "")
        hardware = self._engine.hardware
        if not isinstance(hardware, GPU) or not is_worth(self._plan):
            return code
        return captured(
            hardware,
            code,
            [torch.zeros(x.shape, dtype=x.dtype, device=self._engine.device) for x in examples],
        )

    def _traced(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute the plan on the result of `_inputs`."""
        plan, taken = self._plan, list(inputs)
        values: list[Any] = list(plan.inputs)  # constants stay; the rest is replaced
        for at in self._tensors:
            values[at] = taken.pop(0)
        for numbers in (self._floats, self._whole):
            if numbers:
                row = taken.pop(0)
                for place, at in enumerate(numbers):
                    values[at] = row[place]
        take_required()
        for step in plan.steps:
            function = bound(self._engine.exact(plan.signature(step)), step)
            values.append(function(*[values[operand] for operand in step.operands]))
        outputs = [values[output] for output in self._computed]
        if required := take_required():
            self._looks = True
            outputs.append(torch.stack([requirement.fine for requirement in required]).all())
        return tuple(outputs)
