"""One side of the benchmark of PyTorch programs; see benches/torch_device.py.

usage: torch_device.py cpu|embedded|HOST:PORT WORK
"""

import json
import sys
import time
import warnings

import torch

SIDE, NAME = sys.argv[1], sys.argv[2]
DEVICE = "cpu" if SIDE == "cpu" else "cluster"
torch.set_num_threads(2)
warnings.simplefilter("ignore")
if DEVICE == "cluster":
    import gt
    import gt.torch  # noqa: F401  (the device)

    if SIDE != "embedded":
        gt.connect(SIDE)


def wait() -> None:
    """Wait until all operations are computed."""
    if DEVICE == "cluster":
        torch.cluster.synchronize()


def seconds(step, count: int) -> float:
    """Return the seconds of a step."""
    wait()
    start = time.perf_counter()
    for _ in range(count):
        step()
    wait()
    return (time.perf_counter() - start) / count


def addition(requires_grad: bool):
    """Return a function that measures the microseconds of an addition in a chain of 1,000."""
    first = torch.ones(4, 4, device=DEVICE, requires_grad=requires_grad)
    other = torch.ones(4, 4, device=DEVICE)

    def chain():
        x = first
        for _ in range(1000):
            x = x + other

    return lambda: seconds(chain, 5) / 1000 * 1e6


def perceptron():
    """Return a function that measures the milliseconds of a training step of an MLP."""
    torch.manual_seed(0)
    layers = torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    model = torch.nn.Sequential(*layers).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images, labels = torch.randn(64, 784).to(DEVICE), torch.randint(0, 10, (64,)).to(DEVICE)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return lambda: seconds(step, 50) * 1e3


def qwen3():
    """Return a small Qwen3."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=1000,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    return Qwen3ForCausalLM(config).to(DEVICE)


def training(compiled: bool):
    """Return a function that measures the milliseconds of a training step of Qwen3."""
    model = qwen3()
    if compiled:
        model = torch.compile(model, backend="inductor" if DEVICE == "cpu" else "gt")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, 1000, (4, 64)).to(DEVICE)

    def step():
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()

    return lambda: seconds(step, 5) * 1e3


def generation():
    """Return a function that measures the milliseconds of generating 16 tokens."""
    model = qwen3().eval()
    prompt = torch.randint(3, 1000, (1, 8)).to(DEVICE)
    options = {"max_new_tokens": 16, "min_new_tokens": 16, "do_sample": False}
    return lambda: seconds(lambda: model.generate(prompt, **options), 2) * 1e3


WORKS = {
    "add": lambda: addition(False),
    "recorded": lambda: addition(True),
    "mlp": perceptron,
    "qwen3": lambda: training(False),
    "compiled": lambda: training(True),
    "generate": generation,
}
measure = WORKS[NAME]()
for _ in range(2):
    measure()
print("ready", flush=True)
for _line in sys.stdin:
    print(json.dumps(measure()), flush=True)
