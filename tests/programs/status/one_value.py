"""Connect and fetch one value. Argument: the server's address."""

import sys

import gt

gt.connect(sys.argv[1])
gt.ones(3).sum().item()
