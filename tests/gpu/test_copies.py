"""Copies to and from a GPU: through pinned memory, piece by piece, in dedicated streams."""

import time

import numpy as np
import pytest
import torch
from gt.engines.check.plans import one_step
from gt.engines.engine import Meta
from gt.engines.pytorch.devices import PIECE
from machine import make_engine
from marks import gpu_only, standin_only

LENGTHS = [1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 3]


def some_bytes(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(0, 256, length, "uint8")


def create(engine, values: np.ndarray):
    return engine.create(memoryview(values), "uint8", values.shape)


@pytest.mark.parametrize("length", LENGTHS)
def test_all_pieces_arrive(engine, length):
    values = some_bytes(length)
    tensor = create(engine, values.copy())
    assert (engine.read(tensor) == values).all()


def test_the_hosts_memory_is_free_on_return(engine):
    """Later changes of the host's memory do not affect the copy."""
    for length in (8, 3 * PIECE + 5):
        values = some_bytes(length)
        kept = values.copy()
        tensor = create(engine, values)
        values[:] = 0
        assert (engine.read(tensor) == kept).all()


def test_what_is_computed_waits_for_the_copy(engine):
    values = np.arange(8 << 20, dtype="float32")
    builder, plan = one_step("neg", values, output=Meta("float32", values.shape))
    for _ in range(4):
        (out,) = engine.run(plan, builder.values(engine))
        assert (engine.read(out).view("float32") == -values).all()


def test_reading_does_not_change_what_is_read_later(engine):
    """A later read does not reuse the host memory of an earlier one."""
    first, second = some_bytes(100), some_bytes(100)[::-1].copy()
    tensors = [create(engine, values.copy()) for values in (first, second)]
    read = [engine.read(tensor) for tensor in tensors]
    assert (read[0] == first).all() and (read[1] == second).all()


def test_odd_layouts_are_read_in_row_major_order(engine):
    x = torch.arange(24.0, device=engine.device).reshape(2, 3, 4)
    cases = [x.permute(2, 0, 1), x[:, ::2], x[:1, 0, :1], x[0, 0, 0], x.to(torch.complex64).conj()]
    for case in cases:
        want = case.cpu().resolve_conj().contiguous().reshape(-1)
        assert engine.read(case).tobytes() == want.view(torch.uint8).numpy().tobytes()


@standin_only
def test_no_more_than_a_few_pieces_are_pinned_at_once():
    engine = make_engine()
    counts = engine.hardware.cuda.counts
    tensor = create(engine, some_bytes(5 * PIECE))
    # Two of the five pieces wait for an earlier one; nothing waits for the last pieces.
    assert (counts["events"], counts["waits"], counts["pinned"]) == (5, 2, 5 * PIECE)
    engine.read(tensor)
    # One event marks that the value is computed, and one that each piece is copied.
    assert (counts["events"], counts["waits"]) == (11, 7)


@gpu_only
def test_memory_of_the_host_is_pinned_for_copies(engine):
    read = engine.hardware.to_host(torch.ones(1000, device=engine.device))
    assert read.is_pinned()


@gpu_only
def test_a_copy_does_not_wait_for_kernels_before_it(engine):
    """Values are copied to the GPU while kernels run for about a second."""
    values = some_bytes(4 * PIECE)
    create(engine, values)  # allocates the memory that later copies reuse
    torch.cuda.synchronize()
    start = time.perf_counter()
    create(engine, values)
    engine.hardware._incoming.synchronize()
    alone = time.perf_counter() - start
    computing = torch.cuda.current_stream()
    torch.cuda._sleep(int(2e9))
    start = time.perf_counter()
    tensor = create(engine, values)
    engine.hardware._incoming.synchronize()
    took, is_computing = time.perf_counter() - start, not computing.query()
    assert is_computing, "the kernels must run longer than the copy"
    assert took < 5 * alone + 0.05
    assert (engine.read(tensor) == values).all()


@gpu_only
def test_reading_waits_for_no_other_stream(engine):
    """Another stream's kernels keep running while a value is read."""
    tensor = create(engine, some_bytes(1000))
    engine.read(tensor)
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        torch.cuda._sleep(int(2e9))
    engine.read(tensor)
    assert not other.query(), "it was not waited for"
    other.synchronize()


def test_values_that_others_have_too(engine):
    """Shared values are passed as read-only memory, and are not copied on the host."""
    values = some_bytes(3000)
    shared = memoryview(values).toreadonly()
    tensor = engine.create(shared, "float32", (750,))
    assert engine.read(tensor).tobytes() == values.tobytes()
