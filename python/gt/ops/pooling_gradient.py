"""The gradient of max pooling, which is a public function in PyTorch."""

from __future__ import annotations

import gt
from gt._gt import Tensor
from gt.ops.annotations import Size
from gt.ops.registry import function
from gt.ops.sizes import filled


@function
def max_pool2d_with_indices_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Size,
    stride: Size,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Return the gradient of `max_pool2d`: the output's, added at the indices of its values.

    >>> at = gt.tensor([[[2]]]).long()
    >>> gt.max_pool2d_with_indices_backward(
    ...     gt.ones(1, 1, 1), gt.ones(1, 2, 2), 2, 2, 0, 1, False, at
    ... )
    tensor([[[0., 0.],
             [1., 0.]]], dtype=float32)
    """
    # Zeros that depend on the tensor: as in PyTorch its gradient is 0, not missing.
    empty = self.masked_fill(filled(self, (1,), True, gt.bool), 0).flatten(-2)
    found = gt.scatter_add(empty, -1, indices.flatten(-2), grad_output.flatten(-2))
    return found.reshape(self.shape)
