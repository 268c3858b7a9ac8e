"""The operators of torchvision that detection needs: `nms` and `roi_align`.

They are written in PyTorch's operations. Registered before torchvision declares them, they are
found when it does.
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
    # Its gradient is that of the products it is made of.
    library.impl("roi_align", roi_align, "PrivateUse1")
    library.impl("roi_align", roi_align, "AutogradPrivateUse1")


def nms(dets: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Give the places of the boxes that overlap no box with a higher score, highest first.

    How many there are is in the values, so it waits for them: once, and again for each box of the
    longest chain in which every second one stays.

    Args:
        dets: `(boxes, 4)`, each `x1, y1, x2, y2`.
        scores: `(boxes,)`.
        iou_threshold: by how much of their union two boxes may overlap.
    """
    if dets.dim() != 2 or dets.shape[1] != 4:
        raise RuntimeError(
            f"nms: boxes should be of shape (boxes, 4), and they are {tuple(dets.shape)}"
        )
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
    # A box stays if none that stays is above it: the only answer that does not change any more.
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
    """Give the means of an image's samples in the bins of each region.

    A sample between pixels is interpolated along each axis by itself, so a bin's mean is the
    product of the image with one matrix for each axis. Source: He et al., "Mask R-CNN", 2017.

    Args:
        input: `(images, channels, height, width)`.
        rois: `(regions, 5)`, each an image's number and `x1, y1, x2, y2`.
        spatial_scale: pixels of `input` in one unit of `rois`.
        pooled_height, pooled_width: the bins of a region.
        sampling_ratio: samples of a bin along an axis; 0 or less, as many as it has pixels.
        aligned: whether the centre of the first pixel is at 0.5.
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
    """Refuse tensors of several dtypes."""
    if len({of.dtype for of in given.values()}) > 1:
        found = " and ".join(f"{name} of {of.dtype}" for name, of in given.items())
        raise RuntimeError(f"{name}: expected tensors of one dtype, got {found}")


def _means(
    start: torch.Tensor, end: torch.Tensor, least: float, bins: int, ratio: int, length: int
) -> torch.Tensor:
    """Give the weight of each pixel along an axis in each bin's mean, `(regions, bins, length)`."""
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
