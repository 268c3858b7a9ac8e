"""A graph convolutional network over a sparse adjacency matrix, normalized by degrees."""

import numpy as np
import torch
import torch.nn.functional as F
from published import report, weights
from torch import nn

rng = np.random.default_rng(0)
edges = rng.integers(0, 10, (2, 30))
both = np.concatenate([edges, edges[::-1], np.arange(10)[None].repeat(2, 0)], axis=1)
places = torch.from_numpy(np.unique(both, axis=1))
counts = torch.ones(places.shape[1])
adjacency = torch.sparse_coo_tensor(places, counts, (10, 10)).coalesce()
degrees = torch.sparse.sum(adjacency, dim=1).to_dense()
scale = degrees.pow(-0.5)
normalized = torch.sparse_coo_tensor(places, counts * scale[places[0]] * scale[places[1]], (10, 10))
report(degrees, normalized.to_dense())


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.kernel = nn.Parameter(torch.Tensor(inputs, outputs))
        nn.init.xavier_normal_(self.kernel)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x, adjacency):
        return torch.sparse.addmm(self.bias.expand(len(x), -1), adjacency, x @ self.kernel)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GraphConvolution(6, 8)
        self.second = GraphConvolution(8, 3)

    def forward(self, x, adjacency):
        x = F.relu(self.first(x, adjacency))
        return F.log_softmax(self.second(x, adjacency), dim=1)


x = torch.from_numpy(rng.standard_normal((10, 6)).astype("float32"))
target = torch.from_numpy(rng.integers(0, 3, 10))
mask = torch.arange(10) < 7
model = weights(Net())
optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
for _ in range(6):
    optimizer.zero_grad()
    loss = F.nll_loss(model(x, normalized)[mask], target[mask])
    loss.backward()
    optimizer.step()
    report(loss.item())
report((model(x, normalized).argmax(1) == target).float().mean().item())
