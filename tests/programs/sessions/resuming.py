"""Train in a named session from what it keeps; die after a step, if one is given."""

import os
import signal
import sys

import gt

address, name, steps, dies_after = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
goes_on = gt.attach(name, or_create=True, address=address)
gt.manual_seed(7)
model = gt.nn.Sequential(gt.nn.Linear(12, 16), gt.nn.Dropout(0.1), gt.nn.Linear(16, 4))
optimizer = gt.optim.AdamW(model.parameters(), lr=0.01)
begin = 0
if goes_on:
    state = gt.kept("state")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    gt.set_rng_state(state["random"])
    begin = state["step"]
print("begins at", begin, flush=True)
for step in range(begin, steps):
    x = gt.randn(32, 12)
    loss = (model(x) - x[:, :4]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": gt.get_rng_state(),
        "step": step + 1,
    }
    gt.keep("state", state)
    if step == dies_after:
        # What was kept has arrived.
        gt.status()
        os.kill(os.getpid(), signal.SIGKILL)
print(loss.item(), [parameter.sum().item() for parameter in model.parameters()])
