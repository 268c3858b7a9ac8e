"""The device "cluster" in PyTorch programs: `torch.cluster`, storages, random numbers."""

import copy
import io
import os
import pickle
import subprocess
import sys

import gt
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
data = pytest.importorskip("torch.utils.data")


@pytest.fixture
def x():
    return torch.arange(12.0, device="cluster").reshape(3, 4)


def host(tensor):
    return tensor.detach().cpu()


def test_it_is_there():
    assert torch.cluster.is_available()
    assert torch.cluster.device_count() == 1
    assert torch.cluster.current_device() == 0
    assert torch.accelerator.current_accelerator() == torch.device("cluster")
    torch.cluster.synchronize()
    torch.accelerator.synchronize()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cluster.set_device(3)


def test_ways_to_the_device(x):
    assert x.is_cluster
    assert torch.ones(2).cluster().device == torch.device("cluster", 0)
    assert torch.nn.Linear(1, 1).cluster().weight.is_cluster
    torch.set_default_device("cluster")
    try:
        assert torch.nn.Linear(2, 2)(torch.randn(1, 2)).is_cluster
    finally:
        torch.set_default_device(None)
    parameter = torch.nn.Parameter(torch.ones(2))
    parameter.data = torch.ones(2, device="cluster")
    assert parameter.is_cluster


def test_tied_weights_stay_tied():
    model = torch.nn.Module()
    model.a, model.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    model.b.weight = model.a.weight
    model.to("cluster")
    assert model.a.weight is model.b.weight


def test_memory():
    before = torch.cluster.memory_allocated()
    tensor = torch.ones(1000, device="cluster")
    view = tensor[10:]
    assert torch.cluster.memory_allocated() == before + 4000
    del tensor
    assert torch.cluster.memory_allocated() == before + 4000
    del view
    assert torch.cluster.memory_allocated() == before
    assert torch.cluster.max_memory_allocated() >= before + 4000
    torch.cluster.reset_peak_memory_stats()
    assert torch.cluster.max_memory_allocated() == before


def test_copies(x):
    other = copy.deepcopy(x)
    x.zero_()
    assert host(other).equal(torch.arange(12.0).reshape(3, 4))
    model = torch.nn.Linear(3, 4).to("cluster")
    assert copy.deepcopy(model).weight.equal(model.weight)
    assert pickle.loads(pickle.dumps(other)).equal(other)


def test_save_and_load(x):
    file = io.BytesIO()
    torch.save({"x": x, "view": x[1]}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded["x"].is_cluster
    loaded["x"][1] = 7
    assert host(loaded["view"]).tolist() == [7.0] * 4
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].equal(host(x))
    file = io.BytesIO()
    torch.save(host(x), file)
    file.seek(0)
    assert torch.load(file, map_location="cluster").equal(x)


def test_storages(x):
    storage = x.untyped_storage()
    assert (storage.nbytes(), storage.device.type) == (48, "cluster")
    assert storage.cpu().tolist() == host(x).untyped_storage().tolist()
    assert torch.empty(0, device="cluster").set_(storage, 4, (2,), (1,)).tolist() == [4.0, 5.0]
    for wrong in (lambda: storage[0], lambda: storage.fill_(0), storage.share_memory_):
        with pytest.raises(RuntimeError, match="has no memory in this process"):
            wrong()


def test_resizing():
    tensor = torch.empty(0, device="cluster")
    assert host(tensor.resize_(3, 2).fill_(1)).sum() == 6
    assert tensor.resize_(2).tolist() == [1.0, 1.0]
    grown = torch.ones(2, device="cluster").resize_(3)
    assert grown[:2].tolist() == [1.0, 1.0]


def test_random_numbers():
    torch.manual_seed(1)
    first = torch.rand(3, device="cluster")
    torch.manual_seed(1)
    assert torch.rand(3, device="cluster").equal(first)
    torch.cluster.manual_seed(3)
    with torch.random.fork_rng(devices=[0], device_type="cluster"):
        inside = torch.rand(3, device="cluster")
    assert torch.rand(3, device="cluster").equal(inside)
    generator = torch.Generator("cluster")
    assert generator.device.type == "cluster"
    drawn = [torch.randn(3, device="cluster", generator=generator.manual_seed(5)) for _ in range(2)]
    assert drawn[0].equal(drawn[1])
    assert not torch.randn(3, device="cluster", generator=generator).equal(drawn[0])


def test_generators_of_the_host_are_as_before():
    assert isinstance(torch.default_generator, torch.Generator)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    assert sorted(order.tolist()) == list(range(9))
    assert torch.Generator().device.type == "cpu"


