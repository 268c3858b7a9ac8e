"""Save a tensor into a folder, read it from there, and print its sum. Argument: the folder."""

import sys

import gt

x = gt.arange(10_000, dtype="float64")
gt.checkpoint.save(sys.argv[1] + "/saved", {"x": x}).wait()
loaded = gt.checkpoint.load(sys.argv[1] + "/saved")
print(loaded.state["x"].sum().item())
