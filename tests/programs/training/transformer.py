"""Train a small transformer on the next character of a text; print steps and a hash."""

import gt
import numpy as np
from gt import nn, optim
from gt.nn import functional as F
from reporting import connect, print_hash, steps

WIDTH, LENGTH, BATCH = 32, 16, 8

args = connect()
text = np.frombuffer(b"to be, or not to be, that is the question: " * 40, dtype="uint8")
vocabulary, data = np.unique(text, return_inverse=True)
data = gt.from_numpy(data.astype("int64"))
gt.manual_seed(0)


class Block(nn.Module):
    """Attention and a perceptron, each with a residual connection."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))

    def forward(self, x):
        heads = [
            part.reshape(BATCH, LENGTH, 2, WIDTH // 2).transpose(1, 2)
            for part in self.mix(self.norms[0](x)).chunk(3, -1)
        ]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
        return x + F.dropout(self.feed(self.norms[1](x)), 0.1)


class Model(nn.Module):
    """Two blocks between embeddings and a head."""

    def __init__(self):
        super().__init__()
        self.names = nn.Embedding(len(vocabulary), WIDTH)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.head = nn.Linear(WIDTH, len(vocabulary))

    def forward(self, ids):
        x = self.names(ids) + self.places(gt.arange(LENGTH))
        return self.head(self.blocks(x))


model = Model()
optimizer = optim.AdamW(model.parameters(), lr=1e-3)
for step in steps(args):
    at = [(step * 37 + 101 * row) % (len(text) - LENGTH - 1) for row in range(BATCH)]
    ids = gt.stack([data[start : start + LENGTH] for start in at])
    labels = gt.stack([data[start + 1 : start + LENGTH + 1] for start in at])
    loss = F.cross_entropy(model(ids).reshape(BATCH * LENGTH, -1), labels.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        loss.item()
print_hash([value.detach() for value in model.parameters()] + [gt.randn(8), loss.detach()])
