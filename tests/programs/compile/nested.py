"""Call a compiled function inside a compiled function; print the counts of hot instructions."""

import gt


@gt.compile
def inner(x):
    """Return two operations of x."""
    return (x * 2).tanh()


@gt.compile
def outer(x):
    """Return two operations around those of inner."""
    return inner(x + 1).exp() - 1


x = gt.ones(8)
for _ in range(3):
    outer(x).sum().item()
hot = list(gt.debug.get_worker_stats().values())[0]["hotpath"]
print(hot["hot_instructions"], hot["hot_sequences"])
