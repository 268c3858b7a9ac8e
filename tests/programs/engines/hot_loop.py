"""A loop that becomes hot, and what the worker compiled for it: for other programs."""

import gt


def run():
    """Run the loop."""
    x = gt.ones(16, 16)
    for _ in range(60):
        x = ((x * 0.5 + 1).tanh() @ x).sigmoid()
    x.sum().item()


def compiled():
    """Return what the only worker compiled."""
    (stats,) = gt.debug.get_worker_stats().values()
    return stats["compilation"]["compiled"]
