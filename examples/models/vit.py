"""Vision transformer (Dosovitskiy et al., 2020, https://arxiv.org/abs/2010.11929), on digits.

Parameters have torchvision's names, shapes and initialisation, so that its weights load as they
are: `vit_b_16().load_state_dict(torchvision.models.vit_b_16(weights="DEFAULT").state_dict())`.

python examples/models/vit.py
GT_CONFIG=examples/models/hybrid.yaml python examples/models/vit.py --workers 4
"""

import argparse
import math
from collections import OrderedDict
from typing import Any

import gt
import numpy as np
from gt import nn
from gt.demo import load_digits


def feed_forward_layer(inputs: int, outputs: int) -> nn.Linear:
    """Return a linear layer with Xavier weights and biases near 0."""
    layer = nn.Linear(inputs, outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.normal_(layer.bias, std=1e-6)
    return layer


class EncoderBlock(nn.Module):
    """Attention and a feed-forward network, each on normalized input and with a residual."""

    def __init__(
        self,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
    ):
        super().__init__()
        self.ln_1 = nn.LayerNorm(hidden_dim, eps=1e-6)
        with gt.signal.context("cut_outputs"):
            self.self_attention = nn.MultiheadAttention(
                hidden_dim, num_heads, dropout=attention_dropout, batch_first=True
            )
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = nn.LayerNorm(hidden_dim, eps=1e-6)
        with gt.signal.context("cut_outputs"):
            up = feed_forward_layer(hidden_dim, mlp_dim)
        with gt.signal.context("cut_inputs"):
            # Annotated as a subclass that differs in nothing.
            self.self_attention.out_proj = nn.Linear(hidden_dim, hidden_dim)  # type: ignore[assignment]
            nn.init.zeros_(self.self_attention.out_proj.bias)
            down = feed_forward_layer(mlp_dim, hidden_dim)
        self.mlp = nn.Sequential(up, nn.GELU(), nn.Dropout(dropout), down, nn.Dropout(dropout))

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        """Map x (batch, length, hidden_dim) to the same shape."""
        normal = self.ln_1(x)
        attended, _ = self.self_attention(normal, normal, normal, need_weights=False)
        x = x + self.dropout(attended)
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Blocks over patches with learned position embeddings."""

    def __init__(
        self,
        length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention: float,
    ):
        super().__init__()
        self.pos_embedding = nn.Parameter(gt.empty(1, length, hidden_dim).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        sizes = (num_heads, hidden_dim, mlp_dim, dropout, attention)
        names = [f"encoder_layer_{layer}" for layer in range(num_layers)]
        self.layers = nn.Sequential(OrderedDict((name, EncoderBlock(*sizes)) for name in names))
        self.ln = nn.LayerNorm(hidden_dim, eps=1e-6)

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        """Map x (batch, length, hidden_dim) to the same shape."""
        return self.ln(self.layers(self.dropout(x + self.pos_embedding)))


class VisionTransformer(nn.Module):
    """A transformer over the patches of an image and a class token.

    Args:
        image_size: height and width of images, a multiple of `patch_size`.
        patch_size: height and width of patches.
        num_layers: the number of blocks.
        num_heads: the number of attention heads.
        hidden_dim: the width of a patch's embedding.
        mlp_dim: the hidden width of the feed-forward networks.
        dropout: the probability that a value is dropped.
        attention_dropout: the probability that an attention weight is dropped.
        num_classes: the number of classes.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
    ):
        super().__init__()
        if image_size % patch_size:
            raise ValueError(
                f"image_size is {image_size}, expected a multiple of patch_size, {patch_size}"
            )
        length = (image_size // patch_size) ** 2 + 1
        sizes = (num_layers, num_heads, hidden_dim, mlp_dim)
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, stride=patch_size)
        self.class_token = nn.Parameter(gt.zeros(1, 1, hidden_dim))
        self.encoder = Encoder(length, *sizes, dropout, attention_dropout)
        self.heads = nn.Sequential(OrderedDict(head=nn.Linear(hidden_dim, num_classes)))
        nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / (3 * patch_size**2)))
        for part in (self.conv_proj.bias, self.heads.head.weight, self.heads.head.bias):
            nn.init.zeros_(part)

    def forward(self, images: gt.Tensor) -> gt.Tensor:
        """Return scores (batch, classes) for images (batch, 3, height, width)."""
        patches = self.conv_proj(images).flatten(2).transpose(1, 2)
        token = self.class_token.expand(len(images), -1, -1)
        return self.heads(self.encoder(gt.cat([token, patches], dim=1))[:, 0])


def vit_b_16(**options: Any) -> VisionTransformer:
    """Return the base model, with 86 million parameters and patches of 16 x 16 pixels."""
    sizes = dict(image_size=224, patch_size=16, num_layers=12, num_heads=12)
    return VisionTransformer(**sizes, hidden_dim=768, mlp_dim=3072, **options)


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return images (n, 3, 8, 8) and labels for training, then the same for testing."""
    images, labels, test_images, test_labels = load_digits(test=256)
    return in_color(images), labels, in_color(test_images), test_labels


def in_color(images: np.ndarray) -> np.ndarray:
    """Return images (n, 64) from 0 to 1 as images (n, 3, 8, 8) from -1 to 1."""
    return (images.reshape(-1, 1, 8, 8) * 2 - 1).repeat(3, axis=1)


def train(
    model: VisionTransformer,
    optimizer: gt.optim.Optimizer,
    schedule: gt.optim.lr_scheduler.LRScheduler,
    images: np.ndarray,
    labels: np.ndarray,
    batch_size: int,
) -> float:
    """Train for one epoch; return the mean loss."""
    model.train()
    order = np.random.permutation(len(images))
    losses: list[gt.Tensor] = []
    for start in range(0, len(order) - batch_size + 1, batch_size):
        rows = order[start : start + batch_size]
        with gt.signal.context("batch"):
            batch, targets = gt.from_numpy(images[rows]), gt.from_numpy(labels[rows])
            loss = nn.functional.cross_entropy(model(batch), targets, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return gt.stack(losses).mean().item()


def evaluate(model: VisionTransformer, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy."""
    model.eval()
    with gt.no_grad(), gt.signal.context("batch"):
        guesses = model(gt.from_numpy(images)).argmax(1)
    return float((guesses.numpy() == labels).mean())


def main(epochs: int = 12, workers: int = 1) -> list[float]:
    """Train; return the test accuracy after each epoch."""
    if workers > 1:
        gt.gpu_workers(workers)
    gt.manual_seed(0)
    np.random.seed(0)
    images, labels, test_images, test_labels = load()
    sizes = dict(num_layers=3, num_heads=4, hidden_dim=48, mlp_dim=96, num_classes=10)
    with gt.signal.context("copied"):
        model = VisionTransformer(image_size=8, patch_size=2, **sizes)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"vision transformer: {count:,} parameters, {len(images)} images in 16 patches")

    batch_size = 64
    steps = epochs * (len(images) // batch_size)
    optimizer = gt.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.05)
    schedule = gt.optim.lr_scheduler.SequentialLR(
        optimizer,
        [
            gt.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=20),
            gt.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps - 20)),
        ],
        [20],
    )
    accuracies: list[float] = []
    for epoch in range(epochs):
        loss = train(model, optimizer, schedule, images, labels, batch_size)
        accuracies.append(evaluate(model, test_images, test_labels))
        print(f"epoch {epoch + 1}: loss {loss:.3f}, test accuracy {accuracies[-1]:.1%}")
    return accuracies


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a vision transformer on digits.")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--workers", type=int, default=1, help="workers in this process")
    main(**vars(parser.parse_args()))
