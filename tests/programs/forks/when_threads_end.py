"""Fork 30 times at the ends of threads that have called GT; print the children's exit codes."""

import os
import threading

import gt
from waiting import wait

#: Functions whose code a thread calls: the more there are, the longer its end takes.
FUNCTIONS = [eval("lambda: gt.ones(1)", {"gt": gt}) for _ in range(300)]


def work():
    """Call GT from the code of each function."""
    for function in FUNCTIONS:
        function()


gt.ones(1).item()
codes = []
for _ in range(30):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    child = os.fork()
    if child == 0:
        os._exit((gt.ones(3) * 2).tolist() != [2, 2, 2])
    codes.append(wait(child))
    if any(codes):
        break
print(codes)
