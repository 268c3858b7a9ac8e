"""The torchvision operators for object detection, `nms` and `roi_align`.

They are composed of PyTorch operations. Registration may precede torchvision's import, which
declares the operators.
"""

from __future__ import annotations

import math

import torch

_libraries: list[torch.library.Library] = []


def register() -> None:
    """Register the kernels."""
    library = torch.library.Library("torchvision", "IMPL")
    _libraries.append(library)
    library.impl("nms", nms, "PrivateUse1")
    # Autograd differentiates the operations that it is composed of.
    library.impl("roi_align", roi_align, "PrivateUse1")
    library.impl("roi_align", roi_align, "AutogradPrivateUse1")


def nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Return the indices of boxes that no kept box with a higher score overlaps, best first.

    The number of results is data-dependent, so the function waits for values: once per iteration.
    The number of iterations is about the length of the longest chain of boxes that suppress each
    other.

    Args:
        dets: Boxes `(boxes, 4)`, each `x1, y1, x2, y2`.
        scores: Scores `(boxes,)`.
        iou_threshold: The maximum intersection over union of two kept boxes.
    """
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise RuntimeError(f"nms: boxes should be of shape (boxes, 4), not {tuple(dets.shape)}")
    if scores.shape != dets.shape[:1]:
        raise RuntimeError(
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{len(dets)} and {tuple(scores.shape)}"
        )
    _check_alike("nms", dets=dets, scores=scores)
    order = scores.argsort(descending=True, stable=True)
    boxes = dets[order]
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    low = torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    overlaps = (shared / (area[:, None] + area[None] - shared) > iou_threshold).triu(1)
    # A box is kept if no kept box with a higher score overlaps it. This has a unique solution,
    # which
    # is the fixed point of the iteration.
    kept = torch.ones_like(scores, dtype=torch.bool)
    while True:
        then = ~(overlaps & kept[:, None]).any(0)
        if torch.equal(then, kept):
            return order[kept]
        kept = then


def roi_align(
    input: torch.Tensor,
    rois: torch.Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> torch.Tensor:
    """Return the mean of an image's samples in each bin of each region.

    Bilinear interpolation is separable, so the means of all bins are a product of the image with
    one matrix per axis. Source: He et al., "Mask R-CNN", 2017.

    Args:
        input: Images `(images, channels, height, width)`.
        rois: Regions `(regions, 5)`, each the number of an image and `x1, y1, x2, y2`.
        spatial_scale: The number of pixels of `input` per unit of `rois`.
        pooled_height, pooled_width: The number of bins of a region.
        sampling_ratio: The number of samples per bin along an axis; if 0 or less, one per pixel.
        aligned: Whether the centre of the first pixel is at 0.5.
    """
    if input.dim() != 4 or rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError(
            "roi_align: expected input of shape (images, channels, height, width) and rois of "
            f"shape (regions, 5), got {tuple(input.shape)} and {tuple(rois.shape)}"
        )
    _check_alike("roi_align", input=input, rois=rois)
    height, width = input.shape[2:]
    with torch.no_grad():
        shift = 0.5 if aligned else 0.0
        image = rois[:, 0]
        exact = torch.promote_types(rois.dtype, torch.float32)
        x1, y1, x2, y2 = (rois[:, 1:].to(exact) * spatial_scale - shift).unbind(1)
        least = -math.inf if aligned else 1.0
        rows = _means(y1, y2, least, pooled_height, sampling_ratio, height).to(input.dtype)
        columns = _means(x1, x2, least, pooled_width, sampling_ratio, width).to(input.dtype)
    pooled = input.new_zeros(len(rois), input.shape[1], pooled_height, pooled_width)
    for number, pixels in enumerate(input):
        here = rows * (image == number)[:, None, None]
        pooled = pooled + torch.einsum("kph,chw,kqw->kcpq", here, pixels, columns)
    return pooled


def _check_alike(name: str, **given: torch.Tensor) -> None:
    """Raise `RuntimeError` unless all tensors have one dtype."""
    if len({of.dtype for of in given.values()}) > 1:
        found = " and ".join(f"{name} of {of.dtype}" for name, of in given.items())
        raise RuntimeError(f"{name}: expected tensors of one dtype, got {found}")


def _means(
    start: torch.Tensor, end: torch.Tensor, least: float, bins: int, ratio: int, length: int
) -> torch.Tensor:
    """Return the weights of pixels in the bins' means along an axis, `(regions, bins, length)`."""
    extent = (end - start).clamp(min=least)
    step = extent / bins
    samples = torch.full_like(step, ratio) if ratio > 0 else step.ceil()
    most = ratio if ratio > 0 else max(int(samples.max()), 0) if len(samples) else 0
    each = torch.arange(most, device=start.device)
    begin = start[:, None] + torch.arange(bins, device=start.device) * step[:, None]
    place = begin[:, :, None] + ((each + 0.5) * (step / samples)[:, None])[:, None]
    counts = (place >= -1) & (place <= length) & (each < samples[:, None])[:, None]
    place = place.clamp(0, length - 1)[..., None]
    weights = (1 - (place - torch.arange(length, device=start.device)).abs()).clamp(min=0)
    weights = torch.where(counts[..., None], weights, 0).sum(2)
    return weights / samples.clamp(min=1)[:, None, None]
