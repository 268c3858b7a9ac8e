"""Run a hot loop, wait for a second, and run it again."""

import time

import gt


def loop(x):
    for _ in range(40):
        x = (x * 0.5).exp() - 1
    x.sum().item()
    return x


x = loop(gt.ones(4))
time.sleep(1)
print([round(value, 4) for value in loop(x).tolist()])
