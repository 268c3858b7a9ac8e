//! Elements that are repeated: an expanded tensor has fewer in memory than it has, and so has what is
//! computed of it element by element.

use gt_ir::Shape;

use crate::tensor::Tensor;

/// Results of this many elements and more repeat what their operands repeat. Smaller ones are written
/// out: they are faster to read so.
pub const MANY: usize = 1 << 18;

/// The shape of a result's distinct elements, if it has many: of length 1 along each axis along which
/// all operands, which broadcast to it, repeat theirs. `None` if there is no such axis.
pub fn distinct<'a>(
    operands: impl Iterator<Item = &'a Tensor> + Clone,
    output: Shape,
) -> Option<Shape> {
    // Most operands are contiguous and have the shape of the result.
    let is_whole = |tensor: &Tensor| tensor.is_contiguous() && *tensor.shape() == output;
    let mut all = operands.clone();
    if output.numel() < MANY
        || operands.clone().next().is_none()
        || operands.clone().any(is_whole)
        || !all.all(|tensor| tensor.shape().expands_to(&output))
    {
        return None;
    }
    let mut shape = output;
    for axis in 0..shape.rank() {
        let repeats = |tensor: &Tensor| tensor.strides_in(&output)[axis] == 0;
        if shape[axis] > 1 && operands.clone().all(repeats) {
            shape = shape.with(axis, 1);
        }
    }
    (shape != output).then_some(shape)
}

/// The distinct elements of a large tensor, or else all of them.
pub fn distinct_of(tensor: Tensor) -> Tensor {
    match distinct(std::iter::once(&tensor), *tensor.shape()) {
        Some(shape) => narrowed(&tensor, tensor.shape(), &shape),
        None => tensor,
    }
}

/// The elements of a tensor, broadcast to `whole`, that are in the shape of a result's distinct ones.
pub fn narrowed(tensor: &Tensor, whole: &Shape, distinct: &Shape) -> Tensor {
    tensor.view(0, *distinct, tensor.strides_in(whole))
}
