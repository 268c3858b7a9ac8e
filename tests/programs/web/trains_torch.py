"""Train a PyTorch model on the device, with workers of this process, until a line is read."""

import sys
import threading

import gt.torch  # noqa: F401 - registers the device
import torch

model = torch.nn.Linear(16, 8).to("cluster")
optimizer = torch.optim.Adam(model.parameters())
kept = [torch.zeros(300, 300, device="cluster")]
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
is_ready = False
while not ended.is_set():
    loss = (model(torch.randn(64, 16, device="cluster")) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
    if not is_ready:
        print("at work", flush=True)
        is_ready = True
