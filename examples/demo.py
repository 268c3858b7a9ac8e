"""A tour of tensors: like PyTorch, without any setup."""

import gt

# Tensors from lists and random numbers. Lists become float32.
a = gt.tensor([1, 2, 3, 4])
b = gt.tensor([5, 6, 7, 8])
print("a + b =", (a + b).tolist())

x = gt.randn(1000, 1000)
y = gt.randn(1000, 1000)
z = x @ y  # returns at once; the product is computed in the background
print("a corner of a product:")
print(z[:2, :3])

# Gradients.
w = gt.tensor([1.0, 2.0, 3.0], requires_grad=True)
loss = (w * w).sum()
loss.backward()
assert w.grad is not None  # It is None before backward().
print("gradient of sum(w * w):", w.grad.tolist())

# To NumPy and back.
array = (a * 10).data.numpy()
print("as an array:", array, array.dtype)
print("and back:", gt.from_numpy(array))
