"""One side of the benchmarks of hot paths: runs a round of WORK for each line of input.

usage: hot.py torch|compile|jit|gt|HOST:PORT THREADS WORK

`compile` is torch.compile and `jit` is jax.jit, each used as its documentation recommends; `gt` is
embedded, on the engine that the environment names.
"""

import json
import math
import os
import sys
import time
from typing import Any

SIDE, THREADS, NAME = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if THREADS == 1:
    os.sched_setaffinity(0, {0})

import numpy as np  # noqa: E402

RANDOM = np.random.default_rng(0)
TORCH = SIDE in ("torch", "compile")

if TORCH:
    import torch as lib

    lib.set_num_threads(THREADS)
elif SIDE == "jit":
    import jax
    import jax.numpy as jnp
else:
    import gt as lib

    if SIDE != "gt":
        lib.connect(SIDE)


def draw(*shape, scale=1.0):
    return (RANDOM.standard_normal(shape) * scale).astype("float32")


def tensor(*shape, scale=1.0):
    values = draw(*shape, scale=scale)
    return jnp.asarray(values) if SIDE == "jit" else lib.from_numpy(values)


def parameter(*shape, scale=1.0):
    made = tensor(*shape, scale=scale)
    return made if SIDE == "jit" else made.requires_grad_()


def compiled(function):
    return lib.compile(function) if SIDE == "compile" else function


class Chain:
    """Six elementwise operations and a sum over a million floats; the sum is fetched."""

    uses, repeats = 5, 7

    def __init__(self):
        self.x = tensor(1000, 1000)

        def work(x):
            exp = jnp.tanh if SIDE == "jit" else (lambda y: y.tanh())
            y = exp(x * 0.5 + 1.0) * x
            return ((y - 0.25) * (x + 2.0)).sum()

        self.work = jax.jit(work) if SIDE == "jit" else compiled(work)
        x = np.asarray(self.x).astype("float64")
        self.want = ((np.tanh(x * 0.5 + 1) * x - 0.25) * (x + 2)).sum()

    def __call__(self):
        for _ in range(self.uses):
            if TORCH:
                with lib.inference_mode():
                    got = self.work(self.x).item()
            else:
                got = self.work(self.x).item()
        assert abs(got - self.want) < 1e-3 * abs(self.want), (got, self.want)


class Forward:
    """Operations that compilers fuse with products and reductions; an element is fetched."""

    uses, repeats = 10, 5
    shapes: tuple[tuple[int, ...], ...]
    compute: Any

    def __init__(self):
        self.operands = [tensor(*shape) for shape in self.shapes]
        self.work = jax.jit(self.compute) if SIDE == "jit" else compiled(self.compute)

    def __call__(self):
        for _ in range(self.uses):
            if TORCH:
                with lib.inference_mode():
                    got = self.work(*self.operands)
            else:
                got = self.work(*self.operands)
            assert math.isfinite(got.reshape(-1)[0].item())


class Epilogue(Forward):
    """A product, a bias and gelu."""

    shapes = (512, 256), (1024, 256), (1024,)

    @staticmethod
    def compute(x, weight, bias):
        if SIDE == "jit":
            return jax.nn.gelu(x @ weight.T * 0.06 + bias, approximate=False)
        return lib.nn.functional.gelu(x @ weight.T * 0.06 + bias)


class Outer(Forward):
    """Elementwise operations, summed over the rows."""

    shapes = (1000, 1000), (1000, 1000)

    @staticmethod
    def compute(x, y):
        return ((x * 2 + 1) * y - x).sum(0)


class Attention(Forward):
    """softmax(q k' / 8) v of 8 heads, 256 x 256, as separate operations."""

    shapes = ((2, 8, 256, 64),) * 3

    @staticmethod
    def compute(query, key, value):
        if SIDE == "jit":
            return jax.nn.softmax(query @ key.swapaxes(-1, -2) * 0.125, -1) @ value
        return (query @ key.transpose(-1, -2) * 0.125).softmax(-1) @ value


