"""Steps: changes that take place together or not at all, in user code and forward passes."""

import subprocess
import time
from contextlib import contextmanager

import gt
import numpy as np
import pytest
from gt.nn import functional as F
from processes import line_in_program, program_command, run_program


def index(*values):
    return gt.tensor(list(values), dtype=gt.int64)


def bytes_of(*tensors):
    return [tensor.detach().numpy().tobytes() for tensor in tensors]


def test_updates_in_a_step_take_place_together():
    model = gt.nn.Linear(3, 2)
    for bad in (False, True, False):
        before = bytes_of(*model.parameters())
        with gt.no_grad(), gt.step(model):
            model.bias += 1
            model.weight -= gt.ones(3)[index(0, 1, 7 if bad else 2)]
        after = bytes_of(*model.parameters())
        assert all(old == new for old, new in zip(before, after, strict=True)) == bad
        assert any(old == new for old, new in zip(before, after, strict=True)) == bad


def test_an_exception_undoes_a_step():
    weight = gt.ones(3)
    view = weight[1:]
    with pytest.raises(KeyError), gt.step(weight):
        weight += 1
        view.mul_(5)
        raise KeyError
    assert weight.tolist() == [1, 1, 1] and view.tolist() == [1, 1]


def test_a_step_takes_modules_optimizers_tensors_and_lists_of_them():
    model, other = gt.nn.BatchNorm1d(2), gt.ones(2)
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with gt.no_grad(), gt.step([model], optimizer, {"a": other}):
        model.running_mean.add_(1)
        other.copy_(gt.ones(2)[index(5, 5)])
    assert model.running_mean.tolist() == [0, 0] and other.tolist() == [1, 1]
    with pytest.raises(TypeError, match="got int, expected modules, optimizers or tensors"):
        gt.step(3).__enter__()
    with pytest.raises(TypeError, match="needs what the block may change"):
        gt.step()


def test_nested_steps():
    a, b = gt.zeros(1), gt.zeros(1)
    with gt.step(a, b):
        b += 1
        with gt.step(a):
            a += gt.ones(1)[index(3)]
        assert a.tolist() == [0]
        a += 2
    assert (a.tolist(), b.tolist()) == ([2], [1])
    with gt.step(a, b):
        with gt.step(a):
            a += 1
        b += gt.ones(1)[index(3)]
    assert (a.tolist(), b.tolist()) == ([2], [1])


def test_a_value_is_not_read_before_its_step_has_ended():
    a, b = gt.zeros(1), gt.zeros(1)
    for _ in range(20):
        with gt.step(a, b):
            a += 1
            b += gt.ones(1)[index(3)]
            time.sleep(0.003)  # The driver submits what was issued so far; the worker runs it.
        assert (a.tolist(), b.tolist()) == ([0], [0])


def test_a_mask_is_counted_again_after_its_step_was_undone():
    x, mask, b = gt.arange(3), gt.zeros(3, dtype=gt.bool), gt.zeros(1)
    with gt.step(mask, b):
        mask.logical_not_()
        assert x[mask].tolist() == [0, 1, 2]
        b += gt.ones(1)[index(3)]
    assert x[mask].tolist() == []


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_keep_their_values_when_a_batch_fails(momentum):
    norm = gt.nn.BatchNorm1d(4, momentum=momentum)
    table = gt.randn(5, 4)
    kept = (norm.running_mean, norm.running_var)
    for step in range(8):
        bad = step in (0, 5)
        before = bytes_of(*kept)
        norm(F.embedding(index(0, 1, 9 if bad else 2), table))
        assert (bytes_of(*kept) == before) == bad
    instance = gt.nn.InstanceNorm1d(4, track_running_stats=True)
    instance(F.embedding(index(0, 9), table).T[None])
    assert instance.running_mean.tolist() == [0] * 4 and instance.running_var.tolist() == [1] * 4


def test_a_table_keeps_its_rows_when_an_index_is_bad():
    table = gt.full((3, 2), 5.0)
    before = bytes_of(table)
    F.embedding(index(0, 7), table, max_norm=1.0)
    assert bytes_of(table) == before
    F.embedding(index(0), table, max_norm=1.0)
    assert bytes_of(table) != before


def test_the_loss_scale_keeps_its_value_when_gradients_fail():
    weight = gt.ones(3, requires_grad=True)
    optimizer, scaler = gt.optim.SGD([weight], lr=0.1), gt.amp.GradScaler(init_scale=8.0)
    scaler.scale(weight[index(9)].sum()).backward()
    with pytest.raises(gt.WorkerError, match="indexing: index 9"):
        scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    scaler.scale(weight[index(1)].sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 8
    np.testing.assert_allclose(weight.detach().tolist(), [1, 0.9, 1], rtol=1e-6)


def test_failed_lists_failures_tensors_and_steps():
    with gt.Session():
        weight = gt.ones(3, requires_grad=True)
        assert gt.debug.failed() == []
        optimizer = gt.optim.SGD([weight], lr=0.1)
        loss = weight[index(8)].sum()
        loss.backward()
        optimizer.step()
        [failure] = [one for one in gt.debug.failed() if one.steps]
        assert failure.reason.startswith("indexing: index 8 is not in [-3, 3)")
        assert failure.line.startswith(__file__) and failure.steps == 1
        first = gt.debug.failed()[0]
        assert first.tensors >= 1 and first.reason.startswith("indexing: index 8")
        optimizer.zero_grad()
        del loss
        assert all(one.tensors == 0 for one in gt.debug.failed())


def test_an_undone_step_is_reported_without_a_fetch():
    done = run_program("steps/bad_index")
    assert (done.returncode, done.stdout.strip()) == (0, "[-7.5, 1.0, 1.0]"), done
    assert done.stderr.count("a step was undone") == 2, done.stderr
    assert "indexing: index 7 is not in [-3, 3)" in done.stderr
    assert line_in_program("steps/bad_index", "# the line") in done.stderr


@contextmanager
def placed(how):
    """Enter a session of two workers, and a scope that places tensors on both."""
    configs = {
        "sharded": gt.SignalConfig(gt.ShardConfig(axis=0)),
        "replicated": gt.SignalConfig(gt.ShardConfig(replicated=True)),
    }
    with gt.Session(workers=2):
        gt.register_config("steps", configs[how])
        with gt.signal.context("steps"):
            yield


@pytest.mark.parametrize("how", ["sharded", "replicated"])
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_a_step_over_two_workers_takes_place_on_both_or_neither(how, name):
    with placed(how):
        rows = gt.nn.Parameter(gt.ones(4, 2))
        other = gt.nn.Parameter(gt.ones(2, 3))
        optimizer = getattr(gt.optim, name)([rows, other], lr=0.1)
        for step in range(14):
            bad = step in (0, 5, 12)
            before = bytes_of(rows, other)
            optimizer.zero_grad()
            # Only one worker sees the bad index.
            picked = rows[index(0, 1, 2, 9 if bad else 3)]
            ((picked @ other) ** 2).sum().backward()
            optimizer.step()
            after = bytes_of(rows, other)
            assert (before == after) == bad, step


def test_a_step_that_runs_out_of_memory_is_undone():
    for words in (300_000, 400_000, 480_000, 499_000):
        done = subprocess.run(
            program_command("steps/out_of_memory", words),
            capture_output=True,
            text=True,
            timeout=120,
            env={"GT_MEMORY": "4MB", "PATH": "/usr/bin:/bin"},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[-1].startswith("True"), (words, done.stdout, done.stderr)
