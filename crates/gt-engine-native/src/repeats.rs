//! Repeated elements: an expanded tensor has fewer elements in memory than in its shape.
//! Elementwise results of it repeat in the same way, so they are computed and stored once.

use gt_ir::Shape;

use crate::tensor::Tensor;

/// Results of at least this many elements repeat what their operands repeat. Smaller ones are
/// written in full, as they are faster to read then.
pub const MANY: usize = 1 << 18;

/// Returns the shape of a large result's distinct elements: of length 1 along each axis along which
/// all operands, which broadcast to it, are repeated. `None` if there is no such axis.
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

/// Returns the distinct elements of a large tensor, or else the tensor itself.
pub fn distinct_of(tensor: Tensor) -> Tensor {
    match distinct(std::iter::once(&tensor), *tensor.shape()) {
        Some(shape) => narrowed(&tensor, tensor.shape(), &shape),
        None => tensor,
    }
}

/// Returns the elements of a tensor, broadcast to `whole`, that the distinct elements of a result
/// are computed from.
pub fn narrowed(tensor: &Tensor, whole: &Shape, distinct: &Shape) -> Tensor {
    tensor.view(0, *distinct, tensor.strides_in(whole))
}
