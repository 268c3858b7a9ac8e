"""Run three steps, the second without enough memory. Argument: the floats that then occupy it."""

import sys

import gt

w = gt.ones(250_000, requires_grad=True)
small = gt.ones(2, requires_grad=True)
optimizer = gt.optim.SGD([small, w], lr=0.5)
for has_room in (True, False, True):
    before = [small.detach().tolist(), w[:2].tolist()]
    optimizer.zero_grad()
    (w.sum() + small.sum()).backward()
    ballast = None if has_room else gt.ones(int(sys.argv[1]))
    optimizer.step()
    ballast = None
    after = [small.detach().tolist(), w[:2].tolist()]
    print((before == after) == (not has_room), after)
