"""Fork children and grandchildren while `gt trace` watches. Argument: a folder for the trace."""

import os
import subprocess
import sys
import threading
import time

import gt
from waiting import wait

command = [sys.executable, "-m", "gt", "trace", "-s", "60", "--pid", str(os.getpid())]
command += ["--dir", sys.argv[1]]
x = gt.ones(100)
x.sum().item()
watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL)
time.sleep(1)
stop = False


def work():
    """Compute until the program ends."""
    y = gt.ones(100)
    while not stop:
        y = y * 0.5
        y.sum().item()


def fails():
    """Compute; return whether the result is wrong."""
    return (gt.ones(3) * 2).tolist() != [2, 2, 2]


thread = threading.Thread(target=work)
thread.start()
codes = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        grandchild = os.fork()
        if grandchild == 0:
            os._exit(fails())
        os._exit(fails() or wait(grandchild) != 0)
    codes.append(wait(child))
    if any(codes):
        break
stop = True
thread.join()
print(codes, watcher.poll())
watcher.terminate()
watcher.wait()
