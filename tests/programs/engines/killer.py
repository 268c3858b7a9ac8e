"""Compute tanh, which kills workers; print the error. Arguments: the address, steps of a loop."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.ones(4, 3) + 1
y = x.tanh()
for step in range(int(sys.argv[2])):
    y = y + (x * 0.5 + step).tanh()
try:
    print(y.tolist())
except gt.WorkerError as error:
    print("|".join(str(error).splitlines()))
print((x * 3).tolist()[0])
