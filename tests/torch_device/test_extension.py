"""The C++ extension: its build, and replayed calls, which match PyTorch's results."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from processes import run_program

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
pytest.importorskip("gt.torch")
from gt.torch import extension  # noqa: E402

has_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX") or "c++") is None, reason="no C++ compiler is installed"
)


def python(code, **environment):
    """Run code in a new process."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def run(name, **environment):
    """Run a program of tests/programs/torch_device, which imports the device itself."""
    environment = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **environment}
    return run_program(f"torch_device/{name}", timeout=300, **environment)


def build(**environment):
    """Run the command that builds the extension."""
    return subprocess.run(
        [sys.executable, "-m", "gt.torch.build"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )


@has_compiler
def test_it_is_built(tmp_path):
    """The next process uses the built extension; results are the same without it."""
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    built = build(**environment)
    assert built.returncode == 0, built.stderr
    (made,) = pathlib.Path(tmp_path, "gt").iterdir()
    assert str(made) in built.stdout
    without, with_it = (
        run("linear_layer", GT_TORCH_EXTENSION=given, **environment).stdout for given in "01"
    )
    assert without.replace("False", "True") == with_it
    assert "False" in without and "True" in with_it


def test_one_that_cannot_be_loaded(tmp_path):
    """The device works without the extension, with a warning."""
    code = "from gt.torch import extension; print(extension.path())"
    where = python(code, XDG_CACHE_HOME=str(tmp_path))
    found = pathlib.Path(where.stdout.strip())
    found.parent.mkdir(parents=True)
    found.write_bytes(b"no library")
    code = "import torch, gt.torch; print(torch.ones(2, device='cluster').sum().item())"
    done = python(code, XDG_CACHE_HOME=str(tmp_path), GT_TORCH_EXTENSION="1")
    assert done.stdout == "2.0\n"
    assert "runs without its extension" in done.stderr and str(found) in done.stderr


def test_without_a_compiler(tmp_path):
    done = build(CXX="no-such-compiler", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 1
    assert (
        done.stderr.startswith("gt.torch.build: no C++ compiler was found")
        and "hint" in done.stderr
    )
    failing = tmp_path / "c++"
    failing.write_text("#!/bin/sh\necho no headers >&2\nexit 3\n")
    failing.chmod(0o755)
    done = build(CXX=str(failing), XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 1 and "no headers" in done.stderr
    assert not list(tmp_path.glob("gt/*.so"))


needs_extension = pytest.mark.skipif(
    not extension.is_connected(), reason="the extension is not built: python -m gt.torch.build"
)


def both(program):
    """Run a function of tensors several times on both devices, with other numbers each time."""
    for seed in range(4):
        torch.manual_seed(seed)
        given = [torch.randn(4, 3) for _ in range(3)]
        expected = program(*(of.clone() for of in given))
        found = program(*(of.to("cluster") for of in given))
        for one, other in zip(found, expected, strict=True):
            if isinstance(one, torch.Tensor):
                assert one.stride() == other.stride() and one.dtype == other.dtype
                torch.testing.assert_close(one.cpu(), other, equal_nan=True)
            else:
                assert one == other


def written_through_views(x, y, z):
    row, column = x[1], x[:, 2]
    row.add_(y[0])
    column.mul_(2).sub_(z[:, 0])
    x.t()[0].copy_(z[:, 1])
    return x, row, column


def of_one_storage(x, y, z):
    x.add_(x)
    y.copy_(y.flip(0))
    halves = z[:2], z[2:]
    return x, y, torch.add(*halves), torch.add(halves[0], halves[0]), torch.mul(z, z.t().t())


def of_equal_values(x, y, z):
    copy = x.clone()
    product = copy * x
    copy.add_(1)
    return product, copy * x, copy, x, torch.where(x > 0, x, x.clone())


def into_others(x, y, z):
    made = torch.empty_like(x)
    torch.add(x, y, out=made)
    column = torch.zeros(4, 3, device=x.device)
    torch.sum(x, 1, out=column[:, 0])
    grown = torch.empty(0, device=x.device)
    torch.mul(x, z, out=grown)
    return made, column, grown


def numbers(x, y, z):
    found = []
    for number in (0.3, 1.7, -2.5, 0.3, 1, 2, 3.0):
        found += [x * number, x + number, torch.add(x, y, alpha=number), x / number, number - x]
        found += [x.pow(number), torch.clamp(x, max=number), torch.addcmul(x, y, z, value=number)]
    return found


def of_the_host(x, y, z):
    found = []
    for number in (0.25, 3.5, 7.0):
        found += [x * torch.tensor(number), x + torch.tensor(number, dtype=torch.float64)]
        found += [(x > 0).to(torch.int64) + torch.tensor(int(number))]
    return found


def of_lists(x, y, z):
    tensors, others = [x, y, x], [y, z, z]
    torch._foreach_add_(tensors, others, alpha=0.3)
    torch._foreach_mul_([y, z], [0.5, 3.0])
    torch._foreach_addcdiv_([x, y], [y, z], [z + 9, z + 9], [0.1, 0.7])
    return [x, y, z, *torch._foreach_sqrt([x.abs(), y.abs()]), *torch._foreach_norm([x, y])]


def of_other_dtypes(x, y, z):
    half, whole = x.bfloat16(), (y * 9).long()
    whole += 2
    return half * 2, whole, whole // 3, half.float(), whole.float().mean(), (whole > 0) & (x > 0)


def of_several_results(x, y, z):
    top = x.topk(2)
    return (*top, *torch.max(y, 1), *torch.var_mean(z), *x.split(2), *torch.aminmax(x, dim=0))


def without_elements(x, y, z):
    nothing = torch.tensor([], device=x.device)
    return nothing, nothing + 1, torch.cat([nothing, x[0]]), x[:0] * 2, x[:0].sum()


def made_anew(x, y, z):
    found = [torch.zeros(2, 3, device=x.device), torch.arange(2, 9, 3, device=x.device)]
    found += [torch.full((2,), 7, device=x.device), x.new_ones(2), torch.ones_like(x.t())]
    found += [torch.arange(0, 1, 0.25, device=x.device), torch.eye(3, device=x.device)]
    found[0] += 1
    return found


PROGRAMS = (
    written_through_views,
    of_one_storage,
    of_equal_values,
    into_others,
    numbers,
    of_the_host,
    of_lists,
    of_other_dtypes,
    of_several_results,
    without_elements,
    made_anew,
)


@needs_extension
@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda of: of.__name__)
def test_repeated_programs(program):
    both(program)


@needs_extension
def test_results_that_are_arguments():
    x = torch.ones(2, device="cluster")
    for _ in range(3):
        assert x.add_(1) is x
        assert torch.neg(x, out=x) is x


@needs_extension
def test_calls_need_no_python():
    """A call equivalent to an earlier one does not call GT's Python code."""
    called = []
    x = torch.ones(7, 5, device="cluster")

    def step():
        y = torch.nn.functional.softmax(x @ x.t(), -1)
        torch._foreach_add_([y, y], 0.3)
        return torch.cat([y, torch.arange(7, device="cluster")[None]]).sum()

    expected = step()
    sys.setprofile(lambda frame, event, arg: called.append(frame.f_code.co_filename))
    try:
        found = step()
    finally:
        sys.setprofile(None)
    assert found.equal(expected)
    assert not [of for of in called if f"{os.sep}gt{os.sep}" in of]


@needs_extension
def test_events_and_streams():
    """There is one stream, and events impose no order; using them is no error."""
    first, last = torch.Event(device="cluster"), torch.Event(device="cluster")
    first.record()
    last.record()
    last.synchronize()
    stream = torch.accelerator.current_stream()
    stream.wait_event(first)
    stream.wait_stream(stream)
    stream.synchronize()
    assert first.query() and stream.query()


@needs_extension
def test_a_number_and_an_empty_tensor_of_the_host():
    """They are distinguished, in either order."""
    x = torch.ones(1, device="cluster")
    for _ in range(3):
        assert (x + 0).item() == 1 and (x * 0.0).item() == 0
    for empty in (torch.empty(0, dtype=torch.int64), torch.empty(0)):
        with pytest.raises(RuntimeError, match="same device"):
            x + empty


@needs_extension
def test_which_argument_is_given():
    """A returned argument is the one that the operator writes to."""
    add = torch.ops.aten.add.out
    with torch.inference_mode():
        a, one = torch.zeros(2, device="cluster"), torch.ones(2, device="cluster")
        for _ in range(3):
            assert add(a, one, out=a) is a
            alias = a.detach()
            assert add(a, one, out=alias) is alias


def test_a_folder_that_cannot_be_read(tmp_path):
    """The device works without the cache directory."""
    code = "import torch, gt.torch; print(torch.ones(2, device='cluster').sum().item())"
    closed = tmp_path / "file"
    closed.write_text("no folder")
    assert python(code, XDG_CACHE_HOME=str(closed)).stdout == "2.0\n"
    done = build(XDG_CACHE_HOME=str(closed))
    assert done.returncode == 1 and "Traceback" not in done.stderr


@needs_extension
def test_the_end_of_the_process():
    """Computing during interpreter shutdown raises an ordinary error; nothing crashes."""
    done = run("computes_at_exit")
    assert done.returncode == 0, done.stderr
    assert "INTERNAL" not in done.stderr


@needs_extension
def test_forks_beside_threads():
    """A child that is forked while threads compute does not block on locks that they held.

    Neither does the parent when Python collects tensors in the middle of a thread's call.
    """
    done = run("forks_beside_threads")
    assert done.stdout == "0\n", done.stderr
