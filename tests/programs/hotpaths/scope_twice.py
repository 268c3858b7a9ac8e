"""Enter a compiled scope four times, with one other operation between; print the hot counts."""

import gt

gt.register_config("hot", gt.SignalConfig(compile=True))
x = gt.ones(8)
for number in range(4):
    with gt.signal.context("hot"):
        x = ((x * 2).tanh() + number).exp()
    if number == 1:
        x = x / 3
print(number, x.sum().item() > 0)
stats = list(gt.debug.get_worker_stats().values())[0]
print(stats["hotpath"]["hot_instructions"], stats["hotpath"]["hot_sequences"])
