"""Sessions are charged for GPU time, not for the time that launching takes."""

import time

import torch
from gt.engines.pytorch.turns import Turns
from machine import ON_GPU, make_engine
from marks import gpu_only


def busy(engine, cycles: int):
    """Keep the device busy for a number of cycles."""
    if ON_GPU:
        torch.cuda._sleep(cycles)
    else:
        time.sleep(cycles / 1e9)


def turn(engine, cycles: int):
    engine.begin_turn()
    busy(engine, cycles)
    engine.end_turn()


def test_turns_are_measured_in_order(engine):
    assert engine.runs_ahead and engine.turns_done(0) == []
    for cycles in (1e6, 50e6, 1e6):
        turn(engine, int(cycles))
    first, second, third = engine.turns_done(0)
    assert second > 5 * first and second > 5 * third > 0
    assert engine.turns_done(0) == []


def test_events_are_used_again():
    made = []

    class Event:
        def __init__(self):
            made.append(self)

        def record(self, stream):
            self.time = len(stream)
            stream.append(self)

        def query(self):
            return False

        def synchronize(self):
            pass

        def elapsed_time(self, end):
            return end.time - self.time

    stream = []
    turns = Turns(Event, lambda: stream)
    for _ in range(5):
        turns.begin()
        turns.end()
        assert len(turns.done(1)) <= 1  # does not wait for the turn in flight
    assert turns.done(1) == [] and turns.done(0) == [1_000_000]
    assert len(made) == 4


@gpu_only
def test_asking_takes_no_time(engine):
    """The host is done long before the device, and waits for it only in `turns_done`."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(3):
        turn(engine, int(1e9))
    asked = time.perf_counter() - begun
    done = engine.turns_done(1)
    waited = time.perf_counter() - begun
    assert len(done) == 2 and asked < 0.5 * waited
    assert 0.8 * waited < sum(done) / 1e9 < 1.2 * waited
    engine.turns_done(0)


def test_an_engine_on_the_processor_is_measured_by_its_clock():
    from gt.engines.pytorch import PyTorchEngine

    assert not PyTorchEngine("cpu").runs_ahead
    assert make_engine().runs_ahead
