"""Compute a NaN and use it; print the error, and a NaN of the program's own."""

import gt

x = gt.tensor([1.0, -1.0])
y = x.log()  # the line
z = (y * 2).sum()
try:
    z.item()
except gt.WorkerError as error:
    print(error)
print((gt.tensor([float("nan")]) + 1).isnan().item())
