//! Elements that are repeated: an expanded tensor has fewer in memory than it has, and so has what is
//! computed of it element by element.

use gt_ir::{Meta, Shape};

use crate::tensor::Tensor;

/// Results from so many bytes on repeat what their operands repeat. Smaller ones are written out: they
/// are faster to read so.
const LARGE: usize = 1 << 20;

/// The shape of the elements that a large result of operands that broadcast to it does not repeat: of
/// length 1 along each axis along which all operands repeat theirs. `None` if there is no such axis.
pub fn distinct<'a>(
    operands: impl Iterator<Item = &'a Tensor> + Clone,
    output: Meta,
) -> Option<Shape> {
    // Most operands are contiguous and have the shape of the result.
    let is_whole = |tensor: &Tensor| tensor.is_contiguous() && *tensor.shape() == output.shape;
    if output.bytes() < LARGE || operands.clone().next().is_none() || operands.clone().any(is_whole)
    {
        return None;
    }
    let mut shape = output.shape;
    for axis in 0..shape.rank() {
        let repeats = |tensor: &Tensor| tensor.strides_in(&output.shape)[axis] == 0;
        if shape[axis] > 1 && operands.clone().all(repeats) {
            shape = shape.with(axis, 1);
        }
    }
    (shape != output.shape).then_some(shape)
}

/// The elements of a tensor, broadcast to `whole`, that are in the shape of a result's distinct ones.
pub fn narrowed(tensor: &Tensor, whole: &Shape, distinct: &Shape) -> Tensor {
    tensor.view(0, *distinct, tensor.strides_in(whole))
}
