"""Call a layer; print its sums, whether the extension is used, and an error."""

import gt.torch  # noqa: F401
import torch
from gt.torch import extension

torch.manual_seed(0)
layer = torch.nn.Linear(3, 2).to("cluster")
for _ in range(3):
    print(layer(torch.ones(4, 3, device="cluster")).sum().item())
print(extension.is_connected())
try:
    layer(torch.ones(4, 2, device="cluster"))
except RuntimeError as error:
    print(error)
