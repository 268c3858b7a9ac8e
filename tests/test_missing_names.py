"""Names and modules of PyTorch that GT does not have say so, and what to use instead."""

import importlib
import importlib.util
import sys

import gt
import numpy as np
import pytest
from processes import run_python


@pytest.mark.parametrize(
    "name, hint",
    [
        ("quantize_per_tensor", "gt.autocast"),
        ("qint8", "gt.autocast"),
        ("sparse_csr_tensor", "gt.sparse_coo_tensor"),
        ("jagged", "pad_sequence"),
        ("UntypedStorage", "x.numpy()"),
        ("SymInt", "int, float"),
        ("cudnn_convolution", "gt.nn.functional"),
        ("kl_div", "gt.nn.functional"),
        ("uint16", "gt.uint8"),
        ("ScriptModule", "gt.compile"),
        ("cond", "if of Python"),
        ("set_warn_always", "warnings.simplefilter"),
    ],
)
def test_a_missing_name_says_what_to_use(name, hint):
    assert not hasattr(gt, name)
    with pytest.raises(AttributeError, match=rf"gt has no '{name}': ") as raised:
        getattr(gt, name)
    assert hint in str(raised.value).partition("\n  hint: ")[2]


@pytest.mark.parametrize(
    "name, hint",
    [
        ("gt.library", "gt.custom_op"),
        ("gt.mtia", "gt.signal"),
        ("gt.cuda.nccl", "gt.signal"),
        ("gt.nn.grad", "gt.autograd.grad"),
        ("gt.distributed.elastic", "gt.signal"),
        ("gt.optim.functional", "gt.optim"),
    ],
)
def test_a_missing_module_says_what_to_use(name, hint):
    with pytest.raises(ModuleNotFoundError, match=rf"GT has no module '{name}': ") as raised:
        importlib.import_module(name)
    assert raised.value.name == name and hint in str(raised.value)


def test_other_modules_are_not_found_as_by_python():
    assert importlib.util.find_spec("gt.nothing") is None
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'gt\.nothing'$"):
        importlib.import_module("gt.nothing")


def test_types_of_results():
    x = gt.ones(2, 2)
    assert isinstance(x.max(0), gt.return_types.max) and isinstance(x.sort(), gt.return_types.sort)
    assert isinstance(gt.linalg.svd(x), gt.return_types.linalg_svd)
    for name in gt.return_types.__all__:
        assert issubclass(getattr(gt.return_types, name), tuple)


def test_functions_of_torch_functional_are_those_of_gt():
    torch = pytest.importorskip("torch")
    assert set(gt.functional.__all__) == set(torch.functional.__all__)
    assert all(getattr(gt.functional, each) is getattr(gt, each) for each in gt.functional.__all__)


def test_questions_about_modes_and_types():
    torch = pytest.importorskip("torch")
    for value in (3, [], "a", None, int):
        assert gt.typename(value) == torch.typename(value)
    assert gt.typename(gt.ones(1, dtype=gt.int64)) == "gt.LongTensor"
    assert gt.typename(gt.nn.Linear(1, 1)) == "gt.nn.linear.Linear"
    gt.set_deterministic_debug_mode("warn")
    assert gt.get_deterministic_debug_mode() == 2 and gt.are_deterministic_algorithms_enabled()
    with pytest.raises(ValueError, match="debug_mode is 'all', expected 0, 1, 2"):
        gt.set_deterministic_debug_mode("all")
    assert gt.OutOfMemoryError is gt.cuda.OutOfMemoryError
    assert not (gt.is_anomaly_enabled() or gt.is_inference_mode_enabled() or gt.is_storage(1))


