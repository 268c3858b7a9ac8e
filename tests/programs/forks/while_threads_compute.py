"""Fork 20 times while threads compute; print the exit codes of the children, which compute, too."""

import os
import threading

import gt
from waiting import wait

stop = False


def work():
    """Compute until the program ends."""
    x = gt.ones(100)
    while not stop:
        x = x + 1
        x.sum().item()


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit((gt.ones(3) * 2).tolist() != [2, 2, 2])
    codes.append(wait(child))
    if any(codes):
        break
stop = True
for thread in threads:
    thread.join()
print(codes)
