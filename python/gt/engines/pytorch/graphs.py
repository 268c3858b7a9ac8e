"""Compiled code as one CUDA graph, which a GPU runs without waiting for Python."""

from collections.abc import Callable, Sequence

import torch

from gt.engines.engine import Meta, Plan

#: Copying this many bytes takes a GPU about as long as Python takes to launch a step.
_BYTES_PER_STEP = 4_000_000


def is_worth(plan: Plan) -> bool:
    """Say whether launching a plan's steps takes longer than copying its inputs and outputs."""
    given = len(plan.inputs)
    copied = [meta for meta in plan.inputs if isinstance(meta, Meta)]
    copied += [plan.steps[output - given].output for output in plan.outputs if output >= given]
    return sum(meta.bytes for meta in copied) <= _BYTES_PER_STEP * len(plan.steps)


class Captured:
    """Runs code on inputs that lie where they lay when the graph was captured.

    They are copied there, and outputs are copied away: the next run overwrites them.
    """

    def __init__(
        self,
        code: Callable[[list[torch.Tensor]], Sequence[torch.Tensor]],
        inputs: list[torch.Tensor],
    ):
        self._inputs = inputs
        self._graph = torch.cuda.CUDAGraph()
        # First runs load kernels and make room to work in, which a graph cannot.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                code(list(inputs))
        torch.cuda.current_stream().wait_stream(side)
        # Other threads may go on with what they do on this GPU.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            self._outputs = code(list(inputs))

    def __call__(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """Run the graph on other inputs."""
        for place, given in zip(self._inputs, inputs, strict=True):
            place.copy_(given, non_blocking=True)
        self._graph.replay()
        return [output.clone() for output in self._outputs]
