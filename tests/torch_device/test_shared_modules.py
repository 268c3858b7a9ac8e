"""Modules of PyTorch that programs publish, and that others read."""

import pytest
from processes import cluster, embedded_only, one_engine_only, run_python, unsharded_only

pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")

# These tests start their own servers.
pytestmark = [embedded_only, unsharded_only, one_engine_only]

PUBLISH = """
import sys, gt, gt.torch, torch
gt.connect(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
with torch.no_grad():
    model[0].weight.copy_(torch.arange(16.0).reshape(4, 4))
    model[0].bias.zero_()
print(gt.torch.publish("model", model, to="all"))
"""

READ = """
import sys, gt, gt.torch, torch
gt.connect(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
assert gt.torch.shared("model", into=model) is model
assert not any(parameter.requires_grad for parameter in model.parameters())
x = torch.ones(2, 4, device="cluster", requires_grad=True)
y = model[0](x)
y.sum().backward()
print(y.tolist(), x.grad.tolist())
with torch.no_grad():
    holder = lambda of: torch.nn.ParameterList([of])
    copy = torch.nn.Parameter(model[0].weight.clone(), requires_grad=False)
    weight = model[0].weight
    changes = {
        "add_": lambda of: of.add_(1),
        "copy_": lambda of: of.copy_(torch.ones(4, 4)),
        "fill_": lambda of: of.fill_(2.0),
        "a view": lambda of: of[0].mul_(2),
        "an item": lambda of: of.__setitem__((0, 1), 5.0),
        "out": lambda of: torch.add(x, 1.0, out=of),
        "a loaded state": lambda of: holder(of).load_state_dict({"0": torch.ones(4, 4)}),
        "initialization": lambda of: torch.nn.init.normal_(of),
    }
    x = torch.ones(4, 4, device="cluster")
    for name, change in changes.items():
        # What is cached for a tensor of the same layout must not be replayed for a shared one.
        for _ in range(3):
            change(copy)
        for _ in range(2):
            try:
                change(weight)
            except RuntimeError as error:
                assert "gt.torch.shared, and cannot be changed in place" in str(error), error
            else:
                raise AssertionError(f"{name} changes a shared tensor")
    assert copy.shape == (4, 4) and weight.tolist()[0] == [0.0, 1.0, 2.0, 3.0]
print(gt.torch.shared("model")["0.weight"][0].tolist(), gt.shared("model@1")["0.weight"].shape)
"""


def test_a_module_is_read_by_another_program():
    with cluster(1) as (address, _):
        done = run_python(PUBLISH, address)
        assert done.stdout == "model@1\n", done
        done = run_python(READ, address)
        rows, sums = [[6.0, 22.0, 38.0, 54.0]] * 2, [[24.0, 28.0, 32.0, 36.0]] * 2
        assert done.stdout == f"{rows} {sums}\n[0.0, 1.0, 2.0, 3.0] (4, 4)\n", done
