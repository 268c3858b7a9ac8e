"""Issue work while a worker is stopped. Arguments: the address, the process id of the worker."""

import os
import signal
import sys
import threading

import gt

address, worker = sys.argv[1], int(sys.argv[2])
gt.connect(address)
x, w = gt.randn(600, 600), gt.randn(600, 600) / 25
for _ in range(300):
    x = x @ w
x.sum().item()
issued = 0
os.kill(worker, signal.SIGSTOP)


def issue():
    """Issue 8000 products, and count them."""
    global issued, x
    for _ in range(8000):
        x = x @ w
        issued += 1


thread = threading.Thread(target=issue)
thread.start()
seen = -1
while seen != issued:
    seen = issued
    thread.join(1.5)
print(issued < 8000)
os.kill(worker, signal.SIGCONT)
for _ in range(600):
    thread.join(0.1)
    if issued > seen:
        break
print(issued > seen, flush=True)
os._exit(0)
