"""The same operations as speed.rs, in PyTorch: `python speed.py THREADS`."""

import statistics
import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
torch.set_grad_enabled(False)


def bench(name, work):
    """Prints the median over 15 rounds, in microseconds."""
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < 0.03:
        work()
        calls += 1
    rounds = []
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        rounds.append((time.perf_counter() - start) * 1e6 / calls)
    print(f"{name}\t{statistics.median(rounds):.3f}", flush=True)


def create(*dims):
    count = int(torch.Size(dims).numel())
    return ((torch.arange(count) * 7919 % 1000) / 500 - 1).reshape(dims)


eight, small = create(8), create(64)
square, image, weight, grad = create(1000, 1000), create(64, 784), create(784, 256), create(64, 256)
hidden, flat, million, row = create(64, 256), create(200_000), create(1_000_000), create(256)
logits, tall, batch = create(64, 10), create(1000, 784), create(32, 64, 64)
mask = (torch.arange(64 * 256) % 2 == 1).reshape(64, 256)
bench("add 8", lambda: eight + eight)
bench("add 64", lambda: small + small)
bench("add 64 number", lambda: small + 1.5)
bench("matmul 1000", lambda: square @ square)
bench("matmul 64x784x256", lambda: image @ weight)
weight_t, image_t, tall_t = weight.T, image.T, tall.T
bench("matmul 64x256x784 t", lambda: grad @ weight_t)
bench("matmul 784x64x256 t", lambda: image_t @ grad)
bench("matmul 32x64x64x64", lambda: batch @ batch)
bench("add row 64x256", lambda: hidden + row)
bench("relu 64x256", lambda: torch.relu(hidden))
bench("gt 64x256", lambda: hidden > 0)
bench("mul mask 64x256", lambda: hidden * mask)
bench("sum axis 0 64x256", lambda: hidden.sum(0))
bench("sum axis 1 64x256", lambda: hidden.sum(1))
bench("mean 64x256", lambda: hidden.mean())
bench("argmax 64x256", lambda: hidden.argmax(1))
bench("mul_add 200k", lambda: torch.add(flat, flat, alpha=-0.01))
for name in ["exp", "tanh", "sigmoid", "sin", "erf"]:
    bench(f"{name} 200k", lambda function=getattr(torch, name): function(flat))
positive = flat.abs() + 0.001
bench("log 200k", lambda: torch.log(positive))
bench("sqrt 200k", lambda: torch.sqrt(positive))
bench("gelu 200k", lambda: torch.nn.functional.gelu(flat))
bench("add 1M", lambda: million + million)
bench("sum 1M", lambda: million.sum())
bench("cast f64 1M", lambda: million.double())
bench("log_softmax 64x10", lambda: torch.log_softmax(logits, 1))
bench("softmax 1000x784", lambda: torch.softmax(tall, 1))
bench("rand 1M", lambda: torch.rand(1_000_000))
bench("randn 1M", lambda: torch.randn(1_000_000))
bench("randint 1M", lambda: torch.randint(0, 1000, (1_000_000,)))
bench("randn f64 1M", lambda: torch.randn(1_000_000, dtype=torch.float64))
bench("transposed copy 784x1000", lambda: tall_t.reshape(784_000))
