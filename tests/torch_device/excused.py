"""Entries of PyTorch's operator database that are excluded from tests, with the reason."""

#: Entries that draw random numbers, which differ from the CPU's, and `mode`, whose index may be
#: that of any element with the value.
RANDOM = {
    "mode",
    "bernoulli",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "multinomial",
    "normal",
    "normal.in_place",
    "normal.number_mean",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout.with_train",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.rrelu",
    "nn.functional.scaled_dot_product_attention",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "uniform",
    "pca_lowrank",
    "svd_lowrank",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}

#: Entry, or "entry: test" -> the reason.
EXCUSED: dict[str, str] = {
    "as_strided: layouts": "its result depends on the layout",
    "as_strided_copy: layouts": "its result depends on the layout",
    "as_strided_scatter: layouts": "its result depends on the layout",
    "as_strided.partial_views: layouts": "its result depends on the layout",
    "view_as_complex: layouts": "takes no other layout",
    "as_strided.partial_views: results": "a copy on the host has another storage",
    "chalf": "the cluster has no complex32",
    "frexp": "its samples view the bits of integers as floats",
    "grid_sampler_3d: gradients of gradients": "takes more than five minutes",
    "hash_tensor": "the cluster has no uint64",
    "sparse.mm.reduce": "the cluster has no sparse tensors",
    "sparse.sampled_addmm": "the cluster has no sparse tensors",
    "to_sparse": "the cluster has no sparse tensors",
    "torch._scaled_mm": "the cluster has no 8-bit floats",
    "torch._scaled_mm_v2": "the cluster has no 8-bit floats",
}


def skip(test, entry, kind: str) -> None:
    """Skip a test that excludes an entry."""
    reason = EXCUSED.get(entry.full_name) or EXCUSED.get(f"{entry.full_name}: {kind}")
    if reason:
        test.skipTest(reason)
