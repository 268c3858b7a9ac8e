"""`torch.sparse` for PyTorch programs: GT has no sparse tensors, so matrices are dense."""

from gt import sum
from gt._absent import absent_names
from gt.ops.matmul import mm
from gt.ops.matmul_add import addmm
from gt.ops.sparse import sparse_coo_tensor

__all__ = ["DoubleTensor", "FloatTensor", "LongTensor", "addmm", "mm", "sum"]

#: The legacy names of `gt.sparse_coo_tensor`.
DoubleTensor = FloatTensor = LongTensor = sparse_coo_tensor

globals().update(
    absent_names(
        __name__,
        "SparseSemiStructuredTensor "
        "as_sparse_gradcheck sampled_addmm spdiags spsolve to_sparse_semi_structured",
        "the function of dense tensors, such as gt.linalg.solve: GT has no sparse tensors",
    )
)
globals().update(
    absent_names(
        __name__,
        "log_softmax softmax",
        "gt.masked.softmax(x, dim, mask=x != 0): PyTorch's leaves out what is not stored",
    )
)
