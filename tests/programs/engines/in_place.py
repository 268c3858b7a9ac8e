"""Change an operand and a result of tanh in place, and print both."""

import gt

x = gt.tensor([1.0, 2.0, 3.0])
y = x.tanh()
x.add_(1)
x[0] = 9
values = y.numpy().copy()
y.mul_(2)
print(x.tolist(), y.tolist(), values.tolist())
