"""Train with a bad index in steps 4, 11 and 12, and print the weights without fetching a loss."""

import gt

w = gt.ones(3, requires_grad=True)
optimizer = gt.optim.SGD([w], lr=0.5)
for step in range(20):
    optimizer.zero_grad()
    i = gt.tensor([7 if step in (4, 11, 12) else 0], dtype=gt.int64)
    w[i].sum().backward()  # the line
    optimizer.step()
print(w.detach().tolist())
