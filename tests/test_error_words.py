"""Errors of workers name the function that the user called, and the line of the call."""

import gt
import pytest
from gt.nn import functional as F


def index(*values):
    return gt.tensor(list(values), dtype=gt.int64)


def grid(rows=2, columns=3):
    return gt.ones(rows, columns, requires_grad=True)


#: Functions of a table, which requires gradients, and an index, by the error of a bad index.
FUNCTIONS = {
    "cross_entropy: target {} is not in [0, 3)": lambda w, i: F.cross_entropy(w, gt.cat([i, i])),
    "nll_loss: target {} is not in [0, 3)": lambda w, i: F.nll_loss(w, gt.cat([i, i])),
    "linear_cross_entropy: target {} is not in [0, 2)": lambda w, i: F.linear_cross_entropy(
        gt.ones(1, 3), w, i
    ),
    "multi_margin_loss: target {} is not in [0, 3)": lambda w, i: F.multi_margin_loss(
        w, gt.cat([i, i])
    ),
    "embedding: index {} is not in [0, 2)": lambda w, i: F.embedding(i, w),
    "embedding_bag: index {} is not in [0, 2)": lambda w, i: F.embedding_bag(i.reshape(1, 1), w),
    "index_put: index {} is not in [-2, 2)": lambda w, i: w.index_put((i,), gt.ones(1)),
    "index_fill: index {} is not in [-2, 2)": lambda w, i: w.index_fill(0, i, 1.0),
    "take_along_dim: index {} is not in [-2, 2)": lambda w, i: w.take_along_dim(i.reshape(1, 1), 0),
    "take: index {} is not in [-6, 6)": lambda w, i: w.take(i),
    "one_hot: index {} is not in [0, 3)": lambda w, i: F.one_hot(i, 3) * w,
    "indexing: index {} is not in [-2, 2)": lambda w, i: w[i],
    "gather: index {} is out of range": lambda w, i: w.gather(0, i.reshape(1, 1)),
    "index_select: index {} is out of range": lambda w, i: w.index_select(0, i),
    "index_add: index {} is out of range": lambda w, i: w.index_add(0, i, gt.ones(1, 3)),
    "scatter: index {} is out of range": lambda w, i: w.scatter(0, i.reshape(1, 1), 1.0),
}


def message(tensor):
    with pytest.raises(gt.WorkerError) as caught:
        tensor.tolist()
    assert isinstance(caught.value, IndexError)
    return str(caught.value)


@pytest.mark.parametrize("words", FUNCTIONS)
def test_a_bad_index_is_reported_by_the_function_that_was_called(words):
    act = FUNCTIONS[words]
    act(grid(), index(1)).tolist()
    result = act(grid(), index(99))  # the line that called it
    text = message(result)
    # If the function is an operation itself, the error also lists its operands.
    name, _, reason = words.format(99).partition(":")
    assert text.startswith(f"{name}: ") or text.startswith(f"{name} of float32 ("), text
    assert f":{reason}" in text.splitlines()[0], text
    assert f"{__file__}:" in text


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda w, i: F.cross_entropy(w, gt.cat([i, i])), "cross_entropy: target 11 is not in"),
        (lambda w, i: F.embedding(i, w).sum(), "embedding: index 11 is not in [0, 2)"),
        (lambda w, i: w[i].sum(), "indexing: index 11 is not in [-2, 2)"),
        (lambda w, i: w.index_select(0, i).sum(), "index_select: index 11 is not in [0, 2)"),
    ],
)
def test_an_error_in_a_gradient_names_the_forward_function_and_its_line(act, words):
    w = grid()
    loss = act(w, index(11))
    loss.backward()
    text = message(w.grad)
    assert text.startswith(words), text
    # The line of the lambda, not that of the backward pass.
    assert f"{__file__}:{act.__code__.co_firstlineno}" in text, text


def test_an_error_in_a_module_names_its_function_and_the_line_in_the_users_module():
    class Model(gt.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = gt.nn.Embedding(4, 2)

        def forward(self, x):
            return self.table(x)

    model = Model()
    text = message(model(index(4)))
    line = Model.forward.__code__.co_firstlineno + 1
    assert text.startswith("embedding: index 4 is not in [0, 4)"), text
    assert f"{__file__}:{line}" in text


def test_the_first_of_several_failures_is_reported():
    x = gt.ones(3)
    first = x[index(7)]
    second = x[index(8)]
    assert "index 7" in message(second + first)
    assert "index 7" in message(gt.stack([second, first]).sum())


def test_an_error_in_a_users_function_names_its_line():
    class Own(gt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.index_select(0, index(5, 5, 5))

    x = gt.ones(3, requires_grad=True)
    Own.apply(x).sum().backward()
    text = message(x.grad)
    assert f"{__file__}:{Own.backward.__code__.co_firstlineno + 2}" in text, text


def test_a_bad_label_in_a_hot_loop_raises_the_same_error():
    w = grid()
    for step in range(12):
        w.grad = None
        labels = index(0, 11 if step == 10 else 1)
        loss = F.cross_entropy(w, labels)  # in the loop
        loss.backward()
        if step == 10:
            text = message(w.grad)
            assert text == message(loss)
            assert text.startswith("cross_entropy: target 11 is not in [0, 3)"), text
    assert w.grad.shape == (2, 3)
    w.grad.tolist()
