"""`SummaryWriter`, PyTorch's and tensorboardX's, writes the same for tensors as for arrays."""

import pathlib
import runpy
from importlib import import_module

import gt
import numpy as np
import pytest
from processes import run_python

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

tensorboard = pytest.importorskip("tensorboard", reason="tensorboard: make test-all")


@pytest.fixture(params=["torch.utils.tensorboard", "tensorboardX", "gt.utils.tensorboard"])
def writer(request, tmp_path):
    """Return a function that makes a writer into a folder of its own."""
    reason = f"{request.param}: make test-neighbours"
    pytest.importorskip(request.param, reason=reason, exc_type=ImportError)
    folders = iter(range(9))
    package = import_module(request.param)
    return lambda: package.SummaryWriter(str(tmp_path / str(next(folders))))


def events(write, writer):
    """Return what a function writes: by tag, the values without times."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with writer() as made:
        write(made)
        folder = made.log_dir if hasattr(made, "log_dir") else made.logdir
    read = EventAccumulator(str(folder), size_guidance={"tensors": 0, "images": 0})
    read.Reload()
    tags = read.Tags()
    found = {tag: [event.value for event in read.Scalars(tag)] for tag in tags["scalars"]}
    for tag in tags["histograms"]:
        found[tag] = [event.histogram_value for event in read.Histograms(tag)]
    for tag in tags["images"]:
        found[tag] = [event.encoded_image_string for event in read.Images(tag)]
    for tag in tags["tensors"]:
        found[tag] = [event.tensor_proto.SerializeToString() for event in read.Tensors(tag)]
    assert found
    return found


NOISE = np.random.default_rng(0).random((3, 8, 8)).astype(np.float32)
VERTICES = np.random.default_rng(0).random((1, 4, 3)).astype(np.float32)
FACES = np.array([[[0, 1, 2], [1, 2, 3]]], dtype=np.int32)

#: What a writer writes, with `t` for the conversion of arrays.
CALLS = {
    "scalar": lambda w, t: w.add_scalar("a", t(np.float32(1.5)), 3),
    "histogram": lambda w, t: w.add_histogram("a", t(NOISE), 0),
    "integers": lambda w, t: w.add_histogram("a", t(np.arange(9)), 0),
    "image": lambda w, t: w.add_image("a", t(NOISE), 0),
    "bytes": lambda w, t: w.add_image("a", t((NOISE * 255).astype(np.uint8)), 0),
    "images": lambda w, t: w.add_images("a", t(NOISE[None]), 0),
    "precision": lambda w, t: w.add_pr_curve("a", t(np.arange(8) % 2), t(NOISE[0, 0]), 0),
    "mesh": lambda w, t: w.add_mesh("a", t(VERTICES), faces=t(FACES), global_step=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_is_written_as_for_arrays(name, writer):
    found = events(lambda made: CALLS[name](made, gt.tensor), writer)
    assert found == events(lambda made: CALLS[name](made, np.asarray), writer)


def test_tensors_of_a_training_step(writer):
    """Losses have a history, parameters require gradients, and activations have 16 bits."""
    weight = gt.nn.Parameter(gt.tensor([1.0, 2.0]))
    half = gt.tensor([1.0, 2.0]).bfloat16()

    def write(made):
        made.add_scalar("loss", (weight * 2).sum(), 0)
        made.add_histogram("weight", weight, 0)
        made.add_histogram("half", half, 0)

    found = events(write, writer)
    assert found["loss"] == [6.0]
    assert found["weight"][0].sum == found["half"][0].sum == 3.0


def test_embeddings_are_written(writer):
    with writer() as made:
        made.add_embedding(gt.tensor([[1.0, 2.5], [3.0, 4.0]]), metadata=["x", "y"], global_step=0)
        folder = made.log_dir if hasattr(made, "log_dir") else made.logdir
    (table,) = pathlib.Path(folder).rglob("tensors.tsv")
    assert [list(map(float, line.split())) for line in table.read_text().splitlines()] == [
        [1.0, 2.5],
        [3.0, 4.0],
    ]


def test_a_tensor_is_written_as_pytorchs():
    tensorboards = pytest.importorskip("torch.utils.tensorboard", reason="PyTorch: make test-all")
    import torch

    summary = tensorboards.summary.tensor_proto
    ours, theirs = summary("a", gt.tensor(NOISE)), summary("a", torch.tensor(NOISE))
    assert ours.SerializeToString() == theirs.SerializeToString()


def test_a_graph_of_modules_of_gt_is_refused(tmp_path):
    tensorboards = pytest.importorskip("torch.utils.tensorboard", reason="PyTorch: make test-all")
    with tensorboards.SummaryWriter(str(tmp_path)) as made:
        with pytest.raises(TypeError, match="takes modules of PyTorch, not Linear of gt"):
            made.add_graph(gt.nn.Linear(2, 1), gt.ones(1, 2))


def test_the_example_writes_its_losses(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    root = pathlib.Path(__file__).resolve().parents[2]
    script = runpy.run_path(str(root / "examples" / "train_digits.py"))
    _, curve = script["main"](["--epochs", "2", "--quiet", "--log", str(tmp_path)])
    read = EventAccumulator(str(tmp_path), size_guidance={"histograms": 0})
    read.Reload()
    assert [event.value for event in read.Scalars("loss")] == pytest.approx(curve)
    assert [event.histogram_value.num for event in read.Histograms("hidden")] == [64 * 128] * 2


def test_without_a_package_the_error_says_what_to_install():
    code = (
        "import sys\n"
        "sys.modules['tensorboardX'] = sys.modules['torch'] = None\n"
        "import gt.utils.tensorboard"
    )
    done = run_python(code)
    assert "hint: pip install tensorboardX; or torch and tensorboard" in done.stderr


def test_the_package_may_be_imported_first(tmp_path):
    pytest.importorskip("tensorboardX", reason="tensorboardX: make test-neighbours")
    code = (
        "import sys, tensorboardX, gt\n"
        "with tensorboardX.SummaryWriter(sys.argv[1]) as w:\n"
        "    w.add_scalar('a', gt.tensor(1.5), 0)"
    )
    done = run_python(code, str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("bad", [3, ["runs"], b"runs"])
def test_the_folder_of_a_writer_is_a_path(bad):
    writers = pytest.importorskip("gt.utils.tensorboard", exc_type=ImportError)
    with pytest.raises(TypeError, match="^SummaryWriter: log_dir is .*, expected a path") as caught:
        writers.SummaryWriter(bad)
    assert [entry.path for entry in caught.traceback] == [pathlib.Path(__file__)]


def test_a_folder_may_be_given_by_name(tmp_path):
    writers = pytest.importorskip("gt.utils.tensorboard", exc_type=ImportError)
    with writers.SummaryWriter(log_dir=tmp_path / "run") as writer:
        writer.add_scalar("loss", gt.tensor(1.0), 0)
    assert list((tmp_path / "run").iterdir())
