"""A stand-in for a GPU: the code of the GPU device, run on the CPU.

Its streams run synchronously, its memory is host memory, and its graphs rerun the captured code on
the static inputs. It counts calls.
"""

from collections import Counter
from contextlib import contextmanager, nullcontext
from time import perf_counter
from types import SimpleNamespace

import torch
from gt.engines.pytorch import PyTorchEngine
from gt.engines.pytorch.devices import GPU

#: The memory size that the stand-in reports, in bytes.
TOTAL = 16 << 30
#: Its UUID.
UUID = "ffc79498-8ff3-c2dc-3b0d-fafd804516ae"


class Event:
    def __init__(self, counts: Counter):
        self._counts = counts

    def record(self, stream):
        assert isinstance(stream, Stream)
        self._time = perf_counter()

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: "Event") -> float:
        return 1e3 * (end._time - self._time)

    def synchronize(self):
        self._counts["waits"] += 1


class Stream:
    def __init__(self, counts: Counter):
        self._counts = counts

    def record_event(self) -> Event:
        self._counts["events"] += 1
        return Event(self._counts)

    def wait_event(self, event: Event):
        assert isinstance(event, Event)

    def wait_stream(self, other: "Stream"):
        assert isinstance(other, Stream)

    def synchronize(self):
        raise AssertionError("the engine never waits for a whole stream")


class FakeCUDA:
    """The functions of `torch.cuda` that the engine uses."""

    def __init__(self):
        self.counts = Counter()
        self.free = TOTAL
        #: The message of the error of all calls, if CUDA has failed.
        self.fault = ""
        self.computing = self._current = Stream(self.counts)

    def Stream(self, device):  # noqa: N802
        return Stream(self.counts)

    def Event(self, enable_timing):  # noqa: N802
        assert enable_timing
        self.counts["timers"] += 1
        return Event(self.counts)

    def CUDAGraph(self):  # noqa: N802
        return SimpleNamespace(replay=None)

    def graph_pool_handle(self):
        return "pool"

    def current_stream(self, device):
        return self._current

    @contextmanager
    def stream(self, stream):
        before, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = before

    def device(self, device):
        return nullcontext()

    @contextmanager
    def graph(self, graph, pool, capture_error_mode):
        assert (pool, capture_error_mode) == ("pool", "thread_local")
        self.counts["captures"] += 1
        yield

    def mem_get_info(self, device):
        return self.free, TOTAL

    def get_device_name(self, device):
        return "stand-in"

    def get_device_properties(self, device):
        return SimpleNamespace(uuid=UUID)

    def synchronize(self, device):
        if self.fault:
            raise RuntimeError(self.fault)

    def empty_cache(self):
        self.counts["releases"] += 1


class StandIn(GPU):
    """The GPU device on the CPU."""

    def __init__(self, device: torch.device | None = None, cuda: FakeCUDA | None = None):
        self.cuda = cuda or FakeCUDA()
        super().__init__(device or torch.device("cpu"))

    def pinned(self, length):
        self.cuda.counts["pinned"] += length
        return torch.empty(length, dtype=torch.uint8)

    def used_in(self, tensor, stream):
        assert stream is self.cuda.computing

    def end_capture(self, pool):
        self.cuda.counts["failed captures"] += 1

    def capture(self, code, inputs):
        _, outputs = super().capture(code, inputs)

        def replay():
            self.cuda.counts["replays"] += 1
            for output, new in zip(outputs, code(list(inputs)), strict=True):
                output.copy_(new)

        return replay, outputs


class StandInEngine(PyTorchEngine):
    """The engine with the stand-in: `--backend standin:StandInEngine`."""

    def __init__(self, device: int = 0, autocast: str | None = None):
        super().__init__(device, autocast)

    @staticmethod
    def open_device(device):
        return StandIn()
