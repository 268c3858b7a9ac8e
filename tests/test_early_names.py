"""Aliases that programs for early versions of GT use."""

import importlib

import gt
import numpy as np
import pytest
from gt.client import nn
from processes import run_gt, run_python


def test_modules_of_early_versions():
    import gt.client.tensor
    import gt.signals
    from gt.client.tensor import Tensor, from_numpy, ones, randn, zeros

    assert gt.signals is gt.signal and importlib.import_module("gt.signals") is gt.signal
    assert Tensor is gt.Tensor and gt.client.tensor.cat is gt.cat
    assert randn(2, 3).shape == (2, 3) and (ones(2) + zeros(2)).sum().item() == 2
    assert from_numpy(np.ones(2, "float32"), requires_grad=True).requires_grad
    with gt.signals.context("early"), gt.signals("inner", backward="inner_backward"):
        assert gt.signals.current_signal() == "inner"


def test_errors_have_a_module():
    assert gt.errors.WorkerError is gt.WorkerError
    assert issubclass(gt.errors.CheckpointError, Exception)
    assert "matmul: shapes" in gt.errors.operation_failed_error("matmul", "shapes")
    assert "gt.connect" in gt.errors.not_connected_error()
    assert "gt worker" in gt.errors.no_workers_error()


@pytest.mark.parametrize(
    "name, first, second",
    [
        ("mse_loss", "predicted", "target"),
        ("mse_loss", "predicted", "targets"),
        ("binary_cross_entropy", "predicted", "targets"),
        ("cross_entropy_loss", "logits", "targets"),
    ],
)
def test_losses_take_their_early_keywords(name, first, second):
    values = gt.tensor([[0.25, 0.75], [0.5, 0.5]])
    targets = gt.arange(2) if name.startswith("cross") else values.flip(0)
    loss = getattr(nn, name)
    assert loss(**{first: values, second: targets}).equal(loss(values, targets))
    with pytest.raises(TypeError, match="the same, not both"):
        loss(**{first: values, "input": values, second: targets})


def test_configurations_are_loaded_from_a_config_file(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text("early_signal:\n  shard:\n    axis: 0\n")
    assert gt.load_config(config_file=file).has_signal("early_signal")
    assert gt.load_config(str(file)).get_signal("early_signal").shard.axis == 0
    with pytest.raises(TypeError, match="not both"):
        gt.load_config(file, config_file=file)
    with pytest.raises(TypeError, match="path or config_file"):
        gt.load_config()


def test_workers_are_counted_by_n():
    code = "import gt; gt.gpu_workers(n=2); gt.ones(1).item(); print(len(gt.status().workers))"
    assert run_python(code).stdout == "2\n"
    with pytest.raises(TypeError, match="count or n"):
        gt.gpu_workers()


def test_servers_take_the_flag_with_underscores():
    done = run_gt("server", "--spawn_gpu_workers", "2", CUDA_VISIBLE_DEVICES="0")
    assert done.returncode == 2 and "names 1 GPU(s)" in done.stderr


def test_statistics_of_compilations():
    for _ in range(40):
        x = gt.ones(4)
        (x * 2 + 1).sum().item()
    for stats in gt.debug.get_worker_stats().values():
        least, mean, most = (
            stats["compilation"][f"{which}_ops_per_compilation"] for which in ("min", "avg", "max")
        )
        lengths = [sequence["length"] for sequence in stats["hotpath"]["top_sequences"]]
        assert least <= mean <= most
        assert (least, most) == ((min(lengths), max(lengths)) if lengths else (0, 0))
