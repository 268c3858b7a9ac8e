"""A graph convolution and graph attention, with sparse matrices, as in pygcn."""

import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from published import report, weights
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support)
        if self.bias is not None:
            return output + self.bias
        return output

    def __repr__(self):
        return (
            self.__class__.__name__
            + " ("
            + str(self.in_features)
            + " -> "
            + str(self.out_features)
            + ")"
        )


class GAT(nn.Module):
    def __init__(self, in_features, n_hidden, n_heads, concat=False, leaky=0.2):
        super().__init__()
        self.n_heads = n_heads
        self.n_hidden = n_hidden
        self.concat = concat
        self.W = nn.Parameter(torch.empty(size=(in_features, n_hidden * n_heads)))
        self.a = nn.Parameter(torch.empty(size=(n_heads, 2 * n_hidden, 1)))
        self.leakyrelu = nn.LeakyReLU(leaky)
        self.softmax = nn.Softmax(dim=1)
        nn.init.xavier_normal_(self.W)
        nn.init.xavier_normal_(self.a)

    def forward(self, h, adj):
        n = h.shape[0]
        h_t = torch.mm(h, self.W)
        h_t = h_t.view(n, self.n_heads, self.n_hidden).permute(1, 0, 2)
        src = torch.matmul(h_t, self.a[:, : self.n_hidden, :])
        dst = torch.matmul(h_t, self.a[:, self.n_hidden :, :])
        e = self.leakyrelu(src + dst.mT)
        m = -9e16 * torch.ones_like(e)
        e = torch.where(adj > 0, e, m)
        att = F.softmax(e, dim=-1)
        out = torch.matmul(att, h_t)
        if self.concat:
            return out.permute(1, 0, 2).contiguous().view(n, self.n_heads * self.n_hidden)
        return out.mean(dim=0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1 = GraphConvolution(6, 8)
        self.gc2 = GAT(8, 4, 2, True)
        self.gc3 = GraphConvolution(8, 3)

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.elu(self.gc2(x, adj))
        x = F.dropout(x, 0.0, training=self.training)
        return F.log_softmax(self.gc3(x, adj), dim=1)


r = np.random.RandomState(0)
n = 20
edges = r.randint(0, n, (2, 50))
features = torch.FloatTensor(r.rand(n, 6))
labels = torch.LongTensor(r.randint(0, 3, n))
A = np.zeros((n, n), dtype=np.float32)
A[edges[0], edges[1]] = 1
A = np.maximum(A, A.T) + np.eye(n, dtype=np.float32)
A = A / A.sum(1, keepdims=True)
adj = torch.FloatTensor(A)
idx_train = torch.LongTensor(range(12))
idx_test = torch.LongTensor(range(12, 20))


def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    correct = preds.eq(labels).double()
    correct = correct.sum()
    return correct / len(labels)


model = weights(Net())
optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _epoch in range(5):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss = F.nll_loss(output[idx_train], labels[idx_train])
    acc = accuracy(output[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    report(loss.item(), acc.item())
report(repr(model.gc1))
# sparse adjacency
sp = torch.sparse_coo_tensor(torch.from_numpy(edges).long(), torch.ones(50), (n, n)).coalesce()
report(torch.spmm(sp, torch.ones(n, 2)), torch.sparse.mm(sp, torch.ones(n, 2)).sum())
