"""Convolution, pooling and batch normalization beside PyTorch's, with gradients of gradients."""

import gt
import pytest
from pytorch import check, draw, to_gt, torch

CASES = {
    "conv1d": (
        lambda f, x, w: f.conv1d(x, w, stride=2, padding=1),
        [(2, 4, 9), (6, 4, 3)],
    ),
    "conv2d in groups": (
        lambda f, x, w, b: f.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=2, groups=2),
        [(2, 4, 9, 8), (6, 2, 3, 2), (6,)],
    ),
    "conv2d, each channel alone": (
        lambda f, x, w: f.conv2d(x, w, padding="same", groups=3),
        [(2, 3, 6, 5), (6, 1, 3, 5)],
    ),
    "conv3d": (
        lambda f, x, w: f.conv3d(x, w, padding=(0, 1, 0)),
        [(2, 2, 4, 3, 5), (3, 2, 2, 2, 3)],
    ),
    "conv_transpose1d": (
        lambda f, x, w: f.conv_transpose1d(x, w, stride=3, padding=4, output_padding=1),
        [(2, 3, 7), (3, 2, 3)],
    ),
    "conv_transpose2d in groups": (
        lambda f, x, w: f.conv_transpose2d(x, w, stride=2, padding=1, groups=2, dilation=2),
        [(2, 4, 4, 3), (4, 3, 2, 3)],
    ),
    "max_pool2d": (
        lambda f, x: f.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        [(2, 3, 8, 7)],
    ),
    "avg_pool2d": (
        lambda f, x: f.avg_pool2d(x, (3, 2), 2, 1, ceil_mode=True, count_include_pad=False),
        [(2, 3, 8, 7)],
    ),
    "batch_norm": (
        lambda f, x, w, b: f.batch_norm(x, None, None, w, b, training=True),
        [(4, 3, 5), (3,), (3,)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_of_gradients(name):
    function, shapes = CASES[name]
    theirs = [draw(at, *shape, dtype="float64") for at, shape in enumerate(shapes, 1)]
    theirs = [tensor.requires_grad_() for tensor in theirs]
    ours = [to_gt(tensor) for tensor in theirs]
    want, got = function(torch.nn.functional, *theirs), function(gt.nn.functional, *ours)
    check(got, want, name, 10)
    want = torch.autograd.grad((want * want * want).sum(), theirs, create_graph=True)
    got = gt.autograd.grad((got * got * got).sum(), ours, create_graph=True)
    for mine, other in zip(got, want, strict=True):
        check(mine, other, name, 1000)
    sum((grad * grad).sum() for grad in want).backward()
    sum((grad * grad).sum() for grad in got).backward()
    for mine, other in zip(ours, theirs, strict=True):
        check(mine.grad, other.grad, name, 100000)
