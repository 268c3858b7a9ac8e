"""One side of the benchmark of models; see benches/models.py.

usage: models.py torch|embedded|HOST:PORT WORK

GT's models are those of examples/. PyTorch's are transformers' Qwen3 and torchvision's ResNet-18,
and for the others its own layers, or the same example with PyTorch imported instead of GT.
"""

import json
import re
import resource
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

SIDE, NAME = sys.argv[1], sys.argv[2]
TORCH = SIDE == "torch"
THREADS = 2
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

if TORCH:
    import torch as lib

    lib.set_num_threads(THREADS)
else:
    import gt as lib

    if SIDE != "embedded":
        lib.connect(SIDE)

sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "models")]
F = lib.nn.functional


def example(path: str) -> ModuleType:
    """Import an example as a module; on the side `torch` it uses PyTorch."""
    source = (EXAMPLES / path).read_text()
    if TORCH:
        source = source.replace("import gt\n", "import torch as gt\n")
        source = source.replace("from gt", "from torch")
    module = ModuleType(Path(path).stem)
    module.__file__ = str(EXAMPLES / path)
    sys.modules[module.__name__] = module
    exec(compile(source, module.__file__, "exec"), module.__dict__)
    return module


def resident() -> float:
    """Return the resident memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak() -> float:
    """Return the peak of this process's resident memory, in MiB."""
    # Not `ru_maxrss`, which includes the memory of the parent at the time of the fork.
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) / 1024


class Training:
    """Training steps; the loss is fetched at the end."""

    uses = 10
    make: Any
    loss: Any

    def __init__(self):
        self.model = self.make()
        self.optimizer = self.make_optimizer()

    def make_optimizer(self):
        return lib.optim.AdamW(self.model.parameters(), lr=1e-4)

    def __call__(self):
        for _ in range(self.uses):
            loss = self.loss()
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        loss.item()


class ResNet(Training):
    """ResNet-18, 64 x 64, a batch of 16."""

    uses = 4

    def make(self):
        self.x, self.y = lib.randn(16, 3, 64, 64), lib.randint(0, 1000, (16,))
        if TORCH:
            import torchvision

            return torchvision.models.resnet18()
        return example("models/resnet.py").resnet18()

    def make_optimizer(self):
        return lib.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)

    def loss(self):
        return F.cross_entropy(self.model(self.x), self.y)


class ResNetForward(ResNet):
    """The forward pass of the same model in evaluation mode."""

    uses = 10

    def __call__(self):
        self.model.eval()
        with lib.no_grad():
            for _ in range(self.uses):
                scores = self.model(self.x)
        scores.sum().item()


class Qwen3(Training):
    """A small Qwen3: 4 layers, d 256, T 256, a batch of 4."""

    uses = 4
    sizes = {
        "vocab_size": 1024,
        "hidden_size": 256,
        "intermediate_size": 768,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 32,
    }

    def make(self):
        self.ids = lib.randint(0, 1024, (4, 257))
        if TORCH:
            from transformers import Qwen3Config, Qwen3ForCausalLM

            return Qwen3ForCausalLM(Qwen3Config(**self.sizes, tie_word_embeddings=False))
        qwen3 = example("models/qwen3.py")
        return qwen3.Qwen3(qwen3.Config(**self.sizes))

    def loss(self):
        logits = self.model(self.ids[:, :-1])
        logits = logits.logits if TORCH else logits
        return F.cross_entropy(logits.flatten(0, 1), self.ids[:, 1:].flatten())


class Generation(Qwen3):
    """Greedy generation of 128 tokens after a prompt of 16, batch 1, with a cache."""

    uses = 128

    def __init__(self):
        super().__init__()
        self.prompt = self.ids[:1, :16]
        if not TORCH:
            self.generate = example("models/generation.py").generate

    def __call__(self):
        if not TORCH:
            return self.generate(self.model, self.prompt, self.uses).tolist()
        with lib.inference_mode():
            tokens, cache, token = [], None, self.prompt
            for _ in range(self.uses):
                out = self.model(token, past_key_values=cache, use_cache=True)
                cache, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
                tokens.append(token)
            return lib.cat(tokens, 1).tolist()


class CharGPT(Training):
    """The training step of examples/chargpt.py, with clipped gradients."""

    def make(self):
        self.example = example("chargpt.py")
        self.text = self.example.Text(self.example.SONNETS, 64)
        return self.example.GPT(len(self.text.alphabet), 64, 96, 3, 4, 0.1)

    def __call__(self):
        for _ in range(self.uses):
            starts = lib.randint(0, self.text.trained - 64, (32,))
            loss = self.example.loss_of(self.model, *self.text.windows(starts), "float32")
            loss.backward()
            lib.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
        loss.item()


class LSTM(Training):
    """An LSTM layer: batch 64, 128 time steps, width 256."""

    uses = 3

    def make(self):
        self.x, self.y = lib.randn(64, 128, 256), lib.randint(0, 10, (64,))
        layer, head = lib.nn.LSTM(256, 256, batch_first=True), lib.nn.Linear(256, 10)
        return lib.nn.ModuleList([layer, head])

    def make_optimizer(self):
        return lib.optim.SGD(self.model.parameters(), lr=0.1)

    def loss(self):
        layer, head = self.model
        return F.cross_entropy(head(layer(self.x)[0][:, -1]), self.y)


class AdamW:
    """A step over 200 tensors of 64 x 64, with constant gradients."""

    uses = 20

    def __init__(self):
        self.parameters = [lib.nn.Parameter(lib.randn(64, 64)) for _ in range(200)]
        for parameter in self.parameters:
            parameter.grad = lib.randn(64, 64)
        foreach = {"foreach": True} if TORCH else {}
        self.optimizer = lib.optim.AdamW(self.parameters, lr=1e-3, **foreach)

    def __call__(self):
        for _ in range(self.uses):
            self.optimizer.step()
        self.parameters[0].sum().item()


WORKS: dict[str, type[Any]] = {
    "resnet": ResNet,
    "resnet_forward": ResNetForward,
    "qwen3": Qwen3,
    "generation": Generation,
    "chargpt": CharGPT,
    "lstm": LSTM,
    "adamw": AdamW,
}


def main() -> None:
    """Warm up, then run a round for each line of input, and print its time and memory."""
    lib.manual_seed(0)
    lib.ones(1000).sum().item()
    before = resident()
    work = WORKS[NAME]()
    for _ in range(max(2, 16 // work.uses)):
        work()
    Path("/proc/self/clear_refs").write_text("5")  # Reset the peak.
    print("ready", flush=True)
    for _ in sys.stdin:
        begun, used = time.perf_counter(), time.process_time()
        work()
        passed, used = time.perf_counter() - begun, time.process_time() - used
        per_use = 1 if NAME == "generation" else work.uses
        told = {"ms": 1e3 * passed / per_use, "cpu_ms": 1e3 * used / per_use}
        print(json.dumps({**told, "memory": peak() - before}), flush=True)


main()
