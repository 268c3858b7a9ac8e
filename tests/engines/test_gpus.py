"""GPUs that exist but cannot be used are reported in one line, with a hint."""

import importlib.metadata
import os
import sys
import warnings
from types import SimpleNamespace

import pytest
from gt import engines
from gt.engines import gpus


def torch_with(**cuda):
    """Return a fake PyTorch module with these functions in `cuda`."""
    cuda = {"is_available": lambda: False, "device_count": lambda: 0, **cuda}
    version = SimpleNamespace(cuda="13.2", hip=None)
    return SimpleNamespace(__version__="2.9.0", version=version, cuda=SimpleNamespace(**cuda))


@pytest.fixture
def machine(monkeypatch):
    """Return a function that simulates a machine with a GPU and a version of PyTorch."""
    listed = os.listdir

    def make(torch=None, version="2.9.0", devices=("null", "nvidia0", "nvidiactl")):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.delenv("GT_BACKEND", raising=False)
        monkeypatch.setattr(
            os, "listdir", lambda path: list(devices) if path == "/dev" else listed(path)
        )
        for module in (gpus, engines):
            monkeypatch.setattr(module, "find_spec", lambda name: torch)
        monkeypatch.setattr(importlib.metadata, "version", lambda name: version)
        monkeypatch.setattr(gpus, "_told", set())
        if torch:
            monkeypatch.setitem(sys.modules, "torch", torch)

    return make


def said(capsys) -> str:
    """Choose an engine twice; return the one line that was printed."""
    assert engines.default() == engines.default() == "native"
    out, line = capsys.readouterr()
    assert out == "" and line.startswith("gt: there is a GPU (/dev/nvidia0), but ")
    assert line.count("\n") == 1 and "GT_BACKEND=native" in line
    return line


def test_nothing_is_said_while_all_is_well(machine, capsys):
    machine(torch_with(is_available=lambda: True, device_count=lambda: 3))
    assert (engines.default(), engines.sees_gpu()) == ("pytorch", 3)
    machine(torch_with(), devices=("null", "nvidiactl"))
    assert engines.default() == "native", "a container without its host's GPUs"
    assert capsys.readouterr() == ("", "")


def test_pytorch_is_missing(machine, capsys):
    machine()
    assert "PyTorch is not installed (pip install torch)" in said(capsys)


def test_pytorch_is_too_old(machine, capsys):
    machine(torch_with(), version="2.5.1+cu121")
    assert "PyTorch is 2.5.1+cu121, expected 2.6 or newer" in said(capsys)
    with pytest.raises(ImportError, match=r"^the engine 'pytorch': PyTorch is 2\.5\.1\+cu121"):
        engines.load("pytorch")


def test_pytorch_without_cuda(machine, capsys):
    torch = torch_with()
    torch.version.cuda = None
    machine(torch)
    assert "PyTorch 2.9.0 was built without CUDA" in said(capsys)


def test_the_driver_is_gone(machine, capsys):
    def is_available():
        warnings.warn("CUDA initialization: CUDA unknown error\nmore of it", stacklevel=1)
        return False

    machine(torch_with(is_available=is_available))
    line = said(capsys)
    assert "PyTorch sees none: CUDA initialization: CUDA unknown error; `nvidia-smi`" in line


def test_the_driver_goes_while_it_is_asked(machine, capsys):
    def is_available():
        raise RuntimeError("Driver/library version mismatch\n(see its log)")

    machine(torch_with(is_available=is_available))
    assert "PyTorch cannot use it: Driver/library version mismatch;" in said(capsys)


@pytest.fixture
def cuda(monkeypatch):
    """Return a fake `torch.cuda` with one GPU, and a function that opens the GPU."""
    torch = pytest.importorskip("torch", reason="pytorch: make test-all")
    from gt.engines.pytorch.devices import GPU, time

    monkeypatch.setattr(time, "sleep", lambda seconds: None)

    made = SimpleNamespace(
        mem_get_info=lambda device: (100 << 20, 80 << 30),
        get_device_name=lambda device: "H200",
        get_device_properties=lambda device: SimpleNamespace(),
        Stream=lambda device: None,
    )

    class Opened(GPU):
        cuda = made

    return made, lambda: Opened(torch.device("cuda", 1))


def test_a_gpu_that_others_have_taken(cuda):
    with pytest.raises(gpus.DeviceError) as raised:
        cuda[1]()
    text = str(raised.value)
    assert text.startswith("the GPU cuda:1 (H200) is in use: 104,857,600 of its 85,899,345,920")
    assert "CUDA_VISIBLE_DEVICES" in text and "\n" not in text


def test_a_gpu_that_was_taken_a_moment_ago(cuda):
    made, opened = cuda
    free = [100 << 20, 200 << 20, 70 << 30]
    made.mem_get_info = lambda device: (free.pop(0), 80 << 30)
    opened()
    assert free == []


def test_a_gpu_without_room_to_begin(cuda):
    made, opened = cuda

    def full(device):
        raise RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported ...")

    made.mem_get_info = full
    with pytest.raises(gpus.DeviceError) as raised:
        opened()
    text = str(raised.value)
    assert text.startswith("the GPU cuda:1 cannot be used: CUDA error: out of memory; hint: ")
    assert "\n" not in text


def test_a_worker_says_it_in_one_line(monkeypatch, capsys):
    from gt.worker import __main__ as worker

    def refuse(*_):
        raise gpus.DeviceError("the GPU cuda:0 (H200) is in use: ...")

    monkeypatch.setattr(worker, "stop_at_signals", lambda departure: None)
    monkeypatch.setattr(worker._gt, "run_worker", refuse)
    assert worker.main(["--backend", "pytorch"]) == 1
    assert capsys.readouterr().err == "gt worker: the GPU cuda:0 (H200) is in use: ...\n"
