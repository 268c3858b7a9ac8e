"""Attention in blocks: against PyTorch, against finite differences, over workers, in memory."""

import os

import gt
import numpy as np
import pytest
from processes import run_on_four_workers, run_python, unsharded_only

torch = pytest.importorskip("torch")
attend = gt.nn.functional.scaled_dot_product_attention

TOLERANCE = {"float64": 1e-10, "float32": 3e-5, "bfloat16": 4e-2, "float16": 6e-3}
LENGTHS = [(1, 1), (7, 17), (17, 7), (33, 33), (1, 300), (300, 1), (130, 260), (513, 513)]


def drawn(*shapes):
    random = np.random.default_rng(7)
    return [random.standard_normal(shape) for shape in shapes]


def masks(kind, batch, queries, keys):
    """Return a mask as an array; bool and float masks exclude all keys of one query."""
    random = np.random.default_rng(3)
    if kind == "bool":
        mask = random.random((queries, keys)) > 0.4
        mask[0] = False
        return mask
    if kind == "bool for each head":
        return random.random((*batch[:-1], 1, 1, keys)) > 0.4
    if kind == "float":
        mask = random.standard_normal((queries, keys))
        mask[-1] = -np.inf
        return mask
    return random.standard_normal((*batch, queries, 1)) if kind == "column" else None


def by_pytorch(arrays, grad, mask, dtype, **options):
    leaves = [torch.tensor(x, dtype=getattr(torch, dtype), requires_grad=True) for x in arrays]
    if mask is not None:
        mask = torch.tensor(mask) if mask.dtype == bool else torch.tensor(mask).to(leaves[0].dtype)
    # The backend that treats NaN and queries without keys according to the definition.
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        result = torch.nn.functional.scaled_dot_product_attention(*leaves, mask, **options)
    result.backward(torch.tensor(grad).to(result.dtype))
    return [x.detach().double().numpy() for x in (result, *(leaf.grad for leaf in leaves))]


def by_gt(arrays, grad, mask, dtype, **options):
    leaves = [gt.tensor(x, dtype=dtype, requires_grad=True) for x in arrays]
    if mask is not None:
        mask = gt.tensor(mask) if mask.dtype == bool else gt.tensor(mask, dtype=dtype)
    result = attend(*leaves, mask, **options)
    assert result.dtype.name == dtype
    result.backward(gt.tensor(grad, dtype=dtype))
    return [x.detach().double().numpy() for x in (result, *(leaf.grad for leaf in leaves))]


def compare(arrays, grad, mask, dtype, **options):
    pairs = zip(
        by_gt(arrays, grad, mask, dtype, **options),
        by_pytorch(arrays, grad, mask, dtype, **options),
        strict=True,
    )
    for name, (got, want) in zip(("output", "query", "key", "value"), pairs, strict=True):
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "kind", ["none", "causal", "bool", "bool for each head", "float", "column"]
)
@pytest.mark.parametrize("queries, keys", LENGTHS)
def test_values_and_gradients(queries, keys, kind, dtype):
    batch, width, values = (2, 3), 8, 5
    *arrays, grad = drawn(
        (*batch, queries, width), (*batch, keys, width), (*batch, keys, values),
        (*batch, queries, values),
    )  # fmt: skip
    mask = masks(kind, batch, queries, keys)
    compare(arrays, grad, mask, dtype, is_causal=kind == "causal")


def test_scale_and_groups_of_heads():
    *arrays, grad = drawn((2, 6, 9, 4), (2, 2, 11, 4), (2, 2, 11, 3), (2, 6, 9, 3))
    compare(arrays, grad, None, "float64", scale=0.3, enable_gqa=True)


def test_heads_beside_the_width():
    """Heads that are views of one projection, whose rows are not contiguous."""
    arrays = [x.transpose(0, 2, 1, 3) for x in drawn((2, 70, 3, 4), (2, 70, 3, 4), (2, 70, 3, 4))]
    (grad,) = drawn((2, 3, 70, 4))
    query, key, value = (gt.tensor(x.transpose(0, 2, 1, 3)).transpose(1, 2) for x in arrays)
    got = attend(query, key, value, is_causal=True).numpy()
    want, *_ = by_pytorch(arrays, grad, None, "float64", is_causal=True)
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_batches_are_broadcast():
    query, key, value = drawn((3, 1, 5, 4), (2, 6, 4), (1, 6, 4))
    got = attend(*map(gt.tensor, (query, key, value)))
    want = torch.nn.functional.scaled_dot_product_attention(
        *(torch.tensor(np.broadcast_to(x, (3, 2, *x.shape[-2:]))) for x in (query, key, value))
    )
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-10)


@pytest.mark.parametrize("lengths", [(0, 3, 2, 2), (3, 0, 2, 2), (3, 4, 0, 2), (3, 4, 2, 0)])
def test_nothing(lengths):
    queries, keys, width, values = lengths
    query, key, value = drawn((2, queries, width), (2, keys, width), (2, keys, values))
    leaves = [gt.tensor(x, requires_grad=True) for x in (query, key, value)]
    result = attend(*leaves)
    result.sum().backward()
    want = np.broadcast_to(value.mean(1, keepdims=True), result.shape) if keys else 0
    np.testing.assert_allclose(result.detach().numpy(), want, atol=1e-12)
    assert [leaf.grad.shape for leaf in leaves] == [x.shape for x in (query, key, value)]


