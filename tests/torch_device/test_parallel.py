"""PyTorch programs on several workers: by signals, and by tensor-parallel plans."""

import copy

import gt
import pytest
from processes import embedded_only

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
styles = pytest.importorskip("torch.distributed.tensor.parallel")
pytestmark = [embedded_only, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def workers():
    """Run on two workers."""
    with gt.Session(workers=2):
        yield


def placements(tensor):
    """Return the placements of a PyTorch tensor."""
    return {of.placement for of in gt.debug.placement(device.from_torch(tensor.detach()))}


class Feedforward(torch.nn.Module):
    """An embedding, two layers, and logits for each token."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(12, 8)
        self.layers = torch.nn.ModuleDict(
            {"up": torch.nn.Linear(8, 16), "down": torch.nn.Linear(16, 8)}
        )
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, words):
        x = self.words(words)
        x = x + self.layers["down"](torch.nn.functional.gelu(self.layers["up"](x)))
        return self.norm(x) @ self.words.weight.t()


def train(model, device):
    """Train a model; return its losses and parameters."""
    words = torch.arange(24).reshape(4, 6).remainder(12).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        outputs = model(words[:, :-1]).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(outputs, words[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [of.detach().cpu() for of in model.parameters()]


def test_a_plan_cuts_parameters(workers):
    """Parameters are placed as in the plan, before and after training; values are the same."""
    torch.manual_seed(0)
    model = Feedforward()
    expected, wanted = train(copy.deepcopy(model), "cpu")
    model.to("cluster")
    anywhere = {"output_layouts": (None,), "desired_output_layouts": (None,)}
    plan = {
        "words": styles.RowwiseParallel(),
        "layers.up": styles.ColwiseParallel(),
        "layers.d*": styles.RowwiseParallel(),
        "norm": styles.SequenceParallel(),
        "layers": styles.PrepareModuleOutput(**anywhere),
    }
    assert device.parallelize_module(model, None, plan) is model
    for _ in range(2):
        assert placements(model.words.weight) == {"Shard(0)"}
        assert placements(model.layers["up"].weight) == {"Shard(0)"}
        assert placements(model.layers["up"].bias) == {"Shard(0)"}
        assert placements(model.layers["down"].weight) == {"Shard(1)"}
        assert placements(model.layers["down"].bias) == {"Replicate"}
        if model.words.weight.grad is None:
            found, parameters = train(model, "cluster")
    assert found == pytest.approx(expected, abs=1e-5)
    for parameter, other in zip(parameters, wanted, strict=True):
        assert torch.allclose(parameter, other, atol=1e-4)


def test_a_signal_around_a_module(workers):
    """Results of a module in a scope are placed according to the scope's signal."""
    gt.register_config("rows of a batch", gt.SignalConfig(gt.ShardConfig(axis=0)))
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    inputs = torch.randn(600, 8)
    expected = model(inputs)
    model.to("cluster")
    with gt.signal.context("rows of a batch"):
        found = model(inputs.to("cluster"))
    assert placements(found) == {"Shard(0)"}
    assert torch.allclose(found.cpu(), expected, atol=1e-6)
    other = copy.deepcopy(model).to("cpu")
    other(inputs).pow(2).sum().backward()
    found.pow(2).sum().backward()
    assert torch.allclose(model[0].weight.grad.cpu(), other[0].weight.grad, rtol=1e-3, atol=1e-3)


def test_a_signal_around_a_backward_pass(workers):
    """A backward pass uses the backward signal of the scope in which it is called."""
    gt.register_config(
        "first", gt.SignalConfig(gt.ShardConfig(workers=[0]), backward_signal="second")
    )
    gt.register_config("second", gt.SignalConfig(gt.ShardConfig(workers=[1])))
    gt.register_config("third", gt.SignalConfig(gt.ShardConfig(workers=[0])))
    weight = torch.randn(4, 4, device="cluster", requires_grad=True)

    def where(tensor):
        placed = gt.debug.placement(device.from_torch(tensor.detach()))
        return {worker for of in placed for worker in of.workers}

    with gt.signal.context("first"):
        x = torch.ones(2, 4, device="cluster")
        loss = (x @ weight).pow(2)
        assert where(loss) == {0}
        loss.sum().backward()
    assert 1 in where(weight.grad)
    weight.grad = None
    with gt.signal.context("third"):
        (torch.ones(2, 4, device="cluster") @ weight).pow(2).sum().backward()
    assert where(weight.grad) == {0}


def test_mistakes():
    """Errors about invalid plans name the given and the expected."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    with pytest.raises(ValueError, match=r"(?s)weight of Linear is on cpu.*to\('cluster'\)"):
        device.parallelize_module(model, None, {"0": styles.ColwiseParallel()})
    model.to("cluster")
    with pytest.raises(ValueError, match="(?s)no module of Sequential is named 'up'.*0, 1"):
        device.parallelize_module(model, None, {"up": styles.ColwiseParallel()})
    with pytest.raises(NotImplementedError, match="ColwiseParallel of ReLU"):
        device.parallelize_module(model, None, {"1": styles.ColwiseParallel()})
    with pytest.raises(TypeError, match="device_mesh is 'cuda'"):
        device.parallelize_module(model, "cuda", {"0": styles.ColwiseParallel()})
    for mesh in (0, -1, [], [-1]):
        with pytest.raises(ValueError, match="device_mesh is .*expected one or more workers"):
            device.parallelize_module(model, mesh, {"0": styles.ColwiseParallel()})
    with pytest.raises(ValueError, match="the argument parallelize_plan is missing"):
        device.parallelize_module(model)
