"""`gt.debug`: the tape and the statistics of workers, as data and printed."""

import os

import gt
from processes import unsharded_only

#: The engine of the workers that the suite runs on.
ENGINE = os.environ.get("GT_BACKEND") or "native"


def test_the_tape_lists_reachable_operations(capsys):
    before = len(gt.debug.get_tape())
    a = gt.tensor([1.0, 2.0], requires_grad=True)
    loss = ((a * 2).exp() + a).sum()
    entries = gt.debug.get_tape()[before:]
    assert [entry["op"] for entry in entries] == ["mul", "exp", "add", "sum"]
    assert all(
        set(entry) == {"id", "op", "inputs", "shape", "dtype", "signal"} for entry in entries
    )
    assert [entry["shape"] for entry in entries] == [(2,), (2,), (2,), ()]
    assert entries[0]["dtype"] == "float32" and len(entries[2]["inputs"]) == 2
    ids = [entry["id"] for entry in entries]
    assert ids == sorted(set(ids))
    gt.debug.print_tape()
    out = capsys.readouterr().out
    assert f"tape: {before + 4} operation(s)" in out and "exp" in out and "float32 (2,)" in out
    del loss, entries
    assert len(gt.debug.get_tape()) == before


def test_the_tape_shrinks_when_a_graph_is_freed():
    before = len(gt.debug.get_tape())
    a = gt.ones(2, requires_grad=True)
    first, second = (a * 2).sum(), (a * 3).exp().sum()
    assert len(gt.debug.get_tape()) == before + 5
    first.backward()
    del first
    assert len(gt.debug.get_tape()) == before + 3
    with gt.no_grad():
        kept = a * 2
    assert len(gt.debug.get_tape()) == before + 3, kept
    del second
    assert len(gt.debug.get_tape()) == before


def test_worker_statistics(capsys):
    def total(part, name):
        return sum(stats[part][name] for stats in gt.debug.get_worker_stats().values())

    gt.synchronize()
    operations, held = total("operations", "total"), total("memory", "bytes")
    x = gt.ones(1000, 1000)
    y = x * 2
    y.sum().item()
    assert total("operations", "total") >= operations + 3
    assert total("memory", "bytes") >= held + 8_000_000
    assert total("memory", "bytes_peak") >= total("memory", "bytes")
    for stats in gt.debug.get_worker_stats().values():
        assert stats["engine"] == ENGINE
        assert stats["operations"]["total"] == (
            stats["operations"]["eager"] + stats["operations"]["compiled"]
        )
    del x, y
    assert total("memory", "bytes") <= held
    gt.debug.print_worker_stats()
    out = capsys.readouterr().out
    for word in ("operations:", "memory:", "hot paths:", "compilation:", ENGINE, "failed"):
        assert word in out, out


@unsharded_only
def test_failed_operations_are_counted():
    def failed():
        return sum(s["operations"]["failed"] for s in gt.debug.get_worker_stats().values())

    before = failed()
    bad = gt.tensor([1, 2], dtype="int64") // 0
    gt.synchronize()
    assert failed() == before + 1
    del bad