def test_nan_and_infinity():
    query, key, value = drawn((4, 2), (5, 2), (5, 2))
    query[1, 0], value[2, 1] = np.nan, np.inf
    got = attend(*map(gt.tensor, (query, key, value))).numpy()
    assert np.isnan(got[1]).all() and np.isinf(got[[0, 2, 3], 1]).all()
    assert np.isfinite(got[[0, 2, 3], 0]).all()


@pytest.mark.parametrize("kind", ["none", "causal", "bool", "float"])
def test_gradients_of_gradients(kind):
    """Second gradients of query, key, value and mask, against differences of the first."""
    arrays = drawn((2, 3, 4), (2, 5, 4), (2, 5, 3), (3, 5))
    grad, *directions = drawn((2, 3, 3), *(x.shape for x in arrays))
    mask = {"float": arrays[3], "bool": arrays[3] > -0.5}.get(kind)
    arrays = arrays if kind == "float" else arrays[:3]

    def first(values, create_graph):
        leaves = [gt.tensor(x, requires_grad=True) for x in values]
        given = leaves[3] if kind == "float" else None if mask is None else gt.tensor(mask)
        result = attend(*leaves[:3], given, is_causal=kind == "causal")
        grads = gt.autograd.grad(result, leaves, gt.tensor(grad), create_graph=create_graph)
        along = [(g * gt.tensor(d)).sum() for g, d in zip(grads, directions, strict=False)]
        return leaves, sum(along[1:], along[0])

    leaves, along = first(arrays, True)
    seconds = gt.autograd.grad(along, leaves)
    for place, second in enumerate(seconds):
        for index in list(np.ndindex(arrays[place].shape))[::4]:
            sides = []
            for step in (1e-5, -1e-5):
                moved = [x.copy() for x in arrays]
                moved[place][index] += step
                sides.append(first(moved, False)[1].item())
            want = (sides[0] - sides[1]) / 2e-5
            np.testing.assert_allclose(second.numpy()[index], want, rtol=1e-4, atol=1e-6)


def test_errors_name_what_does_not_fit():
    x = gt.ones(2, 3, 4)
    for error, words, act in [
        (ValueError, ["key has width 5", "query's, 4"], lambda: attend(x, gt.ones(2, 3, 5), x)),
        (ValueError, ["value has shape (2, 2, 4)", "3 keys"], lambda: attend(x, x, x[:, :2])),
        (ValueError, ["attn_mask has shape (2, 2)"], lambda: attend(x, x, x, gt.ones(2, 2))),
        (ValueError, ["shapes (4,) and (3, 4)"], lambda: attend(x[0, 0], x[0], x[0])),
        (TypeError, ["attn_mask", "int64"], lambda: attend(x, x, x, gt.arange(3))),
    ]:
        with pytest.raises(error) as caught:
            act()
        for word in ["scaled_dot_product_attention", *words]:
            assert word in str(caught.value), str(caught.value)


@pytest.mark.skipif(
    os.environ.get("GT_BACKEND", "native") != "native", reason="other engines attend at once"
)
def test_scores_are_never_in_memory():
    done = run_python(
        "import resource, sys, gt\n"
        "unit = 1 if sys.platform == 'darwin' else 1024\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit\n"
        "def step(length):\n"
        "    leaves = [gt.randn(1, length, 8, requires_grad=True) for _ in range(3)]\n"
        "    result = gt.nn.functional.scaled_dot_product_attention(*leaves, is_causal=True)\n"
        "    result.sum().backward()\n"
        "    assert leaves[0].grad.isfinite().all()\n"
        "step(64)\n"
        "start = peak()\n"
        "step(8192)\n"
        "print(peak() - start)\n"
    )
    # All scores would be 268 MB, in each of the two passes.
    assert int(done.stdout) < 64e6, done


@unsharded_only
def test_heads_are_computed_where_they_are():
    """Tensors that are sharded along batches or heads are neither gathered nor summed."""
    run_on_four_workers("""
register("heads", axis=1)
register("batches", axis=0)
attend = gt.nn.functional.scaled_dot_product_attention
for name, axis, mask in [
    ("heads", 1, None),
    ("heads", 1, gt.randn(1, 8, 1, 6)),
    ("batches", 0, gt.randn(5, 6) > -1),
]:
    given = [gt.randn(4, 8, n, 3) for n in (5, 6, 6)]
    wanted = [x.detach().requires_grad_() for x in given]
    want = attend(*wanted, mask)
    want.sum().backward()
    leaves = [gt.signal.tensor(x, name=name).requires_grad_() for x in given]
    ones = gt.signal.tensor(gt.ones(4, 8, 5, 3), name=name)
    with gt.signal.context(name), gt.debug.strict():
        got = attend(*leaves, mask)
        got.backward(ones)
        gt.synchronize()
    all_got = (got, *(leaf.grad for leaf in leaves))
    assert [placement(x) for x in all_got] == 4 * [[(f"Shard({axis})", [0, 1, 2, 3])]]
    for x, y in zip(all_got, (want, *(leaf.grad for leaf in wanted))):
        assert gt.allclose(x, y, atol=1e-6)
""")
