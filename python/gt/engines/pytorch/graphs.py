"""Compiled code as a CUDA graph, which a GPU runs without waiting for Python."""

import torch

from gt.engines.engine import Meta, Plan
from gt.engines.pytorch.devices import GPU, Code

#: The number of bytes that a GPU copies in the time that Python takes to launch a step.
_BYTES_PER_STEP = 4_000_000


def is_worth(plan: Plan) -> bool:
    """Return whether launching a plan's steps takes longer than copying its inputs and outputs."""
    given = len(plan.inputs)
    copied = [meta for meta in plan.inputs if isinstance(meta, Meta)]
    copied += [plan.steps[output - given].output for output in plan.outputs if output >= given]
    return sum(meta.bytes for meta in copied) <= _BYTES_PER_STEP * len(plan.steps)


def captured(gpu: GPU, code: Code, inputs: list[torch.Tensor]) -> Code:
    """Return the code captured as a graph, or unchanged if it cannot be captured.

    `inputs` become the graph's static input tensors.
    """
    try:
        return Captured(gpu, code, inputs)
    except RuntimeError:
        # A failed capture may have left memory in the graph's pool.
        gpu.release_memory()
        return code


class Captured:
    """A captured graph with static input and output tensors.

    Each run copies its inputs to the static ones, and copies the outputs, which the next run
    overwrites.
    """

    def __init__(self, gpu: GPU, code: Code, inputs: list[torch.Tensor]):
        self._inputs = inputs
        self._replay, self._outputs = gpu.capture(code, inputs)

    def __call__(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """Replay the graph on these inputs."""
        for place, given in zip(self._inputs, inputs, strict=True):
            place.copy_(given, non_blocking=True)
        self._replay()
        return [output.clone() for output in self._outputs]
