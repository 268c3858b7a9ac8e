"""Queue seconds of work; print whether gt.status returns soon, then wait for the result."""

import threading
import time

import gt

x = gt.randn(4000, 4000)
y = x
for _ in range(50):
    y = x @ y
threading.Thread(target=y.sum().item, daemon=True).start()
time.sleep(0.5)
begin = time.monotonic()
status = gt.status()
print("in time" if time.monotonic() - begin < 2 else "late", status.workers[0]["queued"] > 0)
y.sum().item()
