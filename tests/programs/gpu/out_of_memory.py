"""Ask for more memory than any device has, and compute on after the error."""

import gt

x = gt.ones(1000)
try:
    (gt.ones(1 << 22, 1) * gt.ones(1, 1 << 22)).sum(dim=0).tolist()
except gt.WorkerError as error:
    text = str(error)
    assert "out of memory" in text.lower() and str(4 << 44) in text, text
else:
    raise AssertionError("no device has this much memory")
print((x + 1).sum().item())