def test_functions_of_sparse_matrices_take_the_dense_ones():
    torch = pytest.importorskip("torch")
    places, values = [[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0]
    wanted = torch.sparse_coo_tensor(places, values, (2, 3), check_invariants=True)
    with pytest.warns(UserWarning, match="no sparse tensors"):
        given = gt.sparse_coo_tensor(places, values, (2, 3))
    assert (
        gt.sparse.sum(given, dim=1).tolist() == torch.sparse.sum(wanted, dim=1).to_dense().tolist()
    )
    assert gt.sparse.sum(given).item() == torch.sparse.sum(wanted).item()
    ones = torch.ones(2, 2), wanted, torch.ones(3, 2)
    given = gt.sparse.addmm(gt.ones(2, 2), given, gt.ones(3, 2))
    assert given.tolist() == torch.sparse.addmm(*ones).tolist()


ANOTHER_NAME = """
import sys
import gt
sys.modules["torch"] = gt
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader
assert torch is gt and nn is gt.nn and nn.__name__ == nn.__spec__.name == "gt.nn"
assert nn.Linear is gt.nn.Linear and DataLoader is gt.utils.data.DataLoader
model = nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
F.mse_loss(model(torch.ones(1, 2)), torch.ones(1, 2)).backward()
optimizer.step()
StepLR(optimizer, 1).step()
try:
    import torch.nothing
except ModuleNotFoundError as error:
    assert "gt.nothing" in str(error)
"""


def test_another_name_of_gt_has_the_same_modules():
    done = run_python(ANOTHER_NAME)
    assert (done.returncode, done.stderr) == (0, "")
    assert "torch.nothing" not in sys.modules


def test_a_dense_tensor_has_no_parts_of_a_sparse_one():
    for name in ("indices", "values", "crow_indices"):
        assert not hasattr(gt.ones(1), name)
        with pytest.raises(AttributeError, match=rf"has no '{name}'[\s\S]*hint: x\.nonzero"):
            getattr(gt.ones(1), name)


def test_a_device_is_a_with_block():
    with gt.device("cpu") as device:
        assert device == gt.device("cpu") and gt.ones(1).tolist() == [1]
    with pytest.raises(RuntimeError, match="no 'meta' device"), gt.device("meta"):
        pass


def test_functions_of_the_compilers():
    torch = pytest.importorskip("torch")

    def squared(x, scale=1.0):
        return {"square": np.square(x) * scale}

    values = np.arange(3, dtype="float32")
    wanted = torch.compiler.wrap_numpy(squared)(torch.from_numpy(values), scale=2.0)
    given = gt.compiler.wrap_numpy(squared)(gt.from_numpy(values), scale=2.0)
    assert given["square"].tolist() == wanted["square"].tolist()
    assert gt.compiler.compile(gt.exp)(gt.zeros(1)).item() == 1
    with gt.compiler.set_stance("force_eager"):
        assert not (gt.compiler.is_dynamo_compiling() or gt.compiler.is_exporting())
    with pytest.raises(RuntimeError, match="stance is 'fast', expected one of 'default'"):
        gt.compiler.set_stance("fast")

    futures = [gt.jit.fork(gt.add, gt.ones(1), other) for other in (1, 2)]
    assert [gt.jit.wait(future).item() for future in futures] == [2, 3]
    model = gt.nn.Linear(1, 1)
    assert gt.jit.trace_module(model, {"forward": gt.ones(1)}) is model


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated:FutureWarning")
def test_linearize_returns_the_derivatives_of_pytorch():
    torch = pytest.importorskip("torch")

    def run(library, derivatives):
        def function(x, y):
            return library.sin(x) * y, (x * x).sum()

        x, y = library.asarray([0.5, 1.5]), library.asarray([2.0, -1.0])
        directions = [(library.ones_like(x), library.zeros_like(y)), (y, x)]
        value, *found = derivatives(library, function, (x, y), directions)
        return [leaf.tolist() for pair in (value, *found) for leaf in pair]

    def linearized(library, function, primals, directions):
        value, derivative = library.func.linearize(function, *primals)
        return [value, *(derivative(*each) for each in directions)]

    def one_by_one(library, function, primals, directions):
        pairs = [library.func.jvp(function, primals, each) for each in directions]
        return [pairs[0][0], *(found for _, found in pairs)]

    for given, wanted in zip(run(gt, linearized), run(torch, one_by_one), strict=True):
        np.testing.assert_allclose(given, wanted, rtol=1e-5)
    with pytest.raises(RuntimeError, match="the structure of the primals"):
        gt.func.linearize(gt.sin, gt.ones(1))[1](gt.ones(1), gt.ones(1))