class Training:
    """Training steps; the loss is fetched at the end, or at every step."""

    fetches = False
    uses, repeats = 20, 5
    parameters: Any
    data: Any
    loss: Any
    rate: float

    def __init__(self):
        self.last = math.inf
        if SIDE == "jit":
            gradient = jax.value_and_grad(self.loss)

            def step(state, *data):
                loss, grads = gradient(state[0], *data)
                return loss, self.update(state, grads)

            self.step_ = jax.jit(step, donate_argnums=0)
            self.state = self.start()
            return
        self.forward = compiled(self.loss)
        self.optimizer = self.make_optimizer()
        self.advance = compiled(self.optimizer.step)

    def step(self):
        if SIDE == "jit":
            loss, self.state = self.step_(self.state, *self.data)
            return loss
        loss = self.forward(self.parameters, *self.data)
        loss.backward()
        self.advance()
        self.optimizer.zero_grad()
        return loss

    def __call__(self):
        for _ in range(self.uses):
            loss = self.step()
            if self.fetches:
                loss.item()
        value = loss.item()
        assert value < self.last * 1.02, "training makes progress"
        self.last = value

    # Plain SGD, for JAX.
    def start(self):
        return (self.parameters,)

    def update(self, state, grads):
        return (jax.tree.map(lambda p, g: p - self.rate * g, state[0], grads),)

    def make_optimizer(self):
        fused = {"fused": True} if TORCH else {}
        return lib.optim.SGD(self.parameters, lr=self.rate, **fused)


class Mlp(Training):
    """784-256-10, batch 64, SGD."""

    sizes, batch, rate = (784, 256, 10), 64, 1e-4

    def __init__(self):
        inputs, hidden, outputs = self.sizes
        self.data = tensor(self.batch, inputs), tensor(self.batch, outputs)
        self.parameters = [
            parameter(hidden, inputs, scale=0.03),
            parameter(hidden, scale=0.03),
            parameter(outputs, hidden, scale=0.06),
            parameter(outputs, scale=0.06),
        ]
        super().__init__()

    @staticmethod
    def loss(parameters, x, y):
        w1, b1, w2, b2 = parameters
        before = x @ w1.T + b1
        hidden = jax.nn.relu(before) if SIDE == "jit" else before.relu()
        difference = hidden @ w2.T + b2 - y
        return (difference * difference).mean()


class SmallMlp(Mlp):
    """64-64-10, batch 8: mostly overhead; the loss is fetched at every step."""

    sizes, batch, rate, fetches = (64, 64, 10), 8, 1e-3, True


LAYERS, WIDTH, HEADS, LENGTH, BATCH, WORDS = 4, 256, 8, 128, 8, 256


