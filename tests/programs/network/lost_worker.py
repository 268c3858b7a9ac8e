"""Hold a tensor while the test kills its worker; print whether the error names the worker."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.ones(3)
x.tolist()
print("ready", flush=True)
sys.stdin.readline()
try:
    (x + 1).tolist()
except gt.WorkerError as error:
    print("w0" in str(error) and "lost" in str(error))
print((gt.ones(2) + 1).tolist())
