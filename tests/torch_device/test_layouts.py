"""Results have the same strides as on the CPU, so that `view` works in the same cases."""

import pytest

torch = pytest.importorskip("torch")

import warnings  # noqa: E402

import gt.torch  # noqa: E402, F401

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map  # noqa: E402

#: Operators whose results have other strides -> why.
OTHERWISE = {
    "fft.": "transforms return row-major results, while the CPU's library permutes axes",
    "linalg.": "factors of row-major matrices are row-major",
    "lu": "as linalg",
    "geqrf": "as linalg",
    "ormqr": "as linalg",
    "triangular_solve": "as linalg",
    "svd_lowrank": "as linalg",
    "pca_lowrank": "as linalg",
    "as_strided": "its result depends on the layout",
    "unsafe_chunk": "parts are copies",
    "unsafe_split": "parts are copies",
    "diagonal_scatter": "gaps are not kept",
    "select_scatter": "gaps are not kept",
    "slice_scatter": "gaps are not kept",
    "floor_divide": "a tensor without axes on the right",
    "ldexp": "made of two operators",
    "mvlgamma": "made of several operators",
    "normal": "made of several operators",
    "argwhere": "made of several operators",
    "native_batch_norm": "channels last",
    "_native_batch_norm_legit": "channels last",
    "_batch_norm_with_update": "channels last",
    "nn.functional.batch_norm": "channels last",
    "nn.functional.conv": "one image of one row, and three axes",
    "nn.functional.max_pool1d": "one row",
    "nn.functional.max_unpool2d": "channels last",
    "nn.functional.pad.replicate_negative": "channels last",
    "nn.functional.pixel_shuffle": "channels last",
    "nn.functional.channel_shuffle": "channels last",
    "nn.functional.scaled_dot_product_attention": "the CPU has several ways",
    "torch.ops.aten._scaled_dot_product": "the CPU has several ways",
    "empty": "no values",
    "new_empty": "no values",
    "masked.": "made of several operators",
    "sparse": "no such tensors",
    "jiterator": "other devices alone",
}


def reversed_axes(x):
    order = list(reversed(range(x.ndim)))
    return x.permute(order).contiguous().permute(order)


def last_two(x):
    return x.transpose(-1, -2).contiguous().transpose(-1, -2)


def channels_last(x):
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def laid_out(tree, layout, device):
    def one(x):
        if not isinstance(x, torch.Tensor) or x.layout != torch.strided:
            return x
        x = x.detach()
        x = layout(x) if x.ndim > 1 else x
        if device == "cpu":
            return x
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=device).copy_(x)

    return tree_map(one, tree)


def steps(made):
    """Return the sizes of all tensors, and their strides along axes longer than 1."""
    return [
        (tuple(x.shape), [step for size, step in zip(x.shape, x.stride(), strict=True) if size > 1])
        for x in tree_flatten(made)[0]
        if isinstance(x, torch.Tensor) and x.numel()
    ]


def differing(op, sample, layout):
    """Return the layouts on the CPU and the cluster if they differ, else None."""
    given = (sample.input, sample.args, sample.kwargs)
    try:
        x, args, kwargs = laid_out(given, layout, "cpu")
        there = steps(op(x, *args, **kwargs))
        x, args, kwargs = laid_out(given, layout, "cluster")
        here = steps(op(x, *args, **kwargs))
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        # Other tests check that operators work.
        return None
    return (layout.__name__, there, here) if there != here else None


# It calls each operator: minutes, if other processes compute beside it.
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", [reversed_axes, last_two, channels_last])
def test_every_operator(layout):
    torch.manual_seed(0)
    wrong, seen = {}, 0
    for op in op_db:
        if op.full_name.startswith(tuple(OTHERWISE)):
            continue
        if not op.supports_dtype(torch.float32, "cpu"):
            continue
        for sample in list(op.sample_inputs("cpu", torch.float32))[:2]:
            seen += 1
            found = differing(op, sample, layout)
            if found:
                wrong[op.full_name] = found
    assert seen > 700 and not wrong, wrong


def test_programs_that_view_their_results():
    x = torch.arange(24.0, device="cluster").reshape(2, 3, 4).transpose(1, 2)
    image = torch.ones(2, 3, 4, 4, device="cluster").contiguous(memory_format=torch.channels_last)
    convolution = torch.nn.Conv2d(3, 8, 1).to("cluster")
    assert x.masked_fill(x > 5, 0).view(2, -1).shape == (2, 12)
    assert torch.nn.functional.dropout(x, 0.5).transpose(1, 2).view(2, -1).shape == (2, 12)
    assert x.flip(0).transpose(1, 2).view(-1).shape == (24,)
    assert (x + torch.ones(4, 3, device="cluster")).transpose(1, 2).view(-1).shape == (24,)
    assert convolution(image).permute(0, 2, 3, 1).view(-1, 8).shape == (32, 8)
    assert convolution(image).is_contiguous(memory_format=torch.channels_last)
