"""ResNet (He et al., 2015, https://arxiv.org/abs/1512.03385), trained on handwritten digits.

Parameters have torchvision's names, shapes and initialisation, so that its weights load as they
are: `resnet18().load_state_dict(torchvision.models.resnet18(weights="DEFAULT").state_dict())`.

python examples/models/resnet.py
GT_CONFIG=examples/models/data_parallel.yaml python examples/models/resnet.py --workers 4
"""

import argparse
import time
from typing import Any

import gt
import numpy as np
from gt import nn
from gt.demo import load_digits


class BasicBlock(nn.Module):
    """A residual block of two 3x3 convolutions; the first one has the stride."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: gt.Tensor) -> gt.Tensor:
        """Map x (batch, inputs, height, width) to (batch, outputs, height / stride, ...)."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(x)) + shortcut)


class ResNet(nn.Module):
    """Four stages of blocks; each but the first halves the resolution and doubles the channels.

    Args:
        blocks: the number of blocks of each stage.
        num_classes: the number of classes.
        width: the number of channels of the first stage.
    """

    def __init__(
        self,
        blocks: tuple[int, int, int, int] = (2, 2, 2, 2),
        num_classes: int = 1000,
        width: int = 64,
    ):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = stage(width, width, blocks[0], stride=1)
        self.layer2 = stage(width, 2 * width, blocks[1], stride=2)
        self.layer3 = stage(2 * width, 4 * width, blocks[2], stride=2)
        self.layer4 = stage(4 * width, 8 * width, blocks[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(8 * width, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: gt.Tensor) -> gt.Tensor:
        """Return scores (batch, classes) for images (batch, 3, height, width)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def stage(inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
    """Return the blocks of a stage."""
    first = BasicBlock(inputs, outputs, stride)
    return nn.Sequential(first, *(BasicBlock(outputs, outputs) for _ in range(blocks - 1)))


def resnet18(**options: Any) -> ResNet:
    """Return a ResNet of 18 layers."""
    return ResNet((2, 2, 2, 2), **options)


def load() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return images (n, 3, 32, 32) and labels for training, then the same for testing."""
    images, labels, test_images, test_labels = load_digits(test=256)
    return enlarged(images), labels, enlarged(test_images), test_labels


def enlarged(images: np.ndarray) -> np.ndarray:
    """Return images (n, 64) from 0 to 1 as images (n, 3, 32, 32) from -1 to 1."""
    images = images.reshape(-1, 1, 8, 8) * 2 - 1
    return images.repeat(4, axis=2).repeat(4, axis=3).repeat(3, axis=1)


def train(
    model: ResNet,
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
            loss = nn.functional.cross_entropy(model(batch), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.detach())
    return gt.stack(losses).mean().item()


def evaluate(model: ResNet, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the accuracy."""
    model.eval()
    with gt.no_grad(), gt.signal.context("batch"):
        guesses = model(gt.from_numpy(images)).argmax(1)
    return float((guesses.numpy() == labels).mean())


def main(epochs: int = 3, width: int = 16, workers: int = 1) -> list[float]:
    """Train; return the test accuracy after each epoch."""
    if workers > 1:
        gt.gpu_workers(workers)
    gt.manual_seed(0)
    np.random.seed(0)
    images, labels, test_images, test_labels = load()
    with gt.signal.context("copied"):
        model = resnet18(num_classes=10, width=width)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"ResNet-18 of width {width}: {count:,} parameters, {len(images)} images")

    batch_size = 64
    steps = epochs * (len(images) // batch_size)
    optimizer = gt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    schedule = gt.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=steps)
    accuracies: list[float] = []
    for epoch in range(epochs):
        start = time.perf_counter()
        loss = train(model, optimizer, schedule, images, labels, batch_size)
        seconds = time.perf_counter() - start
        accuracies.append(evaluate(model, test_images, test_labels))
        print(
            f"epoch {epoch + 1}: loss {loss:.3f}, test accuracy {accuracies[-1]:.1%}, "
            f"{len(images) / seconds:.0f} images/s"
        )
    return accuracies


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train a ResNet-18 on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--width", type=int, default=16, help="64 is the ResNet-18 of the paper")
    parser.add_argument("--workers", type=int, default=1, help="workers in this process")
    main(**vars(parser.parse_args()))
