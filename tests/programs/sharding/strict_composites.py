"""Call composites in strict mode; check that the failures do not spread to the operand."""

import gt
from four_workers import register

register("rows", axis=0)
with gt.signal.context("rows"):
    x = gt.randn(12, 1000)
with gt.debug.strict(100):
    results = [x.var(0), x.std(0), x.logsumexp(0), x.softmax(0)]
for result in results:
    try:
        result.sum().item()
    except gt.WorkerError as error:
        assert "strict" in str(error)
assert x.sum().isfinite().item()
