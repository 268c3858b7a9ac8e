"""Hold a tensor while the test kills its worker; print whether the error says that it is lost."""

import sys

import gt

gt.connect(sys.argv[1])
x = gt.ones(1000)
y = (x * 2).sum().item()
print("step 0", flush=True)
sys.stdin.readline()
try:
    x.sum().item()
except gt.WorkerError as error:
    print("error", "was lost" in str(error))
