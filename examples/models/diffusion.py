"""Denoising diffusion (Ho et al., 2020, https://arxiv.org/abs/2006.11239) of handwritten digits.

Noise is added to images in many small steps, and a small U-Net learns to predict the noise. New
digits are sampled by removing predicted noise step by step, starting from pure noise.

python examples/models/diffusion.py
GT_CONFIG=examples/models/data_parallel.yaml python examples/models/diffusion.py --workers 4
"""

import argparse
import math

import gt
import numpy as np
from gt import nn
from gt.demo import load_digits


class Schedule:
    """The noise schedule: the part of an image that is left after each step.

    Args:
        steps: the number of steps.
        kind: "cosine" (Nichol and Dhariwal, 2021), or "linear" as in the first paper.
    """

    def __init__(self, steps: int = 100, kind: str = "cosine"):
        if kind == "cosine":
            angles = (np.linspace(0, 1, steps + 1) + 0.008) / 1.008 * math.pi / 2
            left = np.cos(angles) ** 2
            betas = np.clip(1 - left[1:] / left[:-1], 0, 0.999)
        elif kind == "linear":
            # The paper's betas are for 1000 steps; with fewer steps they are scaled up.
            betas = np.clip(np.linspace(1e-4, 0.02, steps) * 1000 / steps, 0, 0.999)
        else:
            raise ValueError(f'kind is {kind!r}, expected "cosine" or "linear"')
        self.steps = steps
        self.betas = betas
        self.left = np.cumprod(1 - betas)

    def add_noise(self, images: gt.Tensor, noise: gt.Tensor, times: gt.Tensor) -> gt.Tensor:
        """Return images (batch, 1, 8, 8) after `times` (batch,) noising steps."""
        left = gt.from_numpy(self.left.astype("float32"))[times].reshape(-1, 1, 1, 1)
        return left.sqrt() * images + (1 - left).sqrt() * noise

    def remove_noise(
        self, images: gt.Tensor, predicted: gt.Tensor, time: int, noise: gt.Tensor
    ) -> gt.Tensor:
        """Return images one step earlier, by the noise that the network predicts in them."""
        beta, left = float(self.betas[time]), float(self.left[time])
        before = float(self.left[time - 1]) if time > 0 else 1.0
        clean = (images - math.sqrt(1 - left) * predicted) / math.sqrt(left)
        clean_part = math.sqrt(before) * beta * clean.clip(-1, 1)
        mean = (clean_part + math.sqrt(1 - beta) * (1 - before) * images) / (1 - left)
        return mean + math.sqrt(beta * (1 - before) / (1 - left)) * noise


