"""Shapes that depend on data: counted where the tensor is; the number travels, not the mask."""

import re

import gt
import numpy as np
import pytest
from processes import cluster, embedded_only, run_python

TRAIN = """
import gt, numpy as np
from gt import nn

gt.manual_seed(0)
rng = np.random.default_rng(0)
data = gt.from_numpy(rng.normal(size=(64, 10)).astype("float32"))
target = gt.from_numpy(rng.normal(size=(64, 1)).astype("float32"))
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = gt.optim.Adam(model.parameters(), lr=0.01)
losses = []
for step in range(60):
    out = model(data)
    far = (out - target).abs() > {limit}
    picked, wanted = out[far], target[far]
    loss = (picked - wanted).square().sum() / 64 + out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
stats = list(gt.debug.get_worker_stats().values())[0]["hotpath"]
print([stats["hot_instructions"] / stats["total_instructions"], picked.shape[0], *losses])
"""


def trained(limit, **environment):
    done = run_python(TRAIN.format(limit=limit), **environment)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    hot, count, *losses = eval(done.stdout)
    return hot, count, losses


@embedded_only
@pytest.mark.parametrize(("limit", "share"), [("0.2 + step / 60", 0.6), ("-1", 0.75)])
def test_a_training_step_with_a_mask_is_hot_around_it(limit, share):
    """With a count that varies the rest is hot; with one that stays, all of it is."""
    hot, count, losses = trained(limit)
    cold, same, expected = trained(limit, GT_AUTO_COMPILE="0")
    assert hot > share and cold == 0 and count == same, hot
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def sent(log: str) -> int:
    """Give how many bytes the server has sent to clients, by its log."""
    sizes = re.findall(r"\| SEND +\|[^|]*\|[^|]*\| +([\d.]+)(B|KB|MB) \|", log)
    return sum(float(size) * {"B": 1, "KB": 1e3, "MB": 1e6}[unit] for size, unit in sizes)


CLIENT = """
import sys, gt, numpy as np
gt.connect(sys.argv[1])
values = np.arange(1_000_000, dtype="float32")
gt.register_config("cut", gt.SignalConfig(gt.ShardConfig(axis=0)))
with gt.signal.context("cut" if sys.argv[2] == "cut" else "plain"):
    x = gt.from_numpy(values).clone()
    mask = x % 3 == 0
if sys.argv[2] == "cut":
    assert len(gt.debug.placement(mask)[0].workers) == 2
assert x[mask].shape == (333334,)
total = values[::3].sum(dtype="float64")
assert abs(x[mask].sum().item() - total) < 1e-4 * total
assert mask.nonzero()[-1].item() == 999999
assert (x % 10).unique().tolist() == list(range(10))
assert x.masked_select(mask)[5].item() == 15
x[mask] = gt.arange(333334).float()
assert x[3].item() == 1 and x[4].item() == 4
"""


@embedded_only
@pytest.mark.parametrize("placed", ["whole", "cut"])
def test_over_the_network_a_few_bytes_come_back(tmp_path, monkeypatch, placed):
    log = tmp_path / "server.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    with cluster(2) as (address, _):
        monkeypatch.delenv("GT_INSTRUCTION_LOG")
        done = run_python(CLIENT, address, placed)
        assert done.returncode == 0, done.stderr
    text = log.read_text()
    assert 0 < sent(text) < 10_000, sent(text)


def test_explain_says_that_a_shape_depends_on_data():
    x = gt.arange(10).float()
    with gt.debug.explain(quiet=True) as explanation:
        picked = x[x > 4]
        picked.sum().item()
    counted = [step for step in explanation.steps if step.counted]
    assert [step.operation for step in counted] == ["masked_rows"]
    assert counted[0].output.shape == (5,)
    assert "its shape depends on data" in str(explanation)
