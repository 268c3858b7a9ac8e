"""Research code as users write it, with types: a test checks it strictly, and runs it."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import gt
import gt.nn as nn
import gt.nn.functional as F
import numpy as np
from gt import Tensor
from gt.autograd.function import FunctionCtx
from gt.distributions import Categorical, Normal, kl_divergence
from gt.utils.data import DataLoader, Dataset, TensorDataset, random_split


@dataclass
class Config:
    width: int = 16
    heads: int = 4
    lr: float = 1e-3
    steps: int = 3


class Windows(Dataset[tuple[Tensor, Tensor]]):
    """Windows of a series, and the value after each."""

    def __init__(self, series: np.ndarray, length: int) -> None:
        self.series = gt.from_numpy(series.astype("float32"))
        self.length = length

    def __len__(self) -> int:
        return len(self.series) - self.length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.series[index : index + self.length], self.series[index + self.length]


class StraightThrough(gt.autograd.Function):
    """Round forward; pass the gradient unchanged where the input is in a range."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, limit: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.limit = limit
        return x.round()

    @staticmethod
    def backward(ctx: FunctionCtx, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= ctx.limit), None


class Attention(nn.Module):
    """Causal attention with several heads."""

    mask: Tensor

    def __init__(self, config: Config, length: int) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width)
        self.register_buffer("mask", gt.ones(length, length).tril() == 0)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        b, t, c = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = gt.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.size(-1))
        weights = scores.masked_fill(self.mask if mask is None else mask, -math.inf).softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.out(mixed), weights.mean(axis=1)


class Model(nn.Module):
    def __init__(self, config: Config, length: int) -> None:
        super().__init__()
        self.embed = nn.Linear(1, config.width)
        self.places = nn.Parameter(0.02 * gt.randn(length, config.width))
        self.blocks = nn.ModuleList([Attention(config, length) for _ in range(2)])
        self.mlp = nn.Sequential(nn.LayerNorm(config.width), nn.GELU(), nn.Dropout(0.1))
        self.memory = nn.GRU(config.width, config.width, batch_first=True)
        self.heads = nn.ModuleDict({"mean": nn.Linear(config.width, 1)})

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x[..., None]) + self.places
        for block in self.blocks:
            update, _ = block(x)
            x = x + self.mlp(update)
        _, state = self.memory(x)
        mean: Tensor = self.heads["mean"](state[-1])
        return mean.squeeze(-1)


def make_optimizer(model: nn.Module, lr: float) -> gt.optim.Optimizer:
    decayed = [p for p in model.parameters() if p.ndim > 1 and p.requires_grad]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]
    return gt.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95))


@gt.no_grad()
def evaluate(model: Model, loader: DataLoader[tuple[Tensor, Tensor]]) -> float:
    model.eval()
    total, count = 0.0, 0
    for batch, target in loader:
        total += F.mse_loss(model(batch), target, reduction="sum").item()
        count += len(target)
    model.train()
    return total / max(count, 1)


def train(config: Config, folder: Path) -> list[float]:
    series = np.sin(np.linspace(0, 20, 80)) + 0.1 * np.random.default_rng(0).normal(size=80)
    parts = random_split(Windows(series, 8), [0.8, 0.2], generator=gt.Generator().manual_seed(0))
    loader = DataLoader(parts[0], batch_size=16, shuffle=True, drop_last=True)
    held_out = DataLoader(parts[1], batch_size=16)
    model = Model(config, 8).to(gt.float32)
    optimizer = make_optimizer(model, config.lr)
    schedule = gt.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    scaler = gt.amp.GradScaler(enabled=False)
    norms: list[float] = []
    handle = model.embed.register_forward_hook(
        lambda module, inputs, output: norms.append(output.norm().item())
    )
    losses: list[float] = []
    for _, (batch, target) in zip(range(config.steps), loader, strict=False):
        optimizer.zero_grad(set_to_none=True)
        with gt.autocast("cpu", dtype=gt.bfloat16):
            loss = F.huber_loss(model(batch), target)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        total_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        losses.append(loss.item())
        for group in optimizer.param_groups:
            group["lr"] *= 0.99
        assert total_norm >= 0 and optimizer.param_groups[0]["lr"] > 0
    handle.remove()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": len(losses)}
    gt.save(state, folder / "state.pt")
    loaded = gt.load(folder / "state.pt")
    missing, unexpected = model.load_state_dict(loaded["model"], strict=False)
    assert not missing and not unexpected and len(norms) == len(losses)
    return [*losses, evaluate(model, held_out)]


def energy(w: Tensor) -> Tensor:
    return (w**2).sum()


def numbers() -> dict[str, float]:
    """Compute what experiments compute beside training."""
    x = gt.randn(6, 4, dtype=gt.float64, requires_grad=True)
    y = 1 - (2 / (1 + x.exp())) ** 2 + 3 * x - x // 1 + x % 2
    values, indices = y.max(dim=1)
    top = y.topk(2, dim=-1)
    StraightThrough.apply(x, 1.0).sum().backward()
    if x.grad is not None:
        x.grad.zero_()
    u, s, vh = gt.linalg.svd(x.detach(), full_matrices=False)
    q, r = gt.linalg.qr(x.detach())
    eigenvalues = gt.linalg.eigh(x.T @ x).eigenvalues
    signal = gt.fft.irfft(gt.fft.rfft(x.detach(), dim=0) * 0.5, n=6, dim=0)
    prior, posterior = Normal(gt.zeros(4), gt.ones(4)), Normal(gt.ones(4), 2 * gt.ones(4))
    sample = Categorical(logits=gt.zeros(3)).sample((5,))
    per_sample = gt.vmap(gt.func.grad(energy))(gt.ones(3, 2))
    rows = gt.where(y > 0, y, -y)[:, [0, 2]][indices.argsort()]
    return {
        "spread": (values.std() + top.values.var() + top.indices.float().mean()).item(),
        "error": (u @ gt.diag(s) @ vh - q @ r).abs().max().item(),
        "largest": eigenvalues.max().item(),
        "signal": signal.norm().item(),
        "divergence": kl_divergence(posterior, prior).sum().item(),
        "sample": sample.float().mean().item(),
        "per_sample": per_sample.sum().item(),
        "rows": rows.shape.numel() + float(rows.any(dim=0).sum()),
    }


@contextlib.contextmanager
def connected(address: str | None) -> Generator[None]:
    if address is not None:
        gt.connect(address)
    with gt.signal.context("layer"), gt.debug.explain(quiet=True):
        yield
    gt.debug.print_worker_stats()


@gt.compile
def step(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w).relu()


def main(folder: Path, address: str | None = None) -> None:
    with connected(address):
        data = TensorDataset(gt.rand(8, 4), gt.randint(0, 2, (8,)))
        images, labels = next(iter(DataLoader(data, batch_size=4)))
        print(
            step(images, gt.ones(4, 2)).sum(axis=0).tolist(), labels.dtype, len(gt.status().workers)
        )
        print(train(Config(), folder), numbers())


if __name__ == "__main__":
    main(Path())