def test_autocast(x):
    model = torch.nn.Linear(4, 2).to("cluster")
    with torch.autocast("cluster", dtype=torch.bfloat16):
        result = model(x)
        assert result.dtype == torch.bfloat16
        assert torch.nn.functional.mse_loss(result, torch.zeros_like(result)).dtype == torch.float32
        assert result.sum(dtype=torch.float64).dtype == torch.float64
    result.sum().backward()
    assert model.weight.grad.dtype == torch.float32
    assert model(x).dtype == torch.float32


def test_gradient_scaler(x):
    scaler = torch.amp.GradScaler("cluster", init_scale=8.0)
    model = torch.nn.Linear(4, 1).to("cluster")
    before = host(model.weight).clone()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler.scale(model(x).sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert host(model.weight).equal(before)
    assert scaler.get_scale() == 4.0
    optimizer.zero_grad()
    scaler.scale(model(x).sum()).backward()
    scaler.step(optimizer)
    assert torch.allclose(host(model.weight), before - 0.1 * host(x).sum(0))


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_fused_steps(name):
    found = []
    for device in ("cpu", "cluster"):
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2).to(device)
        options = {"lr": 0.1, "fused": True, "weight_decay": 0.1}
        optimizer = getattr(torch.optim, name)(model.parameters(), **options)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(2, 3, device=device)).pow(2).sum().backward()
            optimizer.step()
        found.append(host(model.weight))
    assert torch.allclose(*found, atol=1e-6)


def test_loaders():
    numbers = data.TensorDataset(torch.arange(8.0))
    for options in ({"pin_memory": True}, {"num_workers": 1}):
        batches = [batch for (batch,) in data.DataLoader(numbers, batch_size=4, **options)]
        moved = [batch.to("cluster", non_blocking=True) for batch in batches]
        assert torch.cat(moved).tolist() == list(range(8))


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(x, use_reentrant):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)).to("cluster")
    torch.manual_seed(0)
    plain = torch.autograd.grad(model(x).sum(), model[0].weight)[0]
    torch.manual_seed(0)
    given = x.clone().requires_grad_()
    checkpoint(model, given, use_reentrant=use_reentrant).sum().backward()
    assert torch.allclose(host(model[0].weight.grad), host(plain))


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_functional_transforms(x):
    weight = torch.randn(2, 4, device="cluster")

    def loss(weight):
        return (weight @ x.T).tanh().sum()

    expected = torch.func.grad(lambda w: (w @ host(x).T).tanh().sum())(host(weight))
    assert torch.allclose(host(torch.func.grad(loss)(weight)), expected, atol=1e-6)
    rows = torch.func.vmap(lambda row: row * 2 + row.sum())(x)
    assert torch.allclose(host(rows), host(x) * 2 + host(x).sum(1, keepdim=True))
    assert torch.func.hessian(lambda a: (a**3).sum())(x[0]).diagonal().tolist() == [0, 6, 12, 18]
    assert torch.allclose(host(torch.func.jvp(torch.sin, (x,), (x,))[1]), host(x.cos() * x))


def test_streams_and_events():
    start, end = (torch.cluster.Event(enable_timing=True) for _ in range(2))
    with torch.cluster.stream(torch.cluster.Stream()):
        start.record()
        end.record()
    assert start.elapsed_time(end) >= 0
    with pytest.raises(ValueError, match="must be recorded first"):
        start.elapsed_time(torch.cluster.Event(enable_timing=True))


def test_values_for_python(x):
    assert x[0, 1].item() == 1.0
    assert bool(x[0, 1] > 0)
    assert f"{x[0, 1]:.2f}" == "1.00"
    assert len(list(x)) == 3
    assert "device='cluster:0'" in repr(x)


def test_between_gt_and_pytorch(x):
    ours = device.from_torch(x)
    assert (ours.sum() + 1).item() == 67.0
    theirs = device.to_torch(ours * 2)
    assert theirs.is_cluster
    assert theirs.equal(x * 2)
    assert device.to_torch(ours, "cpu").equal(host(x))
    assert device.from_torch(torch.ones(2, dtype=torch.bfloat16)).dtype == gt.bfloat16


@pytest.mark.parametrize("first", ["import torch", "import gt.torch, torch", "import gt, torch"])
def test_pytorch_finds_the_device(first):
    """The device is found with every order of imports."""
    program = f"{first}\nprint(torch.ones(2, device='cluster').sum().item())"
    environment = {**os.environ}
    environment.pop("TORCH_DEVICE_BACKEND_AUTOLOAD", None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (done.stdout, done.returncode) == ("2.0\n", 0), done


def test_an_old_pytorch_goes_without():
    """With GT installed, an old PyTorch can be imported; `import gt.torch` raises an error."""
    program = """
import torch
torch.__version__ = "2.11.0"
from gt._torch_backend import load
load()
print("imported", flush=True)
import gt.torch
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.stdout == "imported\n", done
    assert "gt.torch needs PyTorch 2.13 or newer, but 2.11.0 is installed" in done.stderr, done
