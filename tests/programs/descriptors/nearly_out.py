"""Connect with few free descriptors. Arguments: the address, how many are free, the soft limit."""

import resource
import sys

import gt

address, free, soft_limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (64, soft_limit))
files = []
try:
    while True:
        files.append(open("/dev/null"))
except OSError:
    pass
for _ in range(free):
    files.pop().close()
try:
    gt.connect(address)
    print("sum", gt.ones(3).sum().item())
    print("long", gt.ones(300_000).numpy().sum())
except Exception as error:
    print(type(error).__name__, error)
