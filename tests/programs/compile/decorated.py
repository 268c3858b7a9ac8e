"""Call a function in a loop, decorated by an expression; print counts of hot instructions."""

import sys

import gt


def f(x, number):
    """Return a chain of four operations."""
    return ((x * 2).tanh() + number).exp()


f = eval(sys.argv[1])(f) if sys.argv[1] else f
gt.get_config().clear()
x = gt.ones(8)
for number in range(4):
    x = f(x, number)
    if number == 1:
        x = x / 3
x.sum().item()
hot = list(gt.debug.get_worker_stats().values())[0]["hotpath"]
print(hot["hot_instructions"], hot["hot_sequences"])
