"""Train on the device in a named session from what it keeps; die after a step, if one is given."""

import os
import signal
import sys

import gt
import gt.torch
import torch

address, name, steps, dies_after = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
gt.attach(name, or_create=True, address=address)
torch.manual_seed(7)
model = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.BatchNorm1d(16), torch.nn.GELU())
model = model.to("cluster")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
state = gt.torch.kept("state", None)
begin = 0
if state is not None:
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    torch.set_rng_state(state["random"])
    begin = state["step"]
print("begins at", begin, flush=True)
for step in range(begin, steps):
    x = torch.randn(32, 12).to("cluster")
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "step": step + 1,
    }
    gt.torch.keep("state", state)
    if step == dies_after:
        # What was kept has arrived.
        gt.status()
        os.kill(os.getpid(), signal.SIGKILL)
print(loss.item(), [parameter.sum().item() for parameter in model.parameters()])
