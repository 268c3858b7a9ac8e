"""wandb logs tensors as numbers, without a connection."""

import gt
import pytest

wandb = pytest.importorskip("wandb", reason="wandb: make test-neighbours")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_SILENT", "true")
    with wandb.init(mode="offline", dir=tmp_path, project="tests") as run:
        yield run


def test_tensors_are_logged_as_numbers(run):
    weight = gt.tensor([1.0, 2.0], requires_grad=True)
    run.log(
        {
            "loss": (weight * 2).sum(),
            "step": gt.tensor(3, dtype=gt.int64),
            "half": gt.tensor(1.5).bfloat16(),
            "row": gt.ones(3),
        }
    )
    run.config.update({"lr": gt.tensor(0.5)})
    summary = dict(run.summary)
    assert (summary["loss"], summary["step"], summary["half"]) == (6.0, 3, 1.5)
    assert list(summary["row"]) == [1.0, 1.0, 1.0]
    assert run.config["lr"] == 0.5


def test_histograms_and_images(run):
    counts = wandb.Histogram(gt.arange(10).float(), num_bins=5)
    assert list(counts.histogram) == [2, 2, 2, 2, 2]
    picture = wandb.Image(gt.rand(8, 9, 3))
    assert picture.image.size == (9, 8)
