"""Train a small GPT on the characters of Shakespeare's sonnets, and have it write its own.

python examples/chargpt.py                            # in this process
python examples/chargpt.py --connect localhost:12345  # on a server's workers

Ctrl-C ends the run with a checkpoint, and the same command resumes it: the final parameters are
the same, bit for bit. Checkpoints, the loss curve and samples are written to the folder --out.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Generator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import gt
from gt import nn
from gt.nn import functional as F
from tqdm import tqdm

SONNETS = Path(__file__).resolve().parent / "text" / "sonnets.txt"


class Block(nn.Module):
    """Causal attention, then a perceptron, each with a residual connection."""

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x: gt.Tensor) -> gt.Tensor:
        """Attend from each position of x (batch, length, width) to the earlier ones."""
        split = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(mixed.transpose(1, 2).flatten(2))

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        """Map (batch, length, width) to the same shape."""
        x = x + self.dropout(self.attend(self.norm1(x)))
        return x + self.dropout(self.narrow(F.gelu(self.widen(self.norm2(x)))))


class GPT(nn.Module):
    """A transformer that predicts the next character at each position."""

    def __init__(
        self, characters: int, context: int, width: int, layers: int, heads: int, dropout: float
    ):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Parameter(gt.zeros(context, width))
        self.blocks = nn.Sequential(*(Block(width, heads, dropout) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, codes: gt.Tensor) -> gt.Tensor:
        """Return scores (batch, context, characters) for codes (batch, context)."""
        return self.head(self.norm(self.blocks(self.characters(codes) + self.places)))


class Text:
    """A text, encoded as one number for each character; its last tenth is held out."""

    def __init__(self, path: Path, context: int):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            sys.exit(f"the text cannot be read: {error}\n  hint: --text FILE, in UTF-8")
        if len(text) < 20 * context:
            sys.exit(f"{path} has {len(text)} characters, expected {20 * context} or more")
        self.alphabet = sorted(set(text))
        self.context = context
        codes = [self.alphabet.index(character) for character in text]
        self.codes = gt.tensor(codes, dtype=gt.int64)
        self.trained = len(text) * 9 // 10

    def windows(self, starts: gt.Tensor) -> tuple[gt.Tensor, gt.Tensor]:
        """Return the windows at each start, and the next character at each of their positions."""
        codes = self.codes[starts[:, None] + gt.arange(self.context + 1)]
        return codes[:, :-1], codes[:, 1:]

    def batches(self, size: int) -> gt.data.DataLoader[Any]:
        """Return a loader of window starts, in random order."""
        starts = range(self.trained - self.context)
        if size > len(starts):
            sys.exit(f"--batch is {size}, but the text has {len(starts)} windows to train on")
        return gt.data.DataLoader(starts, batch_size=size, shuffle=True, drop_last=True)


class Record:
    """The losses in a checkpoint, and the options, which must be the same in a resumed run."""

    def __init__(self, options: dict[str, Any]):
        self.options = options
        self.losses: list[float] = []
        self.held_out: list[list[float]] = []

    def state_dict(self) -> dict[str, Any]:
        """Return the options and losses."""
        return vars(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the losses of a run with the same options."""
        for name, value in self.options.items():
            if (stored := state["options"].get(name)) != value:
                sys.exit(
                    f"the run in --out has {name} {stored}, not {value}\n"
                    f"  hint: --{name} {stored} resumes it, another --out starts a new one"
                )
        self.losses, self.held_out = state["losses"], state["held_out"]


@contextlib.contextmanager
def ctrl_c() -> Generator[threading.Event]:
    """Yield an event that Ctrl-C sets, so that the current step is finished first."""
    pressed = threading.Event()
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


def loss_of(model: GPT, codes: gt.Tensor, following: gt.Tensor, precision: str) -> gt.Tensor:
    """Return the mean loss over all predicted characters."""
    with gt.autocast("cpu", dtype=gt.bfloat16, enabled=precision == "bfloat16"):
        scores = model(codes)
    return F.cross_entropy(scores.float().flatten(0, 1), following.flatten())


def schedule_of(optimizer: gt.optim.Optimizer, steps: int) -> gt.optim.lr_scheduler.LRScheduler:
    """Return the schedule of the learning rate: up for a tenth of the steps, then down."""
    warmup = steps // 10 + 1
    rise = gt.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=warmup)
    fall = gt.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(steps - warmup, 1))
    return gt.optim.lr_scheduler.SequentialLR(optimizer, [rise, fall], [warmup])


