"""Fork children while threads compute and tensors are collected; print how many children hung."""

import gc
import os
import threading
import time

import gt.torch  # noqa: F401
import torch

x = torch.ones(3, device="cluster")
stops = False


def work():
    y = x
    while not stops:
        y = torch.tanh(y + x)
        circle = [y]
        circle.append(circle)


def child_hangs() -> bool:
    """Fork a child that computes; return whether it does not end within ten seconds."""
    child = os.fork()
    if child == 0:
        y = x * 2
        del y
        os._exit(0)
    for _ in range(1000):
        if os.waitpid(child, os.WNOHANG)[0]:
            return False
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return True


gc.set_threshold(3)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
hung = sum(child_hangs() for _ in range(12))
stops = True
for thread in threads:
    thread.join()
print(hung)
