"""Tensors of the device in other processes, and with a default device."""

import io

import pytest
from processes import embedded_only, run_program

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
import gt.torch  # noqa: E402, F401

pytestmark = embedded_only


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_tensors_go_to_other_processes_by_value(method):
    done = run_program("torch_device/sends_tensors", method, timeout=120)
    assert done.stdout.splitlines()[-1] == "[0, 1, 4, 9]", done
    assert "Parameter containing" in done.stdout and "torch.bfloat16" in done.stdout
    assert "a tensor with history cannot be sent to another process" in done.stdout


@pytest.mark.parametrize("default", ["cpu", "cluster"])
@pytest.mark.parametrize("where", [None, "cluster", "cpu"])
def test_files_are_read_under_a_default_device(default, where):
    file = io.BytesIO()
    weight, step = torch.ones(2, device="cluster"), torch.tensor(3.0)
    torch.save({"weight": weight, "step": step}, file)
    file.seek(0)
    with torch.device(default):
        found = torch.load(file, map_location=where)
    expected = {"weight": where or "cluster", "step": where or "cpu"}
    assert {name: of.device.type for name, of in found.items()} == expected
    assert found["weight"].tolist() == [1, 1] and found["step"].item() == 3


@pytest.mark.parametrize("make", ["ones", "zeros", "empty"])
def test_another_index_of_the_device_is_refused(make):
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        getattr(torch, make)(2, device="cluster:7")


@pytest.mark.parametrize("dtype", [torch.int16, torch.uint8, torch.float16, torch.bool])
def test_ranges_are_counted_in_their_dtype(dtype):
    for name, arguments in (("linspace", (0.6, 7.8, 9)), ("eye", (2, 3))):
        if dtype == torch.bool and name == "linspace":
            continue
        expected = getattr(torch, name)(*arguments, dtype=dtype)
        found = getattr(torch, name)(*arguments, dtype=dtype, device="cluster")
        torch.testing.assert_close(found.cpu(), expected)


def test_ranges_write_no_further_than_their_view():
    for name, arguments in (("arange", (3,)), ("linspace", (0, 1, 3)), ("randperm", (3,))):
        base = torch.zeros(10, device="cluster")
        getattr(torch, name)(*arguments, out=base[2:5])
        assert base[5:].tolist() == [0] * 5 and base[:2].tolist() == [0, 0]


def test_a_negative_slope_in_place_is_refused_by_the_gradient():
    x = torch.tensor([-1.0, 2.0], device="cluster", requires_grad=True)
    with pytest.raises(RuntimeError, match="negative slope"):
        torch.nn.functional.elu_(x * 1, -1.0).sum().backward()
