"""The works of the GPU benchmarks, written once for PyTorch and GT: `lib` is one or the other.

A work has a `step` that issues a computation, and a `result` that waits for it. `uses` is the
number of steps that are timed together.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

RANDOM = np.random.default_rng(0)


@dataclass
class Side:
    """The library that computes, its device, and whether sizes are small."""

    lib: Any
    device: str | None
    tiny: bool

    @property
    def is_torch(self) -> bool:
        """Whether the library is PyTorch."""
        return self.lib.__name__ == "torch"

    def tensor(self, values: np.ndarray, dtype: str | None = None):
        """Return an array as a tensor on the device."""
        made = self.lib.from_numpy(np.ascontiguousarray(values))
        made = made.to(self.device) if self.is_torch else made
        return made if dtype is None else made.to(getattr(self.lib, dtype))

    def draw(self, *shape: int, scale: float = 1.0, dtype: str | None = None):
        """Return a tensor of normally distributed numbers."""
        return self.tensor((RANDOM.standard_normal(shape) * scale).astype("float32"), dtype)


class Training:
    """Training steps; the loss is fetched at the end."""

    uses, rate, name = 20, 1e-4, "SGD"
    parameters: list[Any]

    def loss(self) -> Any:
        """Return the loss."""
        raise NotImplementedError

    def make(self, side: Side, wrap) -> None:
        """Prepare training of `self.parameters`; `wrap` compiles a function or returns it as is."""
        for parameter in self.parameters:
            parameter.requires_grad_()
        options = {"fused": True} if side.is_torch else {}
        if side.is_torch and side.device == "cuda" and self.name == "AdamW":
            options["capturable"] = True
        self.optimizer = getattr(side.lib.optim, self.name)(
            self.parameters, lr=self.rate, **options
        )
        self.forward, self.advance = wrap(self.loss), wrap(self.optimizer.step)
        self.last = math.inf

    def step(self):
        """Run a training step; return the loss."""
        self.optimizer.zero_grad()
        loss = self.forward()
        loss.backward()
        self.advance()
        return loss.detach()

    def result(self, loss) -> None:
        """Wait for the loss, and check that it decreases."""
        value = loss.float().item()
        assert value < self.last * 1.05, (value, self.last)
        self.last = value


class Mlp(Training):
    """784-256-10, batch 64, SGD: bound by the launch of kernels."""

    def __init__(self, side: Side, wrap):
        self.x, self.y = side.draw(64, 784), side.draw(64, 10)
        shapes = (((256, 784), 0.03), ((256,), 0.03), ((10, 256), 0.06), ((10,), 0.06))
        self.parameters = [side.draw(*shape, scale=scale) for shape, scale in shapes]
        self.make(side, wrap)

    def loss(self):
        """Return the mean squared error."""
        w1, b1, w2, b2 = self.parameters
        difference = (self.x @ w1.T + b1).relu() @ w2.T + b2 - self.y
        return (difference * difference).mean()


class Transformer(Training):
    """A decoder entirely in bfloat16, with AdamW."""

    uses, rate, name = 4, 1e-4, "AdamW"

    def __init__(self, side: Side, wrap):
        self.lib = side.lib
        layers, self.width, self.heads, self.length, self.batch, self.words = (
            (1, 32, 4, 16, 2, 50) if side.tiny else (8, 1024, 16, 1024, 8, 32_000)
        )
        tokens = RANDOM.integers(0, self.words, (self.batch, self.length + 1))
        self.tokens = side.tensor(tokens[:, :-1].reshape(-1))
        self.wanted = side.tensor(tokens[:, 1:].reshape(-1))

        def drawn(*shape, scale):
            return side.draw(*shape, scale=scale, dtype="bfloat16")

        width = self.width
        self.parameters = [
            drawn(self.words, width, scale=0.02),
            drawn(self.length, width, scale=0.02),
        ]
        for _ in range(layers):
            for outputs, inputs in ((3, 1), (1, 1), (4, 1), (1, 4)):
                shape = outputs * width, inputs * width
                self.parameters += [drawn(*shape, scale=0.02), drawn(shape[0], scale=0.01)]
            self.parameters += [drawn(width, scale=0.1) + 1, drawn(width, scale=0.1)] * 2
        # Clone, as the list has the same tensors twice, which would be shared parameters.
        self.parameters = [parameter.clone().detach() for parameter in self.parameters]
        self.make(side, wrap)

    def loss(self):
        """Return the cross entropy of the next token."""
        functional, width = self.lib.nn.functional, self.width
        rest = iter(self.parameters)
        words, places = next(rest), next(rest)
        x = words.index_select(0, self.tokens).reshape(self.batch, self.length, width) + places
        for weights in zip(*[rest] * 12, strict=True):
            (qkv, qkv_b, out, out_b, up, up_b, down, down_b, g1, s1, g2, s2) = weights
            h = functional.layer_norm(x, (width,), g1, s1)
            h = functional.linear(h, qkv, qkv_b)
            h = h.reshape(self.batch, self.length, 3, self.heads, width // self.heads)
            q, k, v = (h[:, :, part].transpose(1, 2) for part in range(3))
            h = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h.transpose(1, 2).reshape(self.batch, self.length, width)
            x = x + functional.linear(h, out, out_b)
            h = functional.layer_norm(x, (width,), g2, s2)
            h = functional.gelu(functional.linear(h, up, up_b))
            x = x + functional.linear(h, down, down_b)
        logits = (x @ words.T).reshape(-1, self.words)
        return functional.cross_entropy(logits, self.wanted)


class Add:
    """A chain of additions of eight numbers; a step is 100 of them."""

    uses, parts = 10, 100

    def __init__(self, side: Side, wrap):
        self.a, self.b, self.side = side.draw(8), side.draw(8), side
        self.chain = wrap(self.add)
        self.want = self.a.sum().item() + self.parts * self.b.sum().item()

    def add(self):
        """Return `a` with `b` added `parts` times."""
        c = self.a
        for _ in range(self.parts):
            c = c + self.b
        return c

    def step(self):
        """Run the chain."""
        if self.side.is_torch:
            with self.side.lib.inference_mode():
                return self.chain()
        return self.chain()

    def result(self, c) -> None:
        """Wait for the sum."""
        assert abs(c.sum().item() - self.want) < 1e-2 * (1 + abs(self.want))


class Copy:
    """Ten tensors, 10 GB in all, are copied to the device; one value of each is fetched."""

    uses, tensors = 1, 10

    def __init__(self, side: Side, wrap):
        self.values = np.zeros(200_000 if side.tiny else 250_000_000, "float32")
        self.values[-1], self.side = 3, side

    def step(self):
        """Copy the array to ten tensors."""
        return [self.side.tensor(self.values) for _ in range(self.tensors)]

    def result(self, made) -> None:
        """Wait for the last value of each."""
        assert sum(tensor[-1].item() for tensor in made) == 30


class Bus:
    """Repeated copies of the same number of bytes from pinned memory: the bandwidth of the bus."""

    uses = 1

    def __init__(self, side: Side, wrap):
        import torch

        length = 200_000 if side.tiny else 250_000_000
        self.pinned = torch.zeros(length, pin_memory=side.device == "cuda")
        self.there = torch.zeros(length, device=side.device)

    def step(self):
        """Copy the pinned memory as often as `Copy` copies tensors."""
        for _ in range(Copy.tensors):
            self.there.copy_(self.pinned, non_blocking=True)
        return self.there

    def result(self, there) -> None:
        """Wait for the last copy."""
        assert there[-1].item() == 0


class Decode:
    """Token-by-token decoding by attention layers, with a cache of keys and values."""

    uses = 64

    def __init__(self, side: Side, wrap):
        self.side, lib = side, side.lib
        self.layers, self.batch, self.heads, self.width, self.room = (
            (1, 1, 2, 8, 80) if side.tiny else (8, 8, 16, 64, 4096)
        )
        dtype, whole = "float32" if side.tiny else "bfloat16", self.heads * self.width
        self.weights = [
            side.draw(whole, 4 * whole, scale=whole**-0.5, dtype=dtype) for _ in range(self.layers)
        ]
        shape = (self.batch, self.heads, self.room, self.width)
        self.caches = [
            [side.draw(*shape, dtype=dtype) for _ in range(2)] for _ in range(self.layers)
        ]
        self.places = side.tensor(np.arange(self.room))
        self.place = side.tensor(np.array([self.room // 2]))
        self.one = side.tensor(np.array([1]))
        self.token = side.draw(self.batch, whole, dtype=dtype)
        self.softmax = lib.nn.functional.softmax
        self.next = wrap(self.attend)

    def attend(self, token, place, caches):
        """Return the next token and the caches with the keys and values of this one."""
        allowed, kept = (self.places <= place), []
        for weight, (keys, values) in zip(self.weights, caches, strict=True):
            parts = (token @ weight).reshape(self.batch, 4, self.heads, 1, self.width)
            q, k, v, gate = (parts[:, part] for part in range(4))
            if self.side.is_torch:
                keys.index_copy_(2, place, k)
                values.index_copy_(2, place, v)
            else:
                keys, values = keys.index_copy(2, place, k), values.index_copy(2, place, v)
            kept.append([keys, values])
            scores = (q @ keys.transpose(2, 3)) * self.width**-0.5
            scores = scores.masked_fill(~allowed, -math.inf)
            h = self.softmax(scores, -1) @ values * gate
            token = token + h.reshape(self.batch, -1)
        return token / (1 + token.abs().amax()), kept

    def step(self):
        """Decode a token."""
        with self.side.lib.no_grad():
            made, self.caches = self.next(self.token, self.place, self.caches)
            if self.side.is_torch:
                # In place, as a captured graph needs fixed addresses.
                self.token.copy_(made)
                self.place.copy_((self.place + self.one) % self.room)
            else:
                self.token, self.place = made, (self.place + self.one) % self.room
        return self.token

    def result(self, token) -> None:
        """Wait for the token."""
        assert math.isfinite(token.float().sum().item())


WORKS: dict[str, type[Any]] = {
    "mlp": Mlp,
    "transformer": Transformer,
    "add": Add,
    "copy": Copy,
    "bus": Bus,
    "decode": Decode,
}