def wave(times: gt.Tensor, width: int) -> gt.Tensor:
    """Return sines and cosines of times (batch,) at width / 2 frequencies: (batch, width)."""
    frequencies = (gt.arange(width // 2) * (-math.log(1000.0) / (width // 2 - 1))).exp()
    angles = times[:, None] * frequencies
    return gt.cat([angles.sin(), angles.cos()], dim=1)


class Block(nn.Module):
    """A residual block of two convolutions; the time is added between them."""

    def __init__(self, inputs: int, outputs: int, width: int):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, outputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(width, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: gt.Tensor, time: gt.Tensor) -> gt.Tensor:
        """Map x (batch, inputs, height, width) and embedded times to (batch, outputs, ...)."""
        y = self.conv1(nn.functional.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.shortcut(x) + self.conv2(nn.functional.silu(self.norm2(y)))


class UNet(nn.Module):
    """A U-Net of two resolutions, with a skip connection at the higher one."""

    def __init__(self, channels: int = 16):
        super().__init__()
        width = 2 * channels
        with gt.signal.context("cut_outputs"):
            up = nn.Linear(channels, 4 * channels)
        with gt.signal.context("cut_inputs"):
            down = nn.Linear(4 * channels, width)
        self.time = nn.Sequential(up, nn.SiLU(), down)
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.down = Block(channels, channels, width)
        self.shrink = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.middle = nn.ModuleList([Block(2 * channels, 2 * channels, width) for _ in range(2)])
        self.grow = nn.ConvTranspose2d(2 * channels, channels, 4, stride=2, padding=1)
        self.up = Block(2 * channels, channels, width)
        self.norm = nn.GroupNorm(4, channels)
        self.last = nn.Conv2d(channels, 1, 3, padding=1)
        self.channels = channels

    def forward(self, images: gt.Tensor, times: gt.Tensor) -> gt.Tensor:
        """Return the noise in images (batch, 1, 8, 8) after `times` (batch,) steps."""
        time = self.time(wave(times, self.channels))
        high = self.down(self.first(images), time)
        low = self.shrink(high)
        for block in self.middle:
            low = block(low, time)
        x = self.up(gt.cat([self.grow(low), high], dim=1), time)
        return self.last(nn.functional.silu(self.norm(x)))


def denoising_loss(
    model: UNet, schedule: Schedule, images: gt.Tensor, times: gt.Tensor, noise: gt.Tensor
) -> gt.Tensor:
    """Return the mean squared error of the predicted noise after `times` (batch,) steps."""
    predicted = model(schedule.add_noise(images, noise, times), times)
    return nn.functional.mse_loss(predicted, noise)


def train(
    model: UNet,
    schedule: Schedule,
    optimizer: gt.optim.Optimizer,
    images: np.ndarray,
    steps: int,
    batch_size: int = 64,
) -> list[float]:
    """Train on random images, times and noise; return the loss of each step."""
    rng = np.random.default_rng(1)
    losses: list[gt.Tensor] = []
    for step in range(steps):
        with gt.signal.context("batch"):
            batch = gt.from_numpy(images[rng.integers(len(images), size=batch_size)])
            times = gt.randint(0, schedule.steps, (batch_size,))
            loss = denoising_loss(model, schedule, batch, times, gt.randn_like(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}: loss {gt.stack(losses[-100:]).mean().item():.4f}")
    return gt.stack(losses).tolist()


def sample(model: UNet, schedule: Schedule, count: int) -> gt.Tensor:
    """Sample new images (count, 1, 8, 8)."""
    images = gt.randn(count, 1, 8, 8)
    with gt.no_grad():
        for time in reversed(range(schedule.steps)):
            predicted = model(images, gt.full((count,), time))
            images = schedule.remove_noise(images, predicted, time, gt.randn_like(images))
    return images


def distance(images: np.ndarray, others: np.ndarray) -> float:
    """Return the mean distance of images from their nearest neighbours among the others."""
    one, other = images.reshape(len(images), 1, -1), others.reshape(1, len(others), -1)
    return float(np.sqrt(((one - other) ** 2).sum(-1)).min(1).mean())


def picture(images: np.ndarray) -> str:
    """Return images side by side as text."""
    shades = np.array(list(" .:-=+*#%@"))
    levels = ((images[:, 0] + 1) / 2 * (len(shades) - 1)).round().astype(int)
    rows = np.concatenate(shades[levels], axis=1)
    return "\n".join("".join(character * 2 for character in row) for row in rows)


def main(
    steps: int = 300, diffusion_steps: int = 100, kind: str = "cosine", workers: int = 1
) -> tuple[float, float]:
    """Train and sample; return the distances of samples, and of noise, to real digits."""
    if workers > 1:
        gt.gpu_workers(workers)
    gt.manual_seed(0)
    images = load_digits(test=0)[0].reshape(-1, 1, 8, 8) * 2 - 1
    schedule = Schedule(diffusion_steps, kind)
    with gt.signal.context("copied"):
        model = UNet()
    print(f"U-Net: {sum(p.numel() for p in model.parameters()):,} parameters, {kind} schedule")

    optimizer = gt.optim.Adam(model.parameters(), lr=3e-3)
    train(model, schedule, optimizer, images, steps)
    drawn = sample(model, schedule, 64).numpy()
    noise = np.random.default_rng(0).standard_normal(drawn.shape).clip(-1, 1)
    found, by_chance = distance(drawn, images), distance(noise, images)
    print(f"distance to the nearest real digit: {found:.2f}; of noise: {by_chance:.2f}")
    print(picture(drawn[:6]))
    return found, by_chance


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a diffusion model on handwritten digits.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--diffusion-steps", type=int, default=100)
    parser.add_argument("--kind", choices=["cosine", "linear"], default="cosine")
    parser.add_argument("--workers", type=int, default=1, help="workers in this process")
    main(**vars(parser.parse_args()))
