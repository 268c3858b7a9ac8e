"""A variational autoencoder (Kingma and Welling, 2013, https://arxiv.org/abs/1312.6114), on digits.

An encoder maps each image to a normal distribution over codes, a decoder maps a code to an image.
Both are trained to maximise the evidence lower bound: the likelihood of the image given its code,
minus the divergence of the code's distribution from the standard normal one, from which new images
are sampled.

python examples/models/vae.py
GT_CONFIG=examples/models/hybrid.yaml python examples/models/vae.py --workers 4
"""

import argparse

import gt
import numpy as np
from gt import nn
from gt.demo import load_digits


class Perceptron(nn.Sequential):
    """Two linear layers, which need no communication between them when tensor parallel."""

    def __init__(self, inputs: int, hidden: int, outputs: int):
        with gt.signal.context("cut_outputs"):
            up = nn.Linear(inputs, hidden)
        with gt.signal.context("cut_inputs"):
            down = nn.Linear(hidden, outputs)
        super().__init__(up, nn.SiLU(), down)


class VariationalAutoencoder(nn.Module):
    """An encoder of images to codes, and a decoder.

    Args:
        pixels: the number of pixels of an image.
        hidden: the hidden width of encoder and decoder.
        codes: the width of a code.
    """

    def __init__(self, pixels: int = 64, hidden: int = 256, codes: int = 8):
        super().__init__()
        self.encoder = Perceptron(pixels, hidden, 2 * codes)
        self.decoder = Perceptron(codes, hidden, pixels)
        self.codes = codes

    def forward(self, images: gt.Tensor, noise: gt.Tensor) -> tuple[gt.Tensor, gt.Tensor]:
        """Return the two terms of each image's evidence lower bound.

        Args:
            images: (batch, pixels), from 0 to 1.
            noise: standard normal numbers (batch, codes), from which codes are sampled.

        Returns:
            The log likelihood of the image, and the divergence from the prior: both (batch,).
        """
        mean, log_variance = self.encoder(images).chunk(2, dim=-1)
        code = mean + (log_variance / 2).exp() * noise
        misfit = nn.functional.binary_cross_entropy_with_logits(
            self.decoder(code), images, reduction="none"
        )
        divergence = (mean.square() + log_variance.exp() - log_variance - 1) / 2
        return -misfit.sum(-1), divergence.sum(-1)

    def sample(self, count: int) -> gt.Tensor:
        """Return new images (count, pixels)."""
        with gt.no_grad():
            return self.decoder(gt.randn(count, self.codes)).sigmoid()


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return images (n, 64) for training and for testing."""
    images, _, test_images, _ = load_digits(test=256)
    return images, test_images


def train(
    model: VariationalAutoencoder,
    optimizer: gt.optim.Optimizer,
    images: np.ndarray,
    batch_size: int,
) -> list[float]:
    """Train for one epoch; return the mean log likelihood and divergence, in nats."""
    order = np.random.permutation(len(images))
    sums: list[gt.Tensor] = []
    for start in range(0, len(order) - batch_size + 1, batch_size):
        with gt.signal.context("batch"):
            batch = gt.from_numpy(images[order[start : start + batch_size]])
            likelihood, divergence = model(batch, gt.randn(batch_size, model.codes))
            loss = (divergence - likelihood).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums.append(gt.stack([likelihood.detach().mean(), divergence.detach().mean()]))
    return gt.stack(sums).mean(0).tolist()


def evaluate(model: VariationalAutoencoder, images: np.ndarray) -> float:
    """Return the mean evidence lower bound of images, in nats."""
    with gt.no_grad(), gt.signal.context("batch"):
        likelihood, divergence = model(gt.from_numpy(images), gt.randn(len(images), model.codes))
        return (likelihood - divergence).mean().item()


def picture(images: np.ndarray) -> str:
    """Return images (n, 64) side by side as text."""
    shades = np.array(list(" .:-=+*#%@"))
    levels = (np.clip(images, 0, 1) * (len(shades) - 1)).round().astype(int).reshape(-1, 8, 8)
    rows = np.concatenate(shades[levels], axis=1)
    return "\n".join("".join(character * 2 for character in row) for row in rows)


def main(epochs: int = 60, workers: int = 1) -> float:
    """Train; return the evidence lower bound of the test images."""
    if workers > 1:
        gt.gpu_workers(workers)
    gt.manual_seed(0)
    np.random.seed(0)
    images, test_images = load()
    with gt.signal.context("copied"):
        model = VariationalAutoencoder()
    print(f"variational autoencoder: before, ELBO {evaluate(model, test_images):.2f} nats")

    optimizer = gt.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        likelihood, divergence = train(model, optimizer, images, batch_size=64)
        if (epoch + 1) % 10 == 0:
            print(
                f"epoch {epoch + 1}: log likelihood {likelihood:.2f}, "
                f"divergence {divergence:.2f}, ELBO {likelihood - divergence:.2f} nats"
            )
    bound = evaluate(model, test_images)
    print(f"test: ELBO {bound:.2f} nats; new digits:")
    print(picture(model.sample(6).numpy()))
    return bound


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a variational autoencoder on digits.")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=1, help="workers in this process")
    main(**vars(parser.parse_args()))
