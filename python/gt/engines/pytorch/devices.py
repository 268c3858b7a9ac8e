"""The devices that the engine computes on: copies, memory and captured graphs.

`Processor` is the CPU. `GPU` copies in dedicated streams through pinned memory: while the bus
transfers one piece, the host copies the next, and kernels keep running. All functions of a GPU are
called through `GPU.cuda`, which is `torch.cuda`, so that tests can replace it.
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

#: The size in bytes of a pinned piece, and the maximum number of pieces in flight. The bus takes
#: about a millisecond for a piece, far longer than Python takes to start the next.
PIECE = 32 << 20
_AHEAD = 3
#: The minimum of free memory for a GPU to be usable: CUDA itself takes about half of it.
_LEAST_FREE = 1 << 30
#: How often free memory is queried again, at intervals of half a second.
_PATIENCE = 10
_NO_MEMORY = ("out of memory", "can't allocate memory", "STATUS_ALLOC_FAILED")

#: A function from input tensors to new output tensors.
Code = Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]


class Processor:
    """The CPU: tensors are in host memory."""

    is_gpu = False

    @property
    def model(self) -> str:
        """Return the architecture and SIMD capability of the CPU."""
        return f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"

    #: The UUID by which NVIDIA's management library knows the device, or None.
    uuid: str | None = None

    def __init__(self, device: torch.device):
        self.torch = device

    def to_device(self, values: torch.Tensor) -> torch.Tensor:
        """Return a host tensor on this device; it may share the memory."""
        return values.to(self.torch)

    def to_host(self, flat: torch.Tensor) -> torch.Tensor:
        """Return a flat tensor of this device on the host; blocks until its values are computed."""
        return flat.cpu()

    def memory(self) -> int | None:
        """Return the size of the device memory in bytes; None if it is host memory."""
        return None

    def turns(self) -> Turns | None:
        """Return a timer of device turns if the device computes asynchronously."""
        return None

    def release_memory(self) -> None:
        """Free memory cached for reuse."""

    def is_lost(self, error: BaseException) -> bool:
        """Return whether, after this error, the device fails all calls of this process."""
        return False

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Return whether a PyTorch error reports that memory is exhausted."""
        return isinstance(error, torch.cuda.OutOfMemoryError) or any(
            text in str(error) for text in _NO_MEMORY
        )