class Transformer(Training):
    """4 layers, width 256, 8 heads, 128 tokens, batch 8, AdamW."""

    uses, repeats, rate = 2, 2, 1e-4

    def __init__(self):
        tokens = RANDOM.integers(0, WORDS, (BATCH, LENGTH + 1))
        if SIDE == "jit":
            self.data = jnp.asarray(tokens[:, :-1]), jnp.asarray(tokens[:, 1:])
        else:
            made = lib.tensor(tokens, dtype=lib.int64)
            self.data = made[:, :-1].reshape(-1), made[:, 1:].reshape(-1)
        self.parameters = [parameter(WORDS, WIDTH, scale=0.1), parameter(LENGTH, WIDTH, scale=0.1)]
        for _ in range(LAYERS):
            for outputs, inputs in ((3, 1), (1, 1), (4, 1), (1, 4)):
                shape = outputs * WIDTH, inputs * WIDTH
                self.parameters += [parameter(*shape, scale=0.05), parameter(shape[0], scale=0.01)]
            self.parameters += [parameter(WIDTH, scale=0.1) for _ in range(4)]
        super().__init__()

    def make_optimizer(self):
        fused = {"fused": True} if TORCH else {}
        return lib.optim.AdamW(self.parameters, lr=self.rate, **fused)

    @staticmethod
    def loss(parameters, tokens, wanted):
        if SIDE == "jit":
            return Transformer.loss_of_jax(parameters, tokens, wanted)
        functional = lib.nn.functional
        rest = iter(parameters)
        words, places = next(rest), next(rest)
        x = words.index_select(0, tokens).reshape(BATCH, LENGTH, WIDTH) + places
        for _ in range(LAYERS):
            weights = [next(rest) for _ in range(12)]
            (qkv, qkv_b, out, out_b, up, up_b, down, down_b, g1, s1, g2, s2) = weights
            h = functional.layer_norm(x, (WIDTH,), g1 + 1, s1)
            h = functional.linear(h, qkv, qkv_b).reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = (h[:, :, i].transpose(1, 2) for i in range(3))
            h = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH)
            x = x + functional.linear(h, out, out_b)
            h = functional.layer_norm(x, (WIDTH,), g2 + 1, s2)
            h = functional.gelu(functional.linear(h, up, up_b))
            x = x + functional.linear(h, down, down_b)
        logits = (x @ words.T).reshape(-1, WORDS)
        return functional.cross_entropy(logits, wanted)

    @staticmethod
    def loss_of_jax(parameters, tokens, wanted):
        rest = iter(parameters)
        words, places = next(rest), next(rest)
        x = words[tokens] + places
        above = jnp.triu(jnp.full((LENGTH, LENGTH), -1e9), 1)

        def norm(x, g, s):
            centered = x - x.mean(-1, keepdims=True)
            return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * g + s

        for _ in range(LAYERS):
            weights = [next(rest) for _ in range(12)]
            (qkv, qkv_b, out, out_b, up, up_b, down, down_b, g1, s1, g2, s2) = weights
            h = norm(x, g1 + 1, s1) @ qkv.T + qkv_b
            h = h.reshape(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
            q, k, v = (h[:, :, i].swapaxes(1, 2) for i in range(3))
            scores = q @ k.swapaxes(2, 3) * (WIDTH // HEADS) ** -0.5 + above
            h = (jax.nn.softmax(scores, -1) @ v).swapaxes(1, 2).reshape(BATCH, LENGTH, WIDTH)
            x = x + h @ out.T + out_b
            h = jax.nn.gelu(norm(x, g2 + 1, s2) @ up.T + up_b, approximate=False)
            x = x + h @ down.T + down_b
        logits = jax.nn.log_softmax(x @ words.T)
        return -jnp.take_along_axis(logits, wanted[..., None], -1).mean()

    # AdamW, for JAX.
    def start(self):
        zeros = [jnp.zeros_like(p) for p in self.parameters]
        return self.parameters, zeros, [jnp.zeros_like(p) for p in zeros], jnp.zeros(())

    def update(self, state, grads):
        parameters, first, second, count = state
        count = count + 1
        first = [0.9 * m + 0.1 * g for m, g in zip(first, grads, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, grads, strict=True)]

        def new(p, m, v):
            m, v = m / (1 - 0.9**count), v / (1 - 0.999**count)
            return p * (1 - self.rate * 0.01) - self.rate * m / (jnp.sqrt(v) + 1e-8)

        moved = [new(p, m, v) for p, m, v in zip(parameters, first, second, strict=True)]
        return moved, first, second, count


WORK: dict[str, type[Any]] = {
    "mlp": Mlp,
    "chain": Chain,
    "small": SmallMlp,
    "transformer": Transformer,
    "epilogue": Epilogue,
    "outer": Outer,
    "attention": Attention,
}

start = time.perf_counter()
work = WORK[NAME]()
work()
first = time.perf_counter() - start
for _ in range(6 if NAME != "transformer" else 4):
    work()
if os.environ.get("GT_AUTO_COMPILE") == "1":
    # Run until compilation in the background has finished: almost all operations run compiled then.
    def operations():
        return next(iter(lib.debug.get_worker_stats().values()))["operations"]

    for _ in range(300):
        before = operations()
        work()
        after = operations()
        if after["compiled"] - before["compiled"] > 0.95 * (after["total"] - before["total"]):
            break
        time.sleep(0.5)
print("ready", first, flush=True)
while sys.stdin.readline():
    cpu = time.process_time()
    times = []
    for _ in range(work.repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    seconds = sorted(times)[len(times) // 2] / work.uses
    cpu = (time.process_time() - cpu) / (work.uses * work.repeats)
    print(json.dumps({"us": seconds * 1e6, "cpu_us": cpu * 1e6}), flush=True)
