"""GT and PyTorch operations in one program, with gradients through both."""

import gc

import gt
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
DEVICES = pytest.mark.parametrize("where", ["cluster", "cpu"])


@pytest.fixture
def layer():
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)


X = [[1.0, -2.0, 3.0], [0.5, 1.0, -1.0]]


def expected(layer):
    """Return the gradients of input, weight and scale, computed by PyTorch on the CPU."""
    x = torch.tensor(X, requires_grad=True)
    scale = torch.tensor(1.5, requires_grad=True)
    hidden = layer(x.sin())
    (hidden.tanh() * scale + hidden).pow(2).sum().backward()
    found = x.grad, layer.weight.grad.clone(), scale.grad
    layer.zero_grad()
    return found


def check(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        one = device.to_torch(one, "cpu") if isinstance(one, gt.Tensor) else one.cpu()
        assert torch.allclose(one, other, atol=1e-5)


@DEVICES
def test_a_function_of_gt_inside_a_program_of_pytorch(layer, where):
    wanted = expected(layer)
    layer.to(where)
    x = torch.tensor(X, device=where, requires_grad=True)
    scale = gt.tensor(1.5, requires_grad=True)
    hidden = layer(x.sin())
    inside = gt.tanh(device.from_torch(hidden)) * scale
    (device.to_torch(inside, where) + hidden).pow(2).sum().backward()
    check((x.grad, layer.weight.grad, scale.grad), wanted)


@DEVICES
def test_a_module_of_pytorch_inside_a_program_of_gt(layer, where):
    wanted = expected(layer)
    layer.to(where)
    x = gt.tensor(X, requires_grad=True)
    scale = gt.tensor(1.5, requires_grad=True)
    hidden = device.from_torch(layer(device.to_torch(gt.sin(x), where)))
    ((gt.tanh(hidden) * scale + hidden) ** 2).sum().backward()
    check((x.grad, layer.weight.grad, scale.grad), wanted)


@DEVICES
def test_back_and_forth(layer, where):
    wanted = expected(layer)
    layer.to(where)
    x = torch.tensor(X, device=where, requires_grad=True)
    scale = torch.tensor(1.5, device=where, requires_grad=True)
    sine = device.to_torch(gt.sin(device.from_torch(x)), where)
    hidden = device.from_torch(layer(sine))
    shown = device.to_torch(gt.tanh(hidden), where) * scale
    (device.to_torch(device.from_torch(shown) + hidden, where) ** 2).sum().backward()
    check((x.grad, layer.weight.grad, scale.grad), wanted)


def test_what_has_no_part_gets_no_gradient(layer):
    layer.to("cluster")
    other = torch.ones(3, device="cluster", requires_grad=True)
    unused = device.from_torch(other)
    x = torch.tensor(X, device="cluster", requires_grad=True)
    device.to_torch(device.from_torch(x) * 2).sum().backward()
    assert other.grad is None
    assert x.grad.tolist() == [[2.0] * 3] * 2
    assert unused.requires_grad


def test_steps_of_a_loop(layer):
    """Crossings of the previous step do not take part in the next one, and are freed."""
    from gt.torch import bridge

    layer.to("cluster")
    x = torch.tensor(X, device="cluster")
    scale = gt.tensor(1.5, requires_grad=True)
    gradients = []
    for _ in range(4):
        layer.zero_grad()
        hidden = layer(x)
        inside = gt.tanh(device.from_torch(hidden)) * scale
        loss = device.to_torch(inside).sum()
        loss.backward()
        gradients.append(layer.weight.grad.tolist())
        gc.collect()
        assert len(bridge._entrances) <= 1
    assert gradients == [gradients[0]] * 4
    del loss, inside, hidden
    gc.collect()
    assert len(bridge._entrances) == 0


def test_without_gradients():
    x = torch.ones(2, device="cluster", requires_grad=True)
    with torch.no_grad():
        assert not device.from_torch(x).requires_grad
    with gt.no_grad():
        assert not device.to_torch(gt.ones(2, requires_grad=True)).requires_grad
