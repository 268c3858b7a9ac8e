//! Inference rules that several operations share.

use crate::dtype::DType;
use crate::error::Result;
use crate::instruction::Operand;
use crate::operation::{Call, Meta};
use crate::shape::Shape;

/// The promoted dtype of operands (PyTorch's `torch.result_type`): tensors with axes decide;
/// tensors without, then numbers, count only if they raise the category.
pub fn promote(operands: &[Operand<Meta>]) -> DType {
    // Fast path: two tensors of one dtype.
    if let [Operand::Tensor(left), Operand::Tensor(right)] = operands
        && left.dtype == right.dtype
    {
        return left.dtype;
    }
    let mut with_axes: Option<DType> = None;
    let mut without_axes: Option<DType> = None;
    let mut number: Option<DType> = None;
    for operand in operands {
        let (slot, dtype) = match operand {
            Operand::Tensor(meta) if meta.shape.rank() > 0 => (&mut with_axes, meta.dtype),
            Operand::Tensor(meta) => (&mut without_axes, meta.dtype),
            Operand::Scalar(scalar) => (&mut number, scalar.default_dtype()),
        };
        *slot = Some(slot.map_or(dtype, |seen| seen.promote(dtype)));
    }
    combine(combine(with_axes, without_axes), number).unwrap_or(DType::F32)
}

/// `weak` is promoted with `strong` only if it raises the category.
fn combine(strong: Option<DType>, weak: Option<DType>) -> Option<DType> {
    match (strong, weak) {
        (Some(strong), Some(weak)) if weak.category() > strong.category() => {
            Some(strong.promote(weak))
        }
        (Some(strong), _) => Some(strong),
        (None, weak) => weak,
    }
}

/// The shape that all operands broadcast to.
pub fn broadcast(call: &Call) -> Result<Shape> {
    let mut shapes = call.operands.iter().filter_map(Operand::tensor).map(|meta| &meta.shape);
    let first = *shapes.next().unwrap_or(&Shape::SCALAR);
    shapes.try_fold(first, |shape, next| shape.broadcast(next, call.operation))
}

/// Elementwise, in the promoted dtype.
pub fn elementwise(call: &Call) -> Result<Meta> {
    Ok(Meta::new(promote(call.operands), broadcast(call)?))
}

/// Elementwise, with a float result even for integers: `exp`, `/`.
pub fn elementwise_float(call: &Call) -> Result<Meta> {
    Ok(Meta::new(to_float(promote(call.operands)), broadcast(call)?))
}

/// Elementwise, with a bool result.
pub fn elementwise_bool(call: &Call) -> Result<Meta> {
    Ok(Meta::new(DType::Bool, broadcast(call)?))
}

/// Elementwise on floats alone, in the promoted dtype.
pub fn number(call: &Call) -> Result<Meta> {
    let meta = elementwise(call)?;
    if !meta.dtype.is_exact() {
        return Ok(meta);
    }
    let expected = "a float dtype; cast with .to(gt.float32)";
    Err(crate::Error::DTypeMismatch { operation: call.operation, given: meta.dtype, expected })
}

/// The float or complex dtype in which values of `dtype` are computed.
pub fn to_float(dtype: DType) -> DType {
    if dtype.is_exact() { DType::F32 } else { dtype }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Scalar;

    #[test]
    fn numbers_and_scalars_are_weak() {
        let tensor =
            |dtype, dims: &[usize]| Operand::Tensor(Meta::new(dtype, Shape::new(dims).unwrap()));
        let check = |operands: &[Operand<Meta>], want| assert_eq!(promote(operands), want);
        check(&[tensor(DType::F16, &[2]), tensor(DType::F32, &[])], DType::F16);
        check(&[tensor(DType::I32, &[2]), tensor(DType::F64, &[])], DType::F64);
        check(&[tensor(DType::I32, &[2]), Operand::Scalar(Scalar::Float(1.0))], DType::F32);
        check(&[tensor(DType::U8, &[2]), Operand::Scalar(Scalar::Int(1))], DType::U8);
        check(&[tensor(DType::Bool, &[2]), Operand::Scalar(Scalar::Int(1))], DType::I64);
        check(&[tensor(DType::U8, &[2]), tensor(DType::I8, &[3])], DType::I16);
    }
}
