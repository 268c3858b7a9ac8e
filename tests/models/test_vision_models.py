"""ResNet and the vision transformer compute the same as torchvision's, with its weights."""

import gt
import numpy as np
import pytest
from twins import (
    assert_buffers_close,
    assert_close,
    assert_gradients_close,
    assert_same_curve,
    minimize,
    resnet,
    vit,
)

torch = pytest.importorskip("torch")
models = pytest.importorskip("torchvision").models

VIT = dict(image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=48)


def narrow_resnet(width):
    """Return torchvision's ResNet with one block in each stage, and fewer channels."""
    block = models.resnet.BasicBlock
    model = models.ResNet(block, [1, 1, 1, 1], num_classes=10)
    model.conv1 = torch.nn.Conv2d(3, width, 7, 2, 3, bias=False)
    model.bn1, model.inplanes = torch.nn.BatchNorm2d(width), width
    for stage in range(4):
        layer = model._make_layer(block, width * 2**stage, 1, stride=1 if stage == 0 else 2)
        setattr(model, f"layer{stage + 1}", layer)
    model.fc = torch.nn.Linear(8 * width, 10)
    return model


def tiny_vit():
    """Return torchvision's vision transformer, without weights that are zero."""
    model = models.VisionTransformer(**VIT, num_classes=10)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def resnets():
    """Return a narrow ResNet of the example and of torchvision, with the same weights."""
    return twins(resnet.ResNet((1, 1, 1, 1), num_classes=10, width=4), narrow_resnet(4))


def transformers():
    """Return a tiny vision transformer of the example and of torchvision, with the same weights."""
    return twins(vit.VisionTransformer(**VIT, num_classes=10), tiny_vit())


def twins(ours, theirs):
    """Load the weights of the second model into the first; return both."""
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


@pytest.fixture(autouse=True)
def their_seed():
    torch.manual_seed(0)


def pictures(count, size, seed=0):
    """Return noisy pictures of 10 classes, which are stripes of different frequencies."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(10, size=count)
    waves = np.sin(np.arange(size) * (labels[:, None] + 1) * np.pi / 10)
    images = rng.standard_normal((count, 3, size, size)) + 2 * waves[:, None, None]
    return images.astype("float32"), labels


def loss_of(model, lib, images, labels):
    """Return scores and loss, with either library."""
    scores = model(lib.from_numpy(images))
    return scores, lib.nn.functional.cross_entropy(scores, lib.from_numpy(labels))


def assert_same_step(ours, theirs, images, labels):
    """Compare scores, losses and gradients."""
    (scores, loss), (wanted, wanted_loss) = (
        loss_of(ours, gt, images, labels),
        loss_of(theirs, torch, images, labels),
    )
    assert_close(scores, wanted)
    assert_close(loss, wanted_loss)
    loss.backward()
    wanted_loss.backward()
    assert_gradients_close(ours, theirs)


def settings(model):
    """Return the hyperparameters of layers."""
    names = ("eps", "momentum", "p")
    return {
        (module_name, name): getattr(module, name)
        for module_name, module in model.named_modules()
        for name in names
        if hasattr(module, name)
    }


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda: resnet.resnet18(num_classes=10), lambda: models.resnet18(num_classes=10)),
        (lambda: vit.VisionTransformer(**VIT), lambda: models.VisionTransformer(**VIT)),
    ],
    ids=["resnet18", "vit"],
)
def test_weights_begin_as_those_of_torchvision(ours, theirs):
    ours, theirs = ours(), theirs()
    assert settings(ours) == settings(theirs)
    ours, theirs = ours.state_dict(), theirs.state_dict()
    assert list(ours) == list(theirs)
    for name, wanted in theirs.items():
        found, wanted = ours[name].numpy().astype("float64"), wanted.numpy().astype("float64")
        assert found.shape == wanted.shape, name
        spread = 6 * wanted.std() / np.sqrt(wanted.size)
        assert abs(found.mean() - wanted.mean()) <= spread, name
        assert found.std() == pytest.approx(wanted.std(), rel=0.05 + 4 / np.sqrt(found.size)), name
        largest = np.abs(wanted).max()
        assert np.abs(found).max() == pytest.approx(largest, rel=0.5), name


def test_the_base_model_has_the_sizes_of_torchvision(monkeypatch):
    asked = []
    monkeypatch.setattr(vit, "VisionTransformer", lambda **sizes: asked.append(sizes))
    monkeypatch.setattr(models.vision_transformer, "VisionTransformer", lambda **s: asked.append(s))
    vit.vit_b_16()
    models.vit_b_16()
    ours, theirs = asked
    assert ours == theirs


def test_resnet18_with_the_weights_of_torchvision():
    ours, theirs = twins(resnet.resnet18(num_classes=10), models.resnet18(num_classes=10))
    assert_same_step(ours, theirs, *pictures(4, 64))
    assert_buffers_close(ours, theirs)
    images, _ = pictures(2, 48)
    with gt.no_grad(), torch.no_grad():
        assert_close(ours.eval()(gt.from_numpy(images)), theirs.eval()(torch.from_numpy(images)))


def test_vit_with_the_weights_of_torchvision():
    ours, theirs = transformers()
    assert_same_step(ours, theirs, *pictures(4, 16))
    images, _ = pictures(2, 16)
    with gt.no_grad(), torch.no_grad():
        assert_close(ours.eval()(gt.from_numpy(images)), theirs.eval()(torch.from_numpy(images)))


def train(model, lib, optimizer, batch, size):
    """Train for 200 steps with new pictures in every step; return the losses."""
    return minimize(
        lambda step: loss_of(model, lib, *pictures(batch, size, seed=step))[1], optimizer, 200
    )


def test_resnet_trains_as_that_of_torchvision():
    ours, theirs = resnets()
    options = dict(lr=3e-4, momentum=0.9, weight_decay=5e-4)
    found = train(ours, gt, gt.optim.SGD(ours.parameters(), **options), 24, 32)
    wanted = train(theirs, torch, torch.optim.SGD(theirs.parameters(), **options), 24, 32)
    assert_same_curve(found, wanted)


def test_vit_trains_as_that_of_torchvision():
    ours, theirs = transformers()
    options = dict(lr=1e-3, weight_decay=0.05)
    found = train(ours, gt, gt.optim.AdamW(ours.parameters(), **options), 16, 16)
    wanted = train(theirs, torch, torch.optim.AdamW(theirs.parameters(), **options), 16, 16)
    assert_same_curve(found, wanted)
