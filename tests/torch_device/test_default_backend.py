"""`torch.compile` without a backend: GT's on the device "cluster", Inductor on the CPU."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def fresh():
    yield
    torch._dynamo.reset()


@pytest.fixture
def inductor(monkeypatch):
    """Replace Inductor, which needs a C++ compiler, and return the list of its calls."""
    from torch._inductor import compile_fx

    calls = []

    def compiled(graph, inputs, config_patches=None, **options):
        calls.append(config_patches)
        return graph.forward

    monkeypatch.setattr(compile_fx, "compile_fx", compiled)
    return calls


OPTIONS = [
    {},
    {"backend": "inductor"},
    {"mode": "reduce-overhead"},
    {"mode": "max-autotune"},
    {"dynamic": True},
    {"fullgraph": True},
    {"options": {"max_autotune": True}},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_training(inductor, options):
    """On the device: the numbers of the program without compilation, and no call of Inductor."""

    def losses(compile):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)
        ).to("cluster")
        inputs = torch.randn(16, 4).to("cluster")
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        function = compile(model)
        found = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = function(inputs).pow(2).mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    graphs = torch._dynamo.utils.counters["stats"]
    before = graphs["unique_graphs"]
    found = losses(lambda model: torch.compile(model, **options))
    assert graphs["unique_graphs"] > before
    assert found == pytest.approx(losses(lambda model: model), abs=1e-6)
    assert not inductor


def test_the_cpu_is_unchanged(inductor):
    """On the CPU, Inductor is called with the options of the mode; mistakes are found early."""
    assert getattr(torch.compiler, "get_default_backend", lambda: "inductor")() == "inductor"
    function = torch.compile(lambda x: x * 2, mode="max-autotune")
    assert function(torch.ones(3)).tolist() == [2.0] * 3
    expected = torch._inductor.list_mode_options("max-autotune")
    assert inductor == [expected]
    with pytest.raises(RuntimeError, match="Unrecognized mode=none"):
        torch.compile(lambda x: x, mode="none")
    with pytest.raises(RuntimeError, match="Unexpected optimization option none"):
        torch.compile(lambda x: x, options={"none": 1})


def test_each_graph_has_its_backend(inductor):
    """One compiled function, called with tensors of both devices; and one without tensors."""
    function = torch.compile(lambda x: x.sin() + 1)
    x = torch.randn(4)
    expected = x.sin() + 1
    assert torch.allclose(function(x.to("cluster")).cpu(), expected)
    assert len(inductor) == 0
    assert torch.allclose(function(x), expected)
    assert len(inductor) == 1
    made = torch.compile(lambda: torch.ones(3, device="cluster") * 2)()
    assert made.device.type == "cluster" and made.tolist() == [2.0] * 3
    assert len(inductor) == 1
    host = torch.compile(lambda x: (x.cpu() + 1, x * 2))(torch.ones(2, device="cluster"))
    assert [of.device.type for of in host] == ["cpu", "cluster"]
    assert len(inductor) == 1


def test_ways_of_compiling(inductor):
    """`Module.compile`, a decorator, an optimizer's step, autocast and random numbers."""
    model = torch.nn.Linear(4, 4).to("cluster")
    inputs = torch.ones(2, 4, device="cluster")
    expected = model(inputs)
    model.compile()
    assert torch.allclose(model(inputs), expected)
    with torch.autocast("cluster", dtype=torch.bfloat16):
        assert torch.compile(torch.nn.Linear(4, 4).to("cluster"))(inputs).dtype == torch.bfloat16

    @torch.compile
    def dropped(x):
        return torch.nn.functional.dropout(x, 0.5)

    row = torch.ones(1000, device="cluster")
    torch.manual_seed(1)
    found = dropped(row)
    torch.manual_seed(1)
    assert found.equal(torch.nn.functional.dropout(row, 0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model(inputs).sum().backward()
    wanted = model.bias.detach() - 1
    torch.compile(optimizer.step)()
    assert torch.allclose(model.bias, wanted)
    assert not inductor


def test_control_flow(inductor):
    """`torch.cond`, with gradients, and a loop whose length depends on values."""

    @torch.compile
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x - 1, (x,))

    for sign in (1, -1):
        x = torch.full((3,), 0.5 * sign, requires_grad=True)
        here = x.detach().to("cluster").requires_grad_()
        function(here).sum().backward()
        expected = x.sin() if sign > 0 else x - 1
        expected.sum().backward()
        assert torch.allclose(function(here).cpu(), expected)
        assert torch.allclose(here.grad.cpu(), x.grad)
    loop = pytest.importorskip("torch._higher_order_ops.while_loop").while_loop
    doubled = torch.compile(lambda x: loop(lambda x: x.sum() < 100, lambda x: (x * 2,), (x,)))
    assert doubled(torch.ones(4, device="cluster"))[0].tolist() == [32.0] * 4
    assert not inductor
