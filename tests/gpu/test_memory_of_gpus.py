"""A GPU's memory: only the operation that exceeds it fails, and freed memory is available."""

import numpy as np
import pytest
import torch
from gt.engines import OutOfMemory, StepError
from gt.engines.check.plans import Builder
from gt.engines.check.values import get, put
from gt.engines.engine import Meta, Plan
from machine import ENVIRONMENT, make_engine
from marks import gpu_only, standin_only
from processes import run_program


def too_much() -> tuple[Builder, Plan, int]:
    """Plan a step whose output exceeds the memory of any device."""
    length = 1 << 50
    builder = Builder(np.ones(1, "float32"))
    wide = builder.step("expand", 0, size=[length], output=Meta("float32", (length,)))
    plan = builder.plan(builder.step("neg", wide, output=Meta("float32", (length,))))
    return builder, plan, 4 * length


def inverted(length: int) -> tuple[Builder, Plan]:
    """Plan a step whose output has `length` bytes, from an input of one byte."""
    builder = Builder(np.ones(1, "uint8"))
    wide = builder.step("expand", 0, size=[length], output=Meta("uint8", (length,)))
    return builder, builder.plan(builder.step("bitwise_not", wide, output=Meta("uint8", (length,))))


def test_one_byte_may_stand_for_many(engine):
    builder, plan = inverted(1000)
    (out,) = engine.run(plan, builder.values(engine))
    assert get(engine, out).tolist() == [254] * 1000


def test_a_step_without_room_fails_alone(engine):
    builder, plan, asked = too_much()
    for _ in range(3):
        with pytest.raises(StepError, match=f"^out of memory: {asked} bytes asked for$"):
            engine.run(plan, builder.values(engine))
        assert get(engine, put(engine, np.arange(3.0))).tolist() == [0, 1, 2]


def test_drawing_and_creating_without_room(engine, monkeypatch):
    with pytest.raises(OutOfMemory, match=f"{4 << 50} bytes"):
        engine.draw("rand", (1, 2), Meta("float32", (1 << 50,)), ())

    def full(values):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 12.00 GiB")

    monkeypatch.setattr(engine.hardware, "to_device", full)
    with pytest.raises(OutOfMemory, match="^out of memory: 24 bytes asked for$"):
        put(engine, np.arange(3.0))


def test_a_second_try_after_memory_was_given_back(monkeypatch):
    engine = make_engine()
    copy, given_back = engine.hardware.to_device, []
    release = engine.hardware.release_memory

    def once_full(values):
        if not given_back:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return copy(values)

    monkeypatch.setattr(engine.hardware, "to_device", once_full)
    monkeypatch.setattr(
        engine.hardware, "release_memory", lambda: (given_back.append(1), release())
    )
    assert get(engine, put(engine, np.arange(3.0))).tolist() == [0, 1, 2]
    assert given_back == [1]


def test_a_compiled_plan_without_room_runs_step_by_step():
    engine = make_engine()
    builder = Builder(np.ones(4, "float32"))
    plan = builder.plan(builder.step("exp", 0, output=Meta("float32", (4,))))
    compiled = engine.compile(plan)

    def full(inputs):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    compiled._code = full
    (out,) = compiled(builder.values(engine))
    np.testing.assert_allclose(get(engine, out), np.exp(np.ones(4)), rtol=1e-6)


def test_a_program_goes_on_after_it():
    # GT_MEMORY lets the operation pass the worker's own limit, so that the device runs out of
    # memory.
    environment = {"GT_MEMORY": "999TB", **ENVIRONMENT}
    done = run_program("gpu/out_of_memory", timeout=300, **environment)
    assert (done.returncode, done.stdout) == (0, "2000.0\n"), done.stderr


@standin_only
def test_memory_is_given_back_at_the_end_of_a_session(engine):
    before = engine.hardware.cuda.counts["releases"]
    engine.release_memory()
    assert engine.hardware.cuda.counts["releases"] == before + 1


@gpu_only
def test_what_is_dropped_is_free_at_once(engine):
    """Kernels that still use the memory precede its reuse on the stream, so there is no wait."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    values = np.ones(64 << 20, "uint8")
    tensor = engine.create(memoryview(values), "uint8", values.shape)
    assert torch.cuda.memory_allocated() >= before + len(values)
    torch.cuda._sleep(int(1e8))
    made = tensor + 1
    del tensor, made
    assert torch.cuda.memory_allocated() == before


@gpu_only
def test_what_is_kept_for_reuse_makes_room(engine):
    """After small tensors used 80% of the memory, one tensor of that size fits."""
    torch.cuda.empty_cache()
    free, _ = torch.cuda.mem_get_info()
    size = 64 << 20
    length = int(free * 0.8)
    held = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(length // size)]
    del held
    builder, plan = inverted(length)
    (out,) = engine.run(plan, builder.values(engine))
    assert out.numel() == length
    del out
    engine.release_memory()


@gpu_only
def test_more_than_the_card_has(engine):
    """A size that the allocator could represent, but that exceeds the card's memory."""
    _, total = torch.cuda.mem_get_info()
    length = total + (1 << 30)
    builder, plan = inverted(length)
    with pytest.raises(StepError, match=f"^out of memory: {length} bytes asked for$"):
        engine.run(plan, builder.values(engine))
    assert get(engine, put(engine, np.arange(3.0))).tolist() == [0, 1, 2]


@gpu_only
def test_memory_is_free_after_a_capture_that_failed():
    """Memory that two streams used is freed as well."""
    from gt.engines.pytorch.graphs import captured

    engine = make_engine()

    def waits(inputs):
        return [inputs[0] * inputs[0].sum().item()]

    captured(engine.hardware, waits, [torch.ones(3, device=engine.device)])
    values = np.ones(64 << 20, "uint8")
    for _ in range(3):
        tensor = engine.create(memoryview(values), "uint8", values.shape)
        engine.read(tensor)
        del tensor
    torch.cuda.synchronize()
    engine.release_memory()
    assert torch.cuda.memory_reserved() < torch.cuda.memory_allocated() + (64 << 20)
