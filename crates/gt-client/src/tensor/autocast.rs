//! Casts operands to the dtype that autocast requires.

use gt_ir::operation::Autocast;
use gt_ir::{Attribute, Attributes, DType, Operand, Operation};
use smallvec::SmallVec;

use super::Tensor;
use crate::context::Context;
use crate::error::Result;

/// Operands, cast to the dtype that autocast requires.
pub(super) struct CastOperands(SmallVec<[Operand<Tensor>; 3]>);

impl CastOperands {
    pub fn operands(&self) -> SmallVec<[Operand<&Tensor>; 3]> {
        let borrowed = self.0.iter().map(|operand| match operand {
            Operand::Tensor(tensor) => Operand::Tensor(tensor),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        });
        borrowed.collect()
    }
}

/// Returns the operands as autocast requires them; `None` if they need no cast.
#[inline]
pub(super) fn cast(
    context: &Context,
    operation: &Operation,
    operands: &[Operand<&Tensor>],
    attributes: &Attributes,
) -> Result<Option<CastOperands>> {
    match context.autocast() {
        None => Ok(None),
        Some(lower) => cast_for(lower, operation, operands, attributes),
    }
}

#[cold]
fn cast_for(
    lower: DType,
    operation: &Operation,
    operands: &[Operand<&Tensor>],
    attributes: &Attributes,
) -> Result<Option<CastOperands>> {
    let wanted = match operation.facts.autocast {
        Autocast::Unchanged => return Ok(None),
        Autocast::Lower => lower,
        Autocast::Float32 => DType::F32,
    };
    let has_dtype = attributes.iter().any(|one| matches!(one, Attribute::DType(_)));
    let dtypes = || operands.iter().filter_map(Operand::tensor).map(|tensor| tensor.dtype());
    let takes_part = |dtype: DType| matches!(dtype, DType::F16 | DType::BF16 | DType::F32);
    let differs = dtypes().any(|dtype| takes_part(dtype) && dtype != wanted);
    let is_wide = dtypes().any(|dtype| dtype == DType::F64 || dtype.is_complex());
    if has_dtype || is_wide || !differs {
        return Ok(None);
    }
    let mut cast: SmallVec<[Operand<Tensor>; 3]> = SmallVec::new();
    for operand in operands {
        cast.push(match operand {
            Operand::Tensor(tensor) if takes_part(tensor.dtype()) => {
                Operand::Tensor(tensor.cast(wanted)?)
            }
            Operand::Tensor(tensor) => Operand::Tensor(Tensor::clone(tensor)),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        });
    }
    Ok(Some(CastOperands(cast)))
}
