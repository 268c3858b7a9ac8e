"""Hold a quota of 100 MB and wait for more memory. Argument: the server's address."""

import sys

import gt

gt.connect(sys.argv[1])
print("connected", flush=True)
xs = [gt.ones(20_000_000) for _ in range(50)]
xs[-1].sum().item()
