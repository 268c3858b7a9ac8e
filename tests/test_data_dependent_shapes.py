"""Data-dependent shapes: a worker counts the elements, and sends the count instead of the mask."""

import re

import gt
import numpy as np
import pytest
from processes import cluster, embedded_only, run_program


def trained(limit, **environment):
    done = run_program("shapes/masked_training", limit, **environment)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    hot, count, *losses = eval(done.stdout)
    return hot, count, losses


@embedded_only
@pytest.mark.parametrize(("limit", "share"), [("varying", 0.6), ("fixed", 0.75)])
def test_a_training_step_with_a_mask_is_hot_around_it(limit, share):
    """If the count varies, the rest of the step is hot; if it does not, the whole step is."""
    hot, count, losses = trained(limit)
    cold, same, expected = trained(limit, GT_AUTO_COMPILE="0")
    assert hot > share and cold == 0 and count == same, hot
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def sent(log: str) -> int:
    """Return the number of bytes that a server has sent to clients, from its log."""
    sizes = re.findall(r"\| SEND +\|[^|]*\|[^|]*\| +([\d.]+)(B|KB|MB) \|", log)
    return sum(float(size) * {"B": 1, "KB": 1e3, "MB": 1e6}[unit] for size, unit in sizes)


@embedded_only
@pytest.mark.parametrize("placed", ["unsharded", "sharded"])
def test_over_the_network_only_a_few_bytes_are_sent_to_the_client(tmp_path, monkeypatch, placed):
    log = tmp_path / "server.log"
    monkeypatch.setenv("GT_INSTRUCTION_LOG", str(log))
    with cluster(2) as (address, _):
        monkeypatch.delenv("GT_INSTRUCTION_LOG")
        done = run_program("shapes/masks_on_server", address, placed)
        assert done.returncode == 0, done.stderr
    text = log.read_text()
    assert 0 < sent(text) < 10_000, sent(text)


def test_explain_marks_data_dependent_shapes():
    x = gt.arange(10).float()
    with gt.debug.explain(quiet=True) as explanation:
        picked = x[x > 4]
        picked.sum().item()
    counted = [step for step in explanation.steps if step.counted]
    assert [step.operation for step in counted] == ["masked_rows"]
    assert counted[0].output.shape == (5,)
    assert "its shape depends on data" in str(explanation)
