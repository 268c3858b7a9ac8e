"""Connect to the server at ADDRESS, and print the number of each step until the program ends."""

import itertools
import sys

import gt

gt.connect(sys.argv[1])
for step in itertools.count():
    (gt.ones(8) * step).sum().item()
    print(step, flush=True)
