"""The language model examples run, and their results do not depend on the number of workers."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import embedded_only, run_on_four_workers, run_python, unsharded_only

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"
pytestmark = [embedded_only, unsharded_only]


@pytest.mark.parametrize("name", ["qwen3", "llama3", "gpt2"])
def test_an_example_trains_and_recites(name):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), "--steps", "50"],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert (done.returncode, done.stderr) == (0, "")
    loss, likely, drawn = done.stdout.splitlines()
    first, last = (float(word) for word in loss.split() if word[0].isdigit() and "." in word)
    assert first > 4 and last < 2.5
    assert likely.startswith("most likely: 'In the forests")
    assert drawn.startswith("drawn: 'In the forests")


ON_ALL_PLANS = """
import sys
sys.path.insert(0, {folder!r})
import {name}
from generation import generate
from text import train

def run(plan):
    gt.get_config().clear()
    if plan:
        gt.load_config({folder!r} + "/" + plan + ".yaml")
    gt.manual_seed(0)
    model = {name}.{make}
    losses = train(model, 6, batch=4, length=16)
    weights = dict(model.named_parameters())
    places = [[place for place, _ in placement(weights[key])] for key in {weights}]
    with gt.signal.context("batch"):
        ids = gt.tensor([[0, 0, 65, 66], [67, 68, 69, 70]], dtype=gt.int64)
        tokens = generate(model.eval(), ids, 8, ids != 0).tolist()
    return losses, tokens, places

losses, tokens, _ = run(None)
assert losses[-1] < losses[0]
for plan, wanted in [
    ("data_parallel", ["Replicate", "Replicate"]),
    ("tensor_parallel", {tensor}),
    ("hybrid", {hybrid}),
]:
    its_losses, its_tokens, places = run(plan)
    assert all(place in lies for place, lies in zip(wanted, places)), (plan, places)
    assert max(abs(a - b) for a, b in zip(losses, its_losses)) < 1e-3, (plan, losses, its_losses)
    assert tokens == its_tokens, plan
"""
LINEAR = {
    "tensor": ["Shard(0)", "Shard(1)"],
    "hybrid": ["Replicate x Shard(0)", "Replicate x Shard(1)"],
}
CONV1D = {
    "tensor": ["Shard(1)", "Shard(0)"],
    "hybrid": ["Replicate x Shard(1)", "Replicate x Shard(0)"],
}


@pytest.mark.parametrize(
    ("name", "make", "layer", "places"),
    [
        (
            "qwen3",
            "Qwen3(qwen3.Config(128, 32, 64, 2, 4, 4, 8, initializer_range=0.2))",
            ["model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight"],
            LINEAR,
        ),
        (
            "llama3",
            "Llama(llama3.Config(128, 32, 64, 2, 4, 2, initializer_range=0.2))",
            ["model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight"],
            LINEAR,
        ),
        (
            "gpt2",
            "GPT2(gpt2.Config(128, 32, 32, 2, 4, None, 0.0, 0.0, 0.0, initializer_range=0.2))",
            ["transformer.h.1.mlp.c_fc.weight", "transformer.h.1.mlp.c_proj.weight"],
            CONV1D,
        ),
    ],
    ids=["qwen3", "llama3", "gpt2"],
)
def test_the_same_numbers_on_any_plan(name, make, layer, places):
    run_on_four_workers(
        ON_ALL_PLANS.format(folder=str(EXAMPLES), name=name, make=make, weights=layer, **places)
    )


DECODING = """
import sys
sys.path.insert(0, {folder!r})
import gpt2, gt, llama3, qwen3
from generation import generate

def counts():
    (stats,) = gt.debug.get_worker_stats().values()
    return [stats["hotpath"][name] for name in ("hot_instructions", "total_instructions")]

for make in (
    lambda: qwen3.Qwen3(qwen3.Config(64, 32, 64, 1, 4, 2, 8)),
    lambda: llama3.Llama(llama3.Config(64, 32, 64, 1, 4, 2)),
    lambda: gpt2.GPT2(gpt2.Config(64, 64, 32, 1, 4)),
):
    for options in ({{}}, {{"temperature": 0.7, "top_k": 10, "top_p": 0.9, "eos_token_id": 99}}):
        with gt.Session(workers=1):
            model = make().eval()
            ids = gt.tensor([[1, 2, 3], [4, 5, 6]], dtype=gt.int64)
            generate(model, ids, 48, ids != 0, **options).tolist()
            hot, total = counts()
            assert hot > 0.7 * total, (model, options, hot, total)
"""


def test_decoding_is_hot():
    """All steps have the same shapes, so each is sent and run as one plan."""
    done = run_python(DECODING.format(folder=str(EXAMPLES)))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
