"""`torch.sparse` for PyTorch programs: GT has no sparse tensors, so matrices are dense."""

from gt._absent import absent_names
from gt.ops.matmul import mm
from gt.ops.sparse import sparse_coo_tensor

__all__ = ["DoubleTensor", "FloatTensor", "LongTensor", "mm"]

#: The legacy names of `gt.sparse_coo_tensor`.
DoubleTensor = FloatTensor = LongTensor = sparse_coo_tensor

globals().update(
    absent_names(
        __name__,
        "SparseSemiStructuredTensor "
        "addmm as_sparse_gradcheck log_softmax sampled_addmm softmax spdiags spsolve sum "
        "to_sparse_semi_structured",
        "the function of dense tensors, such as gt.softmax: GT has no sparse tensors",
    )
)
