"""`torch.sparse` for PyTorch programs: GT has no sparse tensors, so matrices are dense."""

from gt._absent import absent_names
from gt.ops.matmul import mm

__all__ = ["mm"]

globals().update(
    absent_names(
        __name__,
        "DoubleTensor FloatTensor HalfTensor IntTensor LongTensor SparseSemiStructuredTensor "
        "addmm as_sparse_gradcheck log_softmax sampled_addmm softmax spdiags spsolve sum "
        "to_sparse_semi_structured",
        "a dense tensor: gt.zeros(size).index_put_(tuple(indices), values, accumulate=True)",
    )
)
