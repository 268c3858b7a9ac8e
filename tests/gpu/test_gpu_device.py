"""The device of the engine: how NVIDIA's library knows it, and faults after which it is lost."""

import json

import torch
from machine import ENVIRONMENT, make_engine
from marks import gpu_only, standin_only
from processes import run_python
from standin import UUID

FAULT = "CUDA error: an illegal memory access was encountered"


@standin_only
def test_the_uuid_is_that_of_cuda(monkeypatch):
    assert make_engine().gpu_uuid == UUID
    # A number, or a GPU's UUID, may name any device by its beginning.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert make_engine().gpu_uuid == UUID
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-c6d4f1ef,MIG-cba663e8")
    assert make_engine().gpu_uuid == "MIG-c6d4f1ef"


@standin_only
def test_devices_of_others_have_no_uuid(monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "6.4", raising=False)
    assert make_engine().gpu_uuid is None


@standin_only
def test_an_error_that_recurs_in_any_call_means_that_the_device_is_lost():
    engine = make_engine()
    cuda = engine.hardware.cuda
    assert not engine.is_device_lost(RuntimeError("CUDA error: invalid argument"))
    cuda.fault = FAULT
    assert engine.is_device_lost(RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"))
    assert engine.is_device_lost(torch.AcceleratorError(FAULT)), "a RuntimeError, too"
    # These have other causes, and the question would wait for the device.
    assert not engine.is_device_lost(torch.cuda.OutOfMemoryError("CUDA out of memory"))
    assert not engine.is_device_lost(IndexError("index 7 is out of range"))
    cuda.fault = "CUDA error: operation not permitted when stream is capturing"
    assert not engine.is_device_lost(RuntimeError("CUDA error: invalid argument"))


@gpu_only
def test_a_failed_assertion_in_a_kernel_loses_the_device():
    code = (
        "import torch\n"
        "from gt.engines.pytorch import PyTorchEngine\n"
        "engine = PyTorchEngine(0)\n"
        "assert not engine.is_device_lost(RuntimeError('another error'))\n"
        "try:\n"
        "    torch.zeros(2, device='cuda')[torch.tensor([5], device='cuda')].tolist()\n"
        "except RuntimeError as error:\n"
        "    print(engine.is_device_lost(error))\n"
    )
    done = run_python(code, timeout=120, **ENVIRONMENT)
    assert done.stdout == "True\n", done.stderr


@gpu_only
def test_the_status_shows_the_gpu():
    code = (
        "import gt, json, time\n"
        "gt.ones(1000, 1000).sum().item()\n"
        "until = time.monotonic() + 30\n"
        "while not (gpu := gt.status().workers[0]['gpu']) and time.monotonic() < until:\n"
        "    time.sleep(0.1)\n"
        "print(json.dumps(gpu))\n"
    )
    gpu = json.loads(run_python(code, timeout=120, **ENVIRONMENT).stdout)
    assert gpu["name"] == torch.cuda.get_device_name(0)
    assert gpu["uuid"].endswith(str(torch.cuda.get_device_properties(0).uuid))
    assert gpu["index"] is not None and 0 < gpu["used_bytes"] <= gpu["total_bytes"]