def train(model: GPT, text: Text, record: Record, args: argparse.Namespace) -> None:
    """Train until --steps, or until Ctrl-C."""
    optimizer = gt.optim.AdamW(model.parameters(), lr=args.lr)
    schedule, loader = schedule_of(optimizer, args.steps), text.batches(args.batch)
    # The record is loaded first, as its error names the options that differ.
    parts: dict[str, Any] = {"record": record, "model": model, "optimizer": optimizer}
    parts |= {"schedule": schedule, "loader": loader}
    manager = gt.checkpoint.Manager(args.out / "checkpoints", **parts)
    if first := manager.restore_or_initialize():
        told = "the run is finished:" if first == args.steps else "resuming after"
        print(f"{told} step {first} of {args.steps}")

    losses: list[gt.Tensor] = []
    batches = chain.from_iterable(repeat(loader))
    bar = gt.progress(range(first, args.steps), initial=first, total=args.steps, disable=args.quiet)
    with manager, ctrl_c() as pressed:
        for step, starts in zip(bar, batches, strict=False):
            codes, following = text.windows(starts)
            loss = loss_of(model, codes, following, args.precision)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            # Not fetched here: the loop continues while the workers compute.
            losses.append(loss.detach())
            bar.show(loss=loss)
            done, stop = step + 1, pressed.is_set()
            due = done % args.every == 0 or done == args.steps
            if due:
                record.held_out.append([done, evaluate(model, text, args.precision)])
            if due or stop:
                record.losses += gt.stack(losses).tolist()
                losses.clear()
                manager.save(done, force=True)
                tqdm.write(f"step {done}: loss {record.losses[-1]:.4f}, checkpoint")
            if stop:
                break


def evaluate(model: GPT, text: Text, precision: str) -> float:
    """Return the loss on the held-out text."""
    starts = gt.arange(text.trained, len(text.codes) - text.context, text.context)
    model.eval()
    with gt.no_grad():
        codes, following = text.windows(starts)
        loss = loss_of(model, codes, following, precision).item()
    model.train()
    return loss


def write(model: GPT, text: Text, count: int, length: int, temperature: float = 0.8) -> list[str]:
    """Return `count` continuations of the text, sampled character by character."""
    model.eval()
    codes = text.codes[-text.context :].expand(count, -1)
    written: list[gt.Tensor] = []
    with gt.no_grad():
        for _ in range(length):
            scores = model(codes)[:, -1] / temperature
            written.append(gt.multinomial(scores.softmax(-1), 1))
            codes = gt.cat([codes[:, 1:], written[-1]], 1)
    model.train()
    rows: list[list[int]] = gt.cat(written, 1).tolist()
    return ["".join(text.alphabet[code] for code in row) for row in rows]


def draw(record: Record, path: Path) -> None:
    """Save the loss curves as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    axes: Any  # its methods have no types
    _, axes = plt.subplots(figsize=(7, 4.5), dpi=130, layout="constrained")
    steps = range(1, len(record.losses) + 1)
    axes.plot(steps, record.losses, label="trained on", alpha=0.7, linewidth=0.8)
    axes.plot(*zip(*record.held_out, strict=True), "o-", label="held out", markersize=4)
    axes.set(xlabel="step", ylabel="loss", title="A text, character by character")
    axes.legend()
    axes.figure.savefig(path)


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """Return the command-line options."""
    parser = argparse.ArgumentParser(description="Train a GPT on the characters of a text.")
    parser.add_argument("--text", type=Path, default=SONNETS, metavar="FILE")
    parser.add_argument("--out", type=Path, default=Path("chargpt_out"), metavar="FOLDER")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=32, help="windows in a step")
    parser.add_argument("--context", type=int, default=64, help="characters in a window")
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--every", type=int, default=100, help="steps between checkpoints")
    parser.add_argument("--length", type=int, default=400, help="characters of each sample")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--connect", metavar="HOST:PORT", help="use this server")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    args = parser.parse_args(argv)
    for name in ("steps", "batch", "context", "layers", "heads", "every", "length"):
        if (value := getattr(args, name)) < 1:
            parser.error(f"--{name} is {value}, expected 1 or more")
    if args.width < 1 or args.width % args.heads:
        parser.error(f"--width is {args.width}, expected a multiple of --heads, {args.heads}")
    return args


def main(argv: list[str] | None = None) -> None:
    """Train, draw and write."""
    args = arguments(argv)
    if args.connect:
        gt.connect(args.connect)
    gt.manual_seed(args.seed)
    text = Text(args.text, args.context)
    args.out.mkdir(parents=True, exist_ok=True)
    sizes = (args.context, args.width, args.layers, args.heads, args.dropout)
    model = GPT(len(text.alphabet), *sizes)
    free = ("out", "every", "length", "connect", "quiet")
    record = Record({name: value for name, value in vars(args).items() if name not in free})
    record.options["text"] = str(args.text)
    train(model, text, record, args)
    if len(record.losses) < args.steps:
        print(f"interrupted after step {len(record.losses)}: the same command resumes from there")
        return
    draw(record, args.out / "loss.png")
    gt.save(model.state_dict(), args.out / "model.gt")
    samples = write(model, text, count=3, length=args.length)
    (args.out / "samples.txt").write_text(f"\n{'-' * 40}\n".join(samples), encoding="utf-8")
    print(f"held-out loss {record.held_out[-1][1]:.3f}\n{samples[0]}")


if __name__ == "__main__":
    main()
