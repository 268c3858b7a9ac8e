"""Detection with torchvision on the device "cluster"."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
device = pytest.importorskip("gt.torch")
torchvision = pytest.importorskip("torchvision")

pytestmark = pytest.mark.filterwarnings("ignore")


def boxes(count, size, seed=0):
    """Return random boxes, some of them with an area of 0."""
    generator = torch.Generator().manual_seed(seed)
    low = torch.rand(count, 2, generator=generator) * size
    extent = torch.rand(count, 2, generator=generator) * size / 2
    extent[::7] = 0
    return torch.cat([low, low + extent], 1)


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("count", [0, 1, 60])
def test_nms(count, threshold):
    """The kept boxes are those of the CPU, also among equal scores."""
    given = boxes(count, 10.0)
    scores = (torch.rand(count, generator=torch.Generator().manual_seed(1)) * 20).round()
    expected = torchvision.ops.nms(given, scores, threshold)
    found = torchvision.ops.nms(given.to("cluster"), scores.to("cluster"), threshold)
    assert found.device.type == "cluster"
    assert found.cpu().equal(expected)


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [-1, 1, 2])
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_roi_align(aligned, ratio, scale):
    """Regions, including those that exceed the image, and the gradient of the image."""
    generator = torch.Generator().manual_seed(0)
    image = torch.randn(2, 3, 9, 13, generator=generator)
    corners = boxes(12, 20.0) - 4
    regions = torch.cat([torch.arange(12.0).remainder(2)[:, None], corners], 1)
    weight = torch.randn(12, 3, 3, 4, generator=generator)

    def run(device):
        pixels = image.to(device).requires_grad_()
        found = torchvision.ops.roi_align(pixels, regions.to(device), (3, 4), scale, ratio, aligned)
        (found * weight.to(device)).sum().backward()
        with torch.inference_mode():
            again = torchvision.ops.roi_align(
                pixels, regions.to(device), (3, 4), scale, ratio, aligned
            )
        assert again.equal(found)
        return found.detach().cpu(), pixels.grad.cpu()

    for found, expected in zip(run("cluster"), run("cpu"), strict=True):
        assert torch.allclose(found, expected, atol=1e-5), (found - expected).abs().max()


def test_detector():
    """A detector returns the CPU's results, and can be trained."""
    from torchvision.models import detection

    generator = torch.Generator().manual_seed(0)
    images = [
        torch.rand(3, 64, 64, generator=generator),
        torch.rand(3, 48, 80, generator=generator),
    ]
    targets = [
        {"boxes": torch.tensor([[10.0, 10, 50, 60]]), "labels": torch.tensor([1])},
        {"boxes": torch.tensor([[5.0, 5, 40, 40]]), "labels": torch.tensor([3])},
    ]

    def moved(targets, device):
        return [{name: of.to(device) for name, of in target.items()} for target in targets]

    def run(device):
        torch.manual_seed(0)
        model = detection.fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None, weights_backbone=None, num_classes=5, min_size=64, max_size=96
        ).to(device)
        here = [image.to(device) for image in images]
        with torch.no_grad():
            found = model.eval()(here)[0]
        # Each device samples the proposals for training at random.
        losses = model.train()(here, moved(targets, device))
        sum(losses.values()).backward()
        assert all(of.grad is not None for of in model.parameters() if of.requires_grad)
        return found["boxes"].cpu(), found["scores"].cpu(), losses["loss_rpn_box_reg"].item()

    (boxes, scores, loss), (wanted, expected, other) = run("cluster"), run("cpu")
    assert torch.allclose(scores, expected, atol=1e-4)
    assert boxes.shape == wanted.shape and len(boxes)
    # The order of equal scores is undefined.
    assert torch.allclose(boxes.sum(0), wanted.sum(0), rtol=1e-3)
    assert loss == pytest.approx(other, abs=1e-3)


def test_mistakes():
    """Errors are those of torchvision."""
    boxes, scores = torch.ones(3, 4, device="cluster"), torch.ones(3, device="cluster")
    with pytest.raises(RuntimeError, match="same number of elements"):
        torchvision.ops.nms(boxes, scores[:2], 0.5)
    with pytest.raises(RuntimeError, match="one dtype, got dets of torch.float64"):
        torchvision.ops.nms(boxes.double(), scores, 0.5)
    with pytest.raises(RuntimeError, match=r"of shape \(boxes, 4\), not \(3, 3\)"):
        torchvision.ops.nms(boxes[:, :3], scores, 0.5)
    regions = torch.ones(1, 5, device="cluster")
    with pytest.raises(RuntimeError, match="one dtype, got input of torch.float32"):
        torchvision.ops.roi_align(torch.ones(1, 1, 4, 4, device="cluster"), regions.double(), 2)
    exact = torchvision.ops.roi_align(
        torch.arange(16.0, dtype=torch.float64).reshape(1, 1, 4, 4) / 7,
        torch.tensor([[0, 0.3, 0.7, 3.1, 2.9]], dtype=torch.float64),
        2,
    )
    found = torchvision.ops.roi_align(
        (torch.arange(16.0, dtype=torch.float64).reshape(1, 1, 4, 4) / 7).to("cluster"),
        torch.tensor([[0, 0.3, 0.7, 3.1, 2.9]], dtype=torch.float64).to("cluster"),
        2,
    )
    assert torch.allclose(found.cpu(), exact, rtol=0, atol=1e-12)
