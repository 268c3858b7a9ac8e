"""What an engine asks of the device that it computes on: copies, memory and captured graphs.

`Processor` is the host itself. `GPU` copies in streams of its own, through pinned memory: the bus
moves one piece while the host copies the next, and kernels run on. Everything that only a GPU has
goes through `GPU.cuda`, which is `torch.cuda`, so that tests can give it another one.
"""

import os
import platform
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import torch

from gt.engines.gpus import DeviceError, first_line
from gt.engines.pytorch.turns import Turns

#: How many bytes are pinned at a time, and how many such pieces are on their way at once. A piece
#: takes the bus about a millisecond, far longer than Python takes to begin the next.
PIECE = 32 << 20
_AHEAD = 3
#: A GPU with less memory free than this is taken: CUDA itself takes about half of it.
_LEAST_FREE = 1 << 30
#: How often it is asked again, twice a second.
_PATIENCE = 10
_NO_MEMORY = ("out of memory", "can't allocate memory", "STATUS_ALLOC_FAILED")

#: Takes tensors that lie anywhere and gives new ones.
Code = Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]


class Processor:
    """The host: tensors lie where values come from."""

    is_gpu = False

    @property
    def model(self) -> str:
        """Return what kind of device it is."""
        return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"

    def __init__(self, device: torch.device):
        self.torch = device

    def to_device(self, values: torch.Tensor) -> torch.Tensor:
        """Give a tensor of the host's on this device; it may be the same memory."""
        return values.to(self.torch)

    def to_host(self, flat: torch.Tensor) -> torch.Tensor:
        """Give a flat tensor of this device's on the host, once its values are there."""
        return flat.cpu()

    def memory(self) -> int | None:
        """Give how much memory the device has, if it is not the host's."""
        return None

    def turns(self) -> Turns | None:
        """Give what measures how long the device takes, if it works behind the host."""
        return None

    def release_memory(self) -> None:
        """Give memory back that is kept for reuse."""

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Say whether an error of PyTorch's says that there is no room."""
        return isinstance(error, torch.cuda.OutOfMemoryError) or any(
            text in str(error) for text in _NO_MEMORY
        )


