"""A device that computes beside the processor, for benches/data.py: a kernel of NumPy's engine."""

import time


def computed(x, milliseconds=0.0):
    """Take the time that a device would take, which the processor does not; read the batch."""
    time.sleep(milliseconds / 1000)
    return x.reshape(-1)[:1]


def register(engine):
    """Give it to an engine."""
    engine.register("bench:computed", computed)
