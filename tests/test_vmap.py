"""`gt.vmap` compared with `torch.vmap`."""

import gt
import numpy as np
import pytest
from gt.nn import functional as F

torch = pytest.importorskip("torch")

#: PyTorch warns of missing batching rules, and of deprecated functions.
pytestmark = pytest.mark.filterwarnings("ignore")

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype("float32")
Y = np.random.default_rng(1).normal(size=(3, 5)).astype("float32")


def both(function, *arrays, rtol=1e-5, **options):
    """Map a function of (library, tensors) in both libraries; compare the results."""
    got = gt.vmap(lambda *given: function(gt, *given), **options)(*map(gt.tensor, arrays))
    want = torch.vmap(lambda *given: function(torch, *given), **options)(*map(torch.tensor, arrays))
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, want)), strict=True):
        assert one.shape == tuple(other.shape)
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=rtol, atol=1e-5)


FUNCTIONS = {
    "sum": lambda lib, x: x.sum(),
    "sum of an axis": lambda lib, x: x.sum(-1),
    "index": lambda lib, x: x[1:, ::2],
    "row": lambda lib, x: x[1],
    "last": lambda lib, x: x[..., -1],
    "list": lambda lib, x: x[[0, 2, 1]],
    "transpose": lambda lib, x: x.T @ x,
    "flatten": lambda lib, x: x.flatten(),
    "view": lambda lib, x: x.reshape(-1, 1),
    "where": lambda lib, x: lib.where(x > 0, x, x * 0.1),
    "split": lambda lib, x: x.split(2),
    "max": lambda lib, x: x.max(1)[0],
    "sort": lambda lib, x: x.sort(-1)[1],
    "std": lambda lib, x: (x - x.mean(0)) / x.std(0),
    "norm": lambda lib, x: lib.linalg.norm(x),
    "einsum": lambda lib, x: lib.einsum("ij,ik->jk", x, x),
    "outer": lambda lib, x: lib.outer(x[0], x[1]),
    "stack": lambda lib, x: lib.stack([x, x + 1], 1),
    "tril": lambda lib, x: x.tril(),
    "softmax": lambda lib, x: x.softmax(-1),
    "layer norm": lambda lib, x: lib.nn.functional.layer_norm(x, (x.shape[-1],)),
    "in place": lambda lib, x: (x * 2).add_(1).mul_(x),
    "written part": lambda lib, x: lib.cat([x[:1] * 0, x[1:]]),
    "pad": lambda lib, x: lib.nn.functional.pad(x, (1, 2)),
    "repeat": lambda lib, x: x.repeat(2, 1),
    "cumsum": lambda lib, x: x.cumsum(0),
    "svd": lambda lib, x: lib.linalg.svdvals(x),
    "solve": lambda lib, x: lib.linalg.solve(x @ x.T + lib.eye(x.shape[0]), x),
    "fft": lambda lib, x: lib.fft.fft(x).abs(),
    "embedding": lambda lib, x: lib.nn.functional.embedding(lib.arange(2), x),
    "one hot index": lambda lib, x: x.gather(1, x.argmax(1, keepdim=True)),
    "several": lambda lib, x: (x.sum(), x.argmax()),
    "factories": lambda lib, x: lib.zeros_like(x) + lib.ones(x.shape[1]) * x[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_functions_as_in_pytorch(name, axis):
    both(FUNCTIONS[name], X, in_dims=axis, rtol=1e-3)


def test_axes_and_unmapped_arguments():
    both(lambda lib, x, y: x @ y, X, Y)
    both(lambda lib, x, y: x @ y, X, Y[0], in_dims=(0, None))
    both(lambda lib, x, y: x + y, X[0], Y, in_dims=(None, 0), out_dims=-1)
    both(lambda lib, x, y: (x.sum(), y * 2), X, Y, out_dims=(0, 1))
    both(lambda lib, x, y: y, X, Y[0], in_dims=(0, None))


def test_trees_of_tensors():
    def function(given, pair):
        return {"sum": given["a"] + pair[0], "both": [given["b"] * pair[1]]}

    inputs = ({"a": gt.tensor(Y), "b": gt.tensor(Y)}, (gt.tensor(Y[0]), gt.tensor(Y)))
    dims = ({"a": 0, "b": 0}, (None, 0))
    got = gt.vmap(function, in_dims=dims, out_dims={"sum": 0, "both": [1]})(*inputs)
    np.testing.assert_allclose(got["sum"].numpy(), Y + Y[0])
    np.testing.assert_allclose(got["both"][0].numpy(), (Y * Y).T)


def test_nested():
    def pairs(lib, a, b):
        return lib.vmap(lib.vmap(lib.dot, in_dims=(None, 0)), in_dims=(0, None))(a, b)

    got, want = (pairs(lib, lib.tensor(X[0]), lib.tensor(Y)) for lib in (gt, torch))
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5)
    both(lambda lib, x: lib.vmap(lambda row: row @ x, in_dims=1)(x), X @ X.transpose(0, 2, 1))


def test_convolutions_with_mapped_kernels():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3, 2, 4, 8)).astype("float32")
    kernels = rng.normal(size=(3, 6, 2, 3)).astype("float32")
    for groups, given in ((1, images[:, :, :2]), (2, images)):

        def conv(lib, x, k, groups=groups):
            return lib.nn.functional.conv1d(x, k, padding=1, groups=groups)

        both(conv, given, kernels, rtol=1e-4)
        both(conv, given, kernels[0], in_dims=(0, None), rtol=1e-4)
        both(conv, given[0], kernels, in_dims=(None, 0), rtol=1e-4)


