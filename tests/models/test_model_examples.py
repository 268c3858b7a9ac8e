"""The example models run, and their results do not depend on the number of workers."""

import json
from pathlib import Path

import numpy as np
import pytest
from plans import CUT
from processes import ON_FOUR_WORKERS, embedded_only, run_python, unsharded_only
from twins import diffusion, lstm, policy_gradient, resnet, vae, vit

TESTS = Path(__file__).resolve().parents[1]


def test_resnet_runs(capsys):
    (accuracy,) = resnet.main(epochs=1, width=4)
    assert 0 <= accuracy <= 1
    printed = capsys.readouterr().out
    assert "ResNet-18 of width 4: 45," in printed and f"test accuracy {accuracy:.1%}" in printed


def test_vit_runs(capsys):
    (accuracy,) = vit.main(epochs=1)
    assert 0.15 < accuracy < 1, "better than chance"
    assert f"test accuracy {accuracy:.1%}" in capsys.readouterr().out


def test_patches_that_do_not_fit():
    with pytest.raises(ValueError, match="image_size is 9, expected a multiple of patch_size, 2"):
        vit.VisionTransformer(9, 2, 1, 1, 4, 4)


def test_lstm_runs(tmp_path, capsys):
    path = tmp_path / "text"
    path.write_text("    def go(self):\n        self.step()\n" * 300)
    assert lstm.main(steps=50, hidden=32, file=path) < 2
    printed = capsys.readouterr().out
    assert "step 50: " in printed and "  |     def " in printed


def test_vae_runs(capsys):
    assert vae.main(epochs=3) > -32, "the untrained model has -44.7 nats"
    assert "new digits:\n" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_diffusion_runs(kind, capsys):
    found, by_chance = diffusion.main(steps=25, diffusion_steps=12, kind=kind)
    assert found < by_chance
    assert f"{kind} schedule" in capsys.readouterr().out


def test_a_schedule_that_is_not_there():
    with pytest.raises(ValueError, match='kind is .*, expected "cosine" or "linear"'):
        diffusion.Schedule(10, "quadratic")


def test_policy_gradient_runs(capsys):
    lengths = policy_gradient.main(iterations=10, times=60)
    assert np.mean(lengths[-3:]) > 1.3 * np.mean(lengths[:3])
    assert "of 60 steps" in capsys.readouterr().out


@pytest.fixture(scope="module")
def by_plan():
    """Return the results of all models on one worker, and with each plan on four."""
    folders = [str(TESTS), str(TESTS / "models")]
    code = f"import sys\nsys.path[:0] = {folders}\nimport plans\nplans.report()"
    done = run_python(ON_FOUR_WORKERS + code, timeout=110)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CUT)
@embedded_only
@unsharded_only
def test_the_same_numbers_by_all_plans(name, by_plan):
    results = by_plan[name]
    numbers, _ = results["one worker"]
    for plan, (found, _) in results.items():
        np.testing.assert_allclose(found, numbers, rtol=1e-3, atol=1e-5, err_msg=plan)
    ways = ["Replicate" if axis is None else f"Shard({axis})" for axis in CUT[name]]
    assert results["data_parallel"][1] == ["Replicate"] * len(ways)
    assert results["tensor_parallel"][1] == ways
    assert results["hybrid"][1] == [f"Replicate x {way}" for way in ways]
