"""Create large and small tensors with GT_AUTO_SHARD; check their placements, print a product."""

import gt
from four_workers import placement

large, small = gt.randn(1024, 512), gt.randn(16, 16)
assert placement(large) == [("Shard(0)", [0, 1, 2, 3])], placement(large)
assert placement(small) == [("Replicate", [0])]
product = large.T @ large
print(product.shape, round((product - product.T).abs().max().item(), 3))
