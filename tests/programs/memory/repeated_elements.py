"""Read expanded tensors while memory is short; print sums, and whether little was spilled."""

import gt

y = gt.ones(1, 1_000_000).expand(10, 1_000_000) + 1
z = gt.ones(1, 1_000_000).expand(100, 1_000_000) + 1
others = [gt.full((5_000_000,), float(i)) for i in range(6)]
print(z.sum().item(), [other[0].item() for other in others] == [0, 1, 2, 3, 4, 5])
print(y.numpy().shape, z.sum().item(), gt.status().workers[0]["spilled_bytes"] < 150_000_000)
