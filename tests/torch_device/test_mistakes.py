"""Errors of the device "cluster" for unsupported calls."""

import inspect
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")


@pytest.fixture
def x():
    return torch.ones(3, 4, device="cluster")


@pytest.mark.parametrize("operation", [torch.add, lambda a, b: a @ b.T, torch.maximum])
def test_another_device(x, operation):
    message = "Expected all tensors to be on the same device, but found at least two devices"
    with pytest.raises(RuntimeError, match=message):
        operation(x, torch.ones(3, 4))


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("dtype", [torch.uint16, torch.complex32, torch.float8_e5m2])
def test_dtypes_that_it_lacks(dtype):
    with pytest.raises(RuntimeError, match=f"no tensors of {dtype}"):
        torch.empty(2, dtype=dtype).to("cluster")
    with pytest.raises(RuntimeError, match=f"no tensors of {dtype}"):
        torch.empty(2, dtype=dtype, device="cluster")


def test_layouts_that_it_lacks(x):
    with pytest.raises(NotImplementedError, match="_to_sparse .* is not an operation"):
        x.to_sparse()
    with pytest.raises(NotImplementedError, match="quantize_per_tensor"):
        torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_sparse_tensors(x):
    """Constructors, copies and products name the operator, and say what to do."""
    indices = torch.tensor([[0, 1], [1, 0]])
    host = torch.sparse_coo_tensor(indices, torch.ones(2), (2, 2))
    for make in (
        lambda: host.to("cluster"),
        lambda: torch.sparse_coo_tensor(indices, torch.ones(2), (2, 2), device="cluster"),
        lambda: torch.sparse_coo_tensor((2, 2), device="cluster"),
        lambda: torch.sparse.mm(host, torch.ones(2, 2, device="cluster")),
    ):
        with pytest.raises(NotImplementedError, match="aten::.*: .* no sparse tensors\n.*to_dense"):
            make()


def test_sparse_gradients():
    table = torch.nn.Embedding(4, 2, sparse=True).to("cluster")
    with pytest.raises(RuntimeError, match="no sparse gradients"):
        table(torch.tensor([1], device="cluster")).sum().backward()


def test_writing_to_what_is_expanded():
    with pytest.raises(RuntimeError, match="clone"):
        torch.zeros(1, 4, device="cluster").expand(3, 4).add_(1)


def test_results_that_do_not_fit(x):
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.int().div_(2)
    with pytest.raises((RuntimeError, ValueError), match="shape"):
        x[0].add_(x)


def test_bits(x):
    with pytest.raises(RuntimeError, match="bits of torch.float32"):
        x.view(torch.int32)


def test_no_memory_to_read(x):
    with pytest.raises(TypeError, match="can't convert cluster:0 device type tensor to numpy"):
        x.numpy()


def test_a_failure_on_a_worker_names_the_line(x):
    made = torch.linalg.inv_ex(torch.zeros(2, 2, device="cluster"))
    assert made.info.item() != 0
    with pytest.raises(RuntimeError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2, device="cluster"))


def test_errors_of_workers_name_the_users_line():
    """This includes operations that a PyTorch module or a backward pass issued."""
    import gt

    here = __file__.rpartition("/")[2]
    words = torch.tensor([0, 9], device="cluster")
    found = torch.nn.Embedding(5, 4).to("cluster")(words)
    with pytest.raises(gt.errors.WorkerError, match=rf"(?s)embedding: index 9 is not in .*{here}"):
        found.cpu()
    ones = torch.ones(2, 4, device="cluster", requires_grad=True)
    torch.nn.Linear(4, 4).to("cluster")(ones).sum().backward()
    loss = torch.nn.Linear(4, 4).to("cluster")(ones).double().pow(2).sum()
    with gt.debug.explain(quiet=True) as explanation:
        loss.backward()
        number = inspect.currentframe().f_lineno - 1
    assert {step.line.rpartition("/")[2] for step in explanation.steps} == {f"{here}:{number}"}


WITHOUT_KERNEL = """
import gt.torch, torch
x = torch.ones(2, 2, device="cluster")
for _ in range(2):
    found = torch.ops.aten._compute_linear_combination(x, 2 * x)
    print(found.device, found.tolist())
"""


@pytest.mark.parametrize("fallback", ["", "cpu"])
def test_the_host_computes_where_it_is_asked_to(fallback):
    """One line is printed for each operator, however often it runs."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_KERNEL],
        env={**os.environ, "GT_TORCH_FALLBACK": fallback},
        capture_output=True,
        text=True,
        timeout=100,
    )
    name = "aten::_compute_linear_combination"
    if fallback:
        assert done.stdout == "cluster:0 [[4.0, 4.0], [4.0, 4.0]]\n" * 2, done
        assert done.stderr.count(f"gt.torch: {name} is computed on the host") == 1, done
    else:
        assert f"NotImplementedError: {name} (default) is not an operation" in done.stderr, done


def test_nested_tensors_are_refused_and_jagged_ones_work():
    parts = [torch.ones(n, 3, device="cluster", requires_grad=True) for n in (2, 4)]
    with pytest.raises(RuntimeError, match="no nested tensors of layout torch.strided"):
        torch.nested.as_nested_tensor(parts)
    jagged = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    jagged.values().sum().backward()
    assert parts[1].grad.sum().item() == 12.0
