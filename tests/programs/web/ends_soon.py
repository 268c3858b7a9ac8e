"""Hold many objects, say so, and end: while the server asks which tensors the program holds.

usage: ends_soon.py ADDRESS
"""

import sys
import time

import gt

gt.connect(sys.argv[1])
kept = [{"tensor": gt.ones(2), "number": number} for number in range(2000)]
gt.synchronize()
print("at work", flush=True)
time.sleep(0.2)
