"""Wait for a stopped worker as in a notebook. Arguments: the address, the worker's process id."""

import io
import os
import signal
import sys
import threading
import types

sys.modules["ipykernel"] = types.ModuleType("ipykernel")
sys.stderr = io.StringIO()
import gt  # noqa: E402

address, worker = sys.argv[1], int(sys.argv[2])
gt.connect(address)
x = gt.ones(3)
x.sum().item()
os.kill(worker, signal.SIGSTOP)
timer = threading.Timer(4, os.kill, (worker, signal.SIGCONT))
timer.start()
(x + 1).sum().item()
print("gt: waiting for" in sys.stderr.getvalue())