class GPU(Processor):
    """A GPU of NVIDIA's, or what PyTorch offers under the same name."""

    is_gpu = True
    cuda: Any = torch.cuda

    def __init__(self, device: torch.device):
        super().__init__(device)
        #: The copies to the GPU and those from it: the bus moves both at once.
        self._incoming, self._outgoing = self._open()
        set_precision(os.environ.get("GT_TF32", "") not in ("", "0"))

    @property
    def model(self) -> str:
        """Return what kind of device it is."""
        return self.cuda.get_device_name(self.torch)

    @property
    def _computing(self) -> Any:
        """The stream of kernels."""
        return self.cuda.current_stream(self.torch)

    def _open(self) -> tuple[Any, Any]:
        """Begin to use the GPU; raises `DeviceError` if that cannot be."""
        try:
            free, total = self.cuda.mem_get_info(self.torch)
            for _ in range(_PATIENCE):
                if free >= min(_LEAST_FREE, total // 4):
                    break
                # A worker that was just killed has its memory for a moment longer.
                time.sleep(0.5)
                free, total = self.cuda.mem_get_info(self.torch)
            name = self.cuda.get_device_name(self.torch)
            streams = self.cuda.Stream(self.torch), self.cuda.Stream(self.torch)
        except (RuntimeError, AssertionError) as error:
            raise DeviceError(
                f"the GPU {self.torch} cannot be used: {first_line(error)}; "
                "hint: `nvidia-smi` shows its driver and who uses it"
            ) from None
        if free < min(_LEAST_FREE, total // 4):
            raise DeviceError(
                f"the GPU {self.torch} ({name}) is taken: {free:,} of its {total:,} bytes are "
                "free; hint: `nvidia-smi` shows who uses it, CUDA_VISIBLE_DEVICES chooses another"
            )
        return streams

    def to_device(self, values: torch.Tensor) -> torch.Tensor:
        """Copy piece by piece through pinned memory; the host's values are free on return.

        What is computed from now on waits for the copy, and what was asked for before does not.
        """
        source = as_bytes(values)
        under_way: deque[Any] = deque()
        with self.cuda.stream(self._incoming):
            # Of the copies' own memory: no kernel may still use what is written to.
            made = torch.empty(values.shape, dtype=values.dtype, device=self.torch)
            target = as_bytes(made)
            for start, end in pieces(len(source)):
                if len(under_way) == _AHEAD:
                    under_way.popleft().synchronize()
                pinned = self.pinned(end - start)
                pinned.copy_(source[start:end])
                target[start:end].copy_(pinned, non_blocking=True)
                under_way.append(self._incoming.record_event())
        self._computing.wait_event(under_way[-1])
        self.used_in(made, self._computing)
        return made

    def to_host(self, flat: torch.Tensor) -> torch.Tensor:
        """Copy to pinned memory, which is kept if it is one piece; waits for this copy alone."""
        source = as_bytes(flat)
        under_way: deque[tuple[int, int, torch.Tensor, Any]] = deque()
        self._outgoing.wait_event(self._computing.record_event())
        whole = None if len(source) <= PIECE else torch.empty(len(source), dtype=torch.uint8)

        def finish() -> torch.Tensor:
            start, end, pinned, done = under_way.popleft()
            done.synchronize()
            if whole is None:
                return pinned
            whole[start:end].copy_(pinned)
            return whole

        for start, end in pieces(len(source)):
            if len(under_way) == _AHEAD:
                finish()
            pinned = self.pinned(end - start)
            with self.cuda.stream(self._outgoing):
                pinned.copy_(source[start:end], non_blocking=True)
            under_way.append((start, end, pinned, self._outgoing.record_event()))
        while len(under_way) > 1:
            finish()
        return finish()

    def pinned(self, length: int) -> torch.Tensor:
        """Give bytes of the host that the GPU reads and writes by itself.

        PyTorch keeps them for reuse, once they are dropped and no copy uses them.
        """
        return torch.empty(length, dtype=torch.uint8, pin_memory=True)

    def used_in(self, tensor: torch.Tensor, stream: Any) -> None:
        """Say that a tensor's memory is free for others only after what a stream does by then."""
        tensor.record_stream(stream)

    def memory(self) -> int | None:
        """Give how much memory the GPU has."""
        return self.cuda.mem_get_info(self.torch)[1]

    def turns(self) -> Turns:
        """Give what measures how long the GPU takes."""
        return Turns(lambda: self.cuda.Event(enable_timing=True), lambda: self._computing)

    def release_memory(self) -> None:
        """Give the GPU's memory back that PyTorch keeps."""
        self.cuda.empty_cache()

    def capture(
        self, code: Code, inputs: list[torch.Tensor]
    ) -> tuple[Callable[[], None], Sequence[torch.Tensor]]:
        """Capture code as a graph; give what runs it, and where its outputs will lie.

        Raises what PyTorch does if the code has something that no graph can have.
        """
        cuda = self.cuda
        computing, graph, pool = self._computing, cuda.CUDAGraph(), cuda.graph_pool_handle()
        # A capture that fails may leave another stream as the current one.
        with cuda.device(self.torch), cuda.stream(computing):
            # First runs load kernels and make room to work in, which a graph cannot.
            side = cuda.Stream(self.torch)
            side.wait_stream(computing)
            with cuda.stream(side):
                for _ in range(2):
                    code(list(inputs))
            computing.wait_stream(side)
            try:
                # Other threads may go on with what they do on this GPU.
                with cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                    outputs = code(list(inputs))
            except RuntimeError:
                self.end_capture(pool)
                raise
        return graph.replay, outputs

    def end_capture(self, pool: Any) -> None:
        """Have memory managed as usual after a capture that failed.

        Until then PyTorch takes it for one that goes on, and frees nothing that streams share.
        """
        with suppress(RuntimeError, AttributeError):  # it has ended by itself
            torch._C._cuda_endAllocateToPool(self.torch.index, pool)


def open_device(device: int | str | None) -> Processor:
    """Give a device by its name or by its number among the GPUs; by default the first GPU.

    Without a GPU a number is the processor.
    """
    if device is None or isinstance(device, int):
        device = f"cuda:{device or 0}" if torch.cuda.is_available() else "cpu"
    found = torch.device(device)
    if found.type == "cuda" and found.index is None:
        found = torch.device("cuda", 0)
    return GPU(found) if found.type == "cuda" else Processor(found)


def set_precision(tf32: bool) -> None:
    """Have this process multiply float32 on GPUs as float32, or rounded to TF32 if it is wanted.

    Products of 16-bit floats are summed in float32 in any case.
    """
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """View a tensor that lies in row-major order as bytes."""
    return tensor.reshape(-1).view(torch.uint8)


def pieces(length: int) -> Iterator[tuple[int, int]]:
    """Cut a length into pieces that are pinned at a time: where each starts and ends."""
    for start in range(0, length, PIECE):
        yield start, min(start + PIECE, length)
