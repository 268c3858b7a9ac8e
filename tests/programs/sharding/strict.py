"""Redistribute a tensor in strict mode; check that the error names placement and line."""

import gt
from four_workers import register

register("rows", axis=0)
with gt.signal.context("rows"):
    x = gt.randn(64, 8)
with gt.debug.strict(100):
    y = x.sum()  # Adding up partial sums is allowed.
    bad = x.argmax(0)
y.item()
try:
    bad.tolist()
except gt.WorkerError as error:
    text = str(error)
for word in ("argmax", "Shard(0)", "strict", __file__):
    assert word in text, text
x.argmax(0).tolist()