def test_in_chunks():
    x = gt.tensor(X)
    whole = gt.vmap(lambda x: (x * 2).sum(), chunk_size=2)(x)
    np.testing.assert_allclose(whole.numpy(), (X * 2).sum((1, 2)), rtol=1e-5)
    assert gt.vmap(lambda x: x, out_dims=1, chunk_size=2)(x).shape == (4, 3, 5)


WRONG = {
    "sizes": lambda lib: lib.vmap(lambda a, b: a + b)(lib.ones(3), lib.ones(2)),
    "no inputs": lambda lib: lib.vmap(lambda: 1)(),
    "nothing mapped": lambda lib: lib.vmap(lambda x: x, in_dims=(None,))(lib.ones(3)),
    "structure": lambda lib: lib.vmap(lambda x: x, in_dims=(0, 0))(lib.ones(3)),
    "in_dims": lambda lib: lib.vmap(lambda x: x, in_dims="a")(lib.ones(3)),
    "in_dim": lambda lib: lib.vmap(lambda x: x, in_dims=("a",))(lib.ones(3)),
    "no tensor": lambda lib: lib.vmap(lambda x: x)(3),
    "out of range": lambda lib: lib.vmap(lambda x: x, in_dims=2)(lib.ones(3)),
    "scalar": lambda lib: lib.vmap(lambda x: x)(lib.ones(())),
    "out_dims": lambda lib: lib.vmap(lambda x: x, out_dims=(0, 0))(lib.ones(3)),
    "no tensor out": lambda lib: lib.vmap(lambda x: 3)(lib.ones(3)),
    "out_dim None": lambda lib: lib.vmap(lambda x: x, out_dims=None)(lib.ones(3)),
    "randomness": lambda lib: lib.vmap(lambda x: x, randomness="some")(lib.ones(3)),
    "chunk_size": lambda lib: lib.vmap(lambda x: x, chunk_size=0)(lib.ones(3)),
    "item": lambda lib: lib.vmap(lambda x: x * x.item())(lib.ones(3)),
    "bool": lambda lib: lib.vmap(lambda x: x if x > 0 else -x)(lib.ones(3)),
    "mask": lambda lib: lib.vmap(lambda x: x[x > 0])(lib.ones(3, 2)),
    "nonzero": lambda lib: lib.vmap(lambda x: x.nonzero())(lib.ones(3, 2)),
    "random": lambda lib: lib.vmap(lambda x: x + lib.rand(2))(lib.ones(3)),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_as_in_pytorch(name):
    with pytest.raises(Exception) as want:
        WRONG[name](torch)
    with pytest.raises(want.type) as got:
        WRONG[name](gt)
    texts = [str(error.value).removeprefix("vmap: ") for error in (got, want)]
    assert texts[0][:30] == texts[1][:30]


def test_tensors_from_outside_cannot_be_changed():
    kept = gt.zeros(2)
    with pytest.raises(RuntimeError, match="vmapped over"):
        gt.vmap(lambda x: kept.add_(x))(gt.ones(3, 2))
    with pytest.raises(RuntimeError, match="vmapped over"):
        gt.vmap(lambda x: kept[0].copy_(x[0]))(gt.ones(3, 2))
    assert kept.tolist() == [0, 0]

    def filled(x):
        made = gt.zeros(2)
        made[0] = x.sum()
        return made

    assert gt.vmap(filled)(gt.ones(3, 2)).tolist() == [[2, 0]] * 3


def test_an_error_inside_leaves_vmap():
    with pytest.raises(KeyError):
        gt.vmap(lambda x: {}["missing"])(gt.ones(3))
    assert not gt._gt.in_vmap()
    assert gt.rand(2).shape == (2,)


def test_repr_of_a_mapped_tensor():
    shown = []
    gt.vmap(lambda x: shown.append(repr(x)) or x)(gt.ones(3, 2))
    assert shown == ["tensor(<mapped over by vmap>, shape=(2,), dtype=float32)"]


def test_backward_through_vmap():
    w = gt.tensor(Y[0], requires_grad=True)
    gt.vmap(lambda x: F.relu(x @ w).sum())(gt.tensor(X)).sum().backward()
    tw = torch.tensor(Y[0], requires_grad=True)
    torch.vmap(lambda x: torch.relu(x @ tw).sum())(torch.tensor(X)).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), tw.grad.numpy(), rtol=1e-5)
    with pytest.raises(RuntimeError, match="inside vmap"):
        gt.vmap(lambda x: (x @ w).sum().backward())(gt.tensor(X))


def test_rows_of_a_jacobian_by_autograd():
    x = gt.tensor(Y[0], requires_grad=True)
    y = x.sin() * x.sum()
    rows = gt.vmap(lambda v: gt.autograd.grad(y, x, v, retain_graph=True)[0])(gt.eye(5))
    tx = torch.tensor(Y[0])
    want = torch.func.jacrev(lambda x: x.sin() * x.sum())(tx)
    np.testing.assert_allclose(rows.numpy(), want.numpy(), rtol=1e-4, atol=1e-6)
