"""Train a PyTorch model on the device, with workers of this process, until a line is read."""

import gt.torch  # noqa: F401 - registers the device
import torch
from rounds import until_a_line

model = torch.nn.Linear(16, 8).to("cluster")
optimizer = torch.optim.Adam(model.parameters())
kept = [torch.zeros(300, 300, device="cluster")]
for _ in until_a_line():
    loss = (model(torch.randn(64, 16, device="cluster")) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
