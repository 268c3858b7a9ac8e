"""Compiled code as one CUDA graph, which a GPU runs without waiting for Python."""

import torch

from gt.engines.engine import Meta, Plan
from gt.engines.pytorch.devices import GPU, Code

#: Copying this many bytes takes a GPU about as long as Python takes to launch a step.
_BYTES_PER_STEP = 4_000_000


def is_worth(plan: Plan) -> bool:
    """Say whether launching a plan's steps takes longer than copying its inputs and outputs."""
    given = len(plan.inputs)
    copied = [meta for meta in plan.inputs if isinstance(meta, Meta)]
    copied += [plan.steps[output - given].output for output in plan.outputs if output >= given]
    return sum(meta.bytes for meta in copied) <= _BYTES_PER_STEP * len(plan.steps)


def captured(gpu: GPU, code: Code, inputs: list[torch.Tensor]) -> Code:
    """Give code that runs as a graph, or as it is if no graph can have it.

    `inputs` are where the graph's inputs will lie.
    """
    try:
        return Captured(gpu, code, inputs)
    except RuntimeError:
        # What failed may have left memory to a graph that there is not.
        gpu.release_memory()
        return code


class Captured:
    """Runs code on inputs that lie where they lay when the graph was captured.

    They are copied there, and outputs are copied away: the next run overwrites them.
    """

    def __init__(self, gpu: GPU, code: Code, inputs: list[torch.Tensor]):
        self._inputs = inputs
        self._replay, self._outputs = gpu.capture(code, inputs)

    def __call__(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """Run the graph on other inputs."""
        for place, given in zip(self._inputs, inputs, strict=True):
            place.copy_(given, non_blocking=True)
        self._replay()
        return [output.clone() for output in self._outputs]
