"""Losses and their options beside PyTorch's."""

import gt
import pytest
from pytorch import check, draw, to_gt, torch

functional = torch.nn.functional

LOSSES = {
    "cross entropy": ("CrossEntropyLoss", (5, 4), lambda: torch.tensor([0, 3, 1, 1, 2])),
    "cross entropy of images": ("CrossEntropyLoss", (2, 4, 3), lambda: draw(
        1, 2, 3, dtype="int64", low=0, high=3
    )),
    "cross entropy of a sample": ("CrossEntropyLoss", (4,), lambda: torch.tensor(2)),
    "cross entropy of shares": ("CrossEntropyLoss", (5, 4), lambda: draw(2, 5, 4).softmax(1)),
    "binary cross entropy": ("BCELoss", (5, 4), lambda: draw(3, 5, 4, low=0, high=1)),
    "squares": ("MSELoss", (5, 4), lambda: draw(4, 5, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    kind, shape, target = LOSSES[name]
    for reduction in ("mean", "sum", "none"):
        x = draw(9, *shape)
        x = x.sigmoid() if kind == "BCELoss" else x
        x = x.requires_grad_()
        ours = to_gt(x)
        want = getattr(torch.nn, kind)(reduction=reduction)(x, target())
        got = getattr(gt.nn, kind)(reduction=reduction)(ours, to_gt(target()))
        check(got, want, (name, reduction), 5)
        want.sum().backward()
        got.sum().backward()
        check(ours.grad, x.grad, (name, reduction), 5)


def compare(theirs, ours, x, y, context):
    """Compare a loss's values and gradients for a prediction x and a target y."""
    x = x.detach().requires_grad_()
    mine = to_gt(x)
    want, got = theirs(x, y), ours(mine, to_gt(y))
    check(got, want, context, 5)
    want.sum().backward()
    got.sum().backward()
    check(mine.grad, x.grad, context, 5)


def test_binary_cross_entropy_of_sure_answers():
    p, y = torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 0.0])
    compare(functional.binary_cross_entropy, gt.nn.binary_cross_entropy, p, y, "sure answers")
    assert not gt.nn.binary_cross_entropy(gt.tensor([2.0]), gt.ones(1)).isfinite().item()


def test_binary_cross_entropy_gives_targets_gradients():
    p, y = (t.requires_grad_() for t in (draw(1, 4).sigmoid(), draw(2, 4).sigmoid()))
    ours = to_gt([p, y])
    functional.binary_cross_entropy(p, y).backward()
    gt.nn.binary_cross_entropy(*ours).backward()
    check([t.grad for t in ours], [p.grad, y.grad])


def test_logits_that_are_zero_or_large():
    x, y = torch.tensor([0.0, 0.0, 90.0, -90.0, 1e4]), torch.tensor([0.0, 1.0, 1.0, 0.0, 1.0])
    theirs = functional.binary_cross_entropy_with_logits
    for target in (y, 1 - y):
        compare(theirs, gt.nn.binary_cross_entropy_with_logits, x, target, "logits")


def test_weights_of_binary_losses():
    x, y, weight = draw(1, 3, 4), draw(2, 3, 4, low=0, high=1), draw(3, 4, low=0, high=2)
    for reduction in ("mean", "sum", "none"):
        options = {"weight": weight, "pos_weight": weight.flip(0), "reduction": reduction}
        theirs = torch.nn.BCEWithLogitsLoss(**options)
        ours = gt.nn.BCEWithLogitsLoss(**{key: to_gt(value) for key, value in options.items()})
        compare(theirs, ours, x, y, ("BCEWithLogitsLoss", reduction))
        theirs = torch.nn.BCELoss(weight=weight, reduction=reduction)
        ours = gt.nn.BCELoss(weight=to_gt(weight), reduction=reduction)
        compare(theirs, ours, x.sigmoid(), y, ("BCELoss", reduction))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(6, 5), (2, 5, 3), (5,)], ids=str)
def test_options_of_cross_entropy(shape, reduction):
    x, weight = draw(1, *shape), draw(2, 5, low=0.1, high=2)
    classes = draw(3, *shape[:-1] if len(shape) < 3 else (2, 3), dtype="int64", low=0, high=4)
    if len(shape) == 1:
        classes = torch.tensor(3)
    shares = draw(4, *shape).softmax(0 if len(shape) == 1 else 1)
    for smoothing in (0.0, 0.2):
        for weighted in (None, weight):
            for ignored in (None, 1, -100):
                y = classes.clone()
                if ignored == -100 and y.ndim:
                    y[0] = -100
                options = {"reduction": reduction, "label_smoothing": smoothing}
                theirs = torch.nn.CrossEntropyLoss(
                    weight=weighted, ignore_index=-100 if ignored is None else ignored, **options
                )
                ours = gt.nn.CrossEntropyLoss(
                    weight=to_gt(weighted), ignore_index=ignored, **options
                )
                compare(theirs, ours, x, y, (options, weighted, ignored))
            theirs = torch.nn.CrossEntropyLoss(weight=weighted, **options)
            ours = gt.nn.CrossEntropyLoss(weight=to_gt(weighted), **options)
            compare(theirs, ours, x, shares, ("shares", options, weighted))


@pytest.mark.parametrize("shape", [(6, 5), (2, 5, 3), (5,)], ids=str)
def test_second_gradients_of_cross_entropy(shape):
    x = draw(1, *shape, dtype="float64")
    classes = torch.tensor(3)
    if len(shape) > 1:
        classes = draw(3, shape[0], *shape[2:], dtype="int64", low=0, high=4)

    def second(lib, x, classes):
        loss = lib.nn.functional.cross_entropy(x, classes, reduction="sum")
        (first,) = lib.autograd.grad(loss, [x], create_graph=True)
        return lib.autograd.grad((first * first).sum(), [x])[0]

    ours = second(gt, to_gt(x).requires_grad_(), to_gt(classes))
    check(ours, second(torch, x.requires_grad_(), classes), shape, 10)
