"""Fork 20 times while threads open and close sessions; print the exit codes of the children."""

import os
import threading

import gt
from waiting import wait

stop = False


def work():
    """Open and close sessions until the program ends."""
    while not stop:
        with gt.Session():
            gt.ones(100).sum().item()


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
codes = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        with gt.Session():
            os._exit((gt.ones(3) * 2).tolist() != [2, 2, 2])
    codes.append(wait(child))
    if any(codes):
        break
stop = True
for thread in threads:
    thread.join()
print(codes)
