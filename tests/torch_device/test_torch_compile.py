"""`torch.compile(..., backend="gt")` on the device "cluster"."""

import io

import pytest
from language_models import language_model

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh():
    yield
    torch._dynamo.reset()


def trained(model, function, inputs, steps=4):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = function(*inputs)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training():
    def losses(compiles):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3)
        ).to("cluster")
        inputs = torch.randn(8, 6).to("cluster"), torch.randint(0, 3, (8,)).to("cluster")

        def loss(x, labels):
            return torch.nn.functional.cross_entropy(model(x), labels)

        function = torch.compile(loss, backend="gt") if compiles else loss
        return trained(model, function, inputs)

    assert losses(True) == pytest.approx(losses(False), abs=1e-6)


def test_views_and_buffers():
    def function(x):
        parts = x.t()[1:].unsqueeze(0).expand(2, 3, 5).split(2, 1)
        return [part.contiguous() * torch.arange(5, device=x.device) for part in parts], x.t()

    x = torch.arange(20.0, device="cluster").reshape(5, 4)
    found = torch.compile(function, backend="gt")(x)
    expected = function(x)
    for one, other in zip(found[0], expected[0], strict=True):
        assert one.equal(other)
    assert found[1].stride() == expected[1].stride()
    model = torch.nn.BatchNorm1d(4).to("cluster")
    torch.compile(model, backend="gt")(x)
    assert torch.allclose(model.running_mean.cpu(), 0.1 * x.mean(0).cpu())


def test_changes_in_place():
    x = torch.zeros(3, device="cluster")

    @torch.compile(backend="gt")
    def step(x):
        x.add_(1)
        return x * 2

    assert step(x).tolist() == [2.0] * 3
    assert step(x).tolist() == [4.0] * 3
    assert x.tolist() == [2.0] * 3


RESULTS = {
    "slice": lambda x: (x * 2)[:, :2],
    "select": lambda x: (x * 2)[:, 1],
    "steps": lambda x: (x * 2)[:, ::2],
    "chunk": lambda x: torch.chunk(x * 2, 2, 1)[1],
    "diagonal": lambda x: (x @ x.t()).diagonal(),
    "expanded": lambda x: x.sum(1, keepdim=True).expand(4, 6),
    "expanded row": lambda x: (x * 2)[:1].expand(4, 6),
    "transposed": lambda x: (x * 2).t(),
    "permuted": lambda x: (x.reshape(2, 2, 6) * 2).permute(2, 0, 1),
    "several": lambda x: (x.t() + 1, x[1:] * 2, x),
    "constant": lambda x: x + torch.arange(6.0, device=x.device),
    "number": lambda x: x * torch.tensor(2.5),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_lie_anyhow(name):
    """Results with gaps, permuted and expanded results, in the first and in later calls."""
    compiled = torch.compile(RESULTS[name], backend="gt")
    for seed in range(3):
        x = torch.arange(24.0).reshape(4, 6) + seed
        found, expected = compiled(x.to("cluster")), RESULTS[name](x)
        if isinstance(expected, torch.Tensor):
            found, expected = [found], [expected]
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one.cpu(), other)


def test_shapes_that_change():
    @torch.compile(backend="gt", dynamic=True)
    def function(x):
        return (x * 2).sum(0)

    for length in (2, 3, 7):
        assert function(torch.ones(length, 2, device="cluster")).tolist() == [2.0 * length] * 2


def test_a_transformer():
    pytest.importorskip("transformers")

    def losses(compiles):
        model = language_model("LlamaForCausalLM").to("cluster")
        tokens = torch.randint(0, 50, (2, 8)).to("cluster")
        module = torch.compile(model, backend="gt") if compiles else model

        def loss(tokens):
            return module(input_ids=tokens, labels=tokens).loss

        return trained(model, loss, (tokens,))

    assert losses(True) == pytest.approx(losses(False), abs=1e-4)


def test_exported_programs_load():
    """Saved programs of `torch.export` work if moved to the device or exported there."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    inputs = torch.randn(5, 4)
    expected = model(inputs)
    passes = pytest.importorskip("torch.export.passes")
    batch = torch.export.Dim.DYNAMIC
    exported = torch.export.export(model, (torch.randn(3, 4),), dynamic_shapes=({0: batch},))
    loaded = saved_and_loaded(exported)
    moved = passes.move_to_device_pass(saved_and_loaded(exported), "cluster")
    for module in (loaded.module().to("cluster"), moved.module()):
        assert torch.allclose(module(inputs.to("cluster")).cpu(), expected, atol=1e-6)
    here = torch.export.export(model.to("cluster"), (inputs.to("cluster"),))
    found = saved_and_loaded(here).module()(inputs.to("cluster"))
    assert found.device.type == "cluster"
    assert torch.allclose(found.cpu(), expected, atol=1e-6)


def saved_and_loaded(exported):
    """Save a program and load it again."""
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    return torch.export.load(file)