class GPU(Processor):
    """A CUDA device: an NVIDIA GPU, or another that PyTorch exposes as one."""

    is_gpu = True
    cuda: Any = torch.cuda

    def __init__(self, device: torch.device):
        super().__init__(device)
        #: The streams of copies to and from the GPU: the bus transfers in both directions at once.
        self._incoming, self._outgoing = self._open()
        self.uuid = self._find_uuid()
        set_precision(os.environ.get("GT_TF32", "") not in ("", "0"))

    @property
    def model(self) -> str:
        """Return the name of the GPU."""
        return self.cuda.get_device_name(self.torch)

    @property
    def _computing(self) -> Any:
        """The stream that runs kernels."""
        return self.cuda.current_stream(self.torch)

    def _find_uuid(self) -> str | None:
        # Of several MIG instances CUDA uses the first.
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
        if visible.startswith("MIG-"):
            return visible
        uuid = getattr(self.cuda.get_device_properties(self.torch), "uuid", None)
        return None if uuid is None or torch.version.hip else str(uuid)

    def _open(self) -> tuple[Any, Any]:
        """Start to use the GPU; return its copy streams. Raises `DeviceError` if it is unusable."""
        try:
            free, total = self.cuda.mem_get_info(self.torch)
            for _ in range(_PATIENCE):
                if free >= min(_LEAST_FREE, total // 4):
                    break
                # The memory of a worker that was just killed is freed with a delay.
                time.sleep(0.5)
                free, total = self.cuda.mem_get_info(self.torch)
            name = self.cuda.get_device_name(self.torch)
            streams = self.cuda.Stream(self.torch), self.cuda.Stream(self.torch)
        except (RuntimeError, AssertionError) as error:
            raise DeviceError(
                f"the GPU {self.torch} cannot be used: {first_line(error)}; "
                "hint: `nvidia-smi` shows its driver and the processes that use it"
            ) from None
        if free < min(_LEAST_FREE, total // 4):
            raise DeviceError(
                f"the GPU {self.torch} ({name}) is in use: {free:,} of its {total:,} bytes are "
                "free; hint: `nvidia-smi` lists its processes, CUDA_VISIBLE_DEVICES selects a GPU"
            )
        return streams

    def to_device(self, values: torch.Tensor) -> torch.Tensor:
        """Copy piece by piece through pinned memory; the host tensor may be reused on return.

        Kernels launched from now on wait for the copy; those already launched do not.
        """
        source = as_bytes(values)
        under_way: deque[Any] = deque()
        with self.cuda.stream(self._incoming):
            # Allocated in the copy stream: memory from the computing stream may still be in use.
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
        """Copy to the host, waiting for this copy only; a single piece stays in pinned memory."""
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
        """Return pinned host memory of this length in bytes.

        PyTorch caches it for reuse once it is dropped and no copy uses it.
        """
        return torch.empty(length, dtype=torch.uint8, pin_memory=True)

    def used_in(self, tensor: torch.Tensor, stream: Any) -> None:
        """Record that a stream uses a tensor: its memory is not reused before that work is done."""
        tensor.record_stream(stream)

    def memory(self) -> int | None:
        """Return the size of the GPU's memory in bytes."""
        return self.cuda.mem_get_info(self.torch)[1]

    def turns(self) -> Turns:
        """Return a timer of the GPU's turns."""
        return Turns(lambda: self.cuda.Event(enable_timing=True), lambda: self._computing)

    def release_memory(self) -> None:
        """Free the GPU memory that PyTorch caches."""
        self.cuda.empty_cache()

    def is_lost(self, error: BaseException) -> bool:
        """Return whether CUDA fails all calls of this process after this error.

        A kernel that accesses a wrong address, or fails an assertion, and an error of the memory
        that the hardware cannot correct have this effect; other errors have not.
        """
        if not isinstance(error, RuntimeError) or self.is_out_of_memory(error):
            return False
        try:
            self.cuda.synchronize(self.torch)
        except RuntimeError as again:
            return "captur" not in str(again)  # another thread captures a graph
        return False

    def capture(
        self, code: Code, inputs: list[torch.Tensor]
    ) -> tuple[Callable[[], None], Sequence[torch.Tensor]]:
        """Capture code as a CUDA graph; return a function that replays it, and its outputs.

        Raises PyTorch's error if the code cannot be captured.
        """
        cuda = self.cuda
        computing, graph, pool = self._computing, cuda.CUDAGraph(), cuda.graph_pool_handle()
        # A failed capture may leave another stream as the current one.
        with cuda.device(self.torch), cuda.stream(computing):
            # Warm up: load kernels and allocate workspaces, which a capture cannot do.
            side = cuda.Stream(self.torch)
            side.wait_stream(computing)
            with cuda.stream(side):
                for _ in range(2):
                    code(list(inputs))
            computing.wait_stream(side)
            try:
                # Other threads may keep using this GPU meanwhile.
                with cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
                    outputs = code(list(inputs))
            except RuntimeError:
                self.end_capture(pool)
                raise
        return graph.replay, outputs

    def end_capture(self, pool: Any) -> None:
        """Reset PyTorch's allocator after a failed capture.

        Otherwise it assumes that the capture is still active, and does not free memory that several
        streams have used.
        """
        with suppress(RuntimeError, AttributeError):  # it was already reset
            torch._C._cuda_endAllocateToPool(self.torch.index, pool)


def open_device(device: int | str | None) -> Processor:
    """Return a device by its name or GPU number; by default the first GPU.

    Without a GPU, a number means the CPU.
    """
    if device is None or isinstance(device, int):
        device = f"cuda:{device or 0}" if torch.cuda.is_available() else "cpu"
    found = torch.device(device)
    if found.type == "cuda" and found.index is None:
        found = torch.device("cuda", 0)
    return GPU(found) if found.type == "cuda" else Processor(found)


def set_precision(tf32: bool) -> None:
    """Set whether float32 products on GPUs round their factors to TF32, in this process.

    Products of 16-bit floats always accumulate in float32.
    """
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    matmul.allow_fp16_reduced_precision_reduction = False
    matmul.allow_bf16_reduced_precision_reduction = False


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """View a contiguous tensor as bytes."""
    return tensor.reshape(-1).view(torch.uint8)


def pieces(length: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each piece of a length."""
    for start in range(0, length, PIECE):
        yield start, min(start + PIECE, length)
