//! Autocast: products are computed in a lower precision, and operations that would lose accuracy in
//! float32.
//!
//! Each thread has its own dtype. When an operation is issued, its operands are cast by ordinary
//! instructions, which are on the tape like any other. A backward pass computes in the dtypes of
//! its forward pass.

use std::cell::Cell;

use gt_ir::operation::Autocast;
use gt_ir::{Attribute, Attributes, DType, Operand, Operation};
use smallvec::SmallVec;

use crate::error::Result;
use crate::tensor::Tensor;

thread_local! {
    static LOWER: Cell<Option<DType>> = const { Cell::new(None) };
}

/// Returns the dtype of products on this thread; `None` while autocast is off.
pub fn autocast() -> Option<DType> {
    LOWER.get()
}

/// Sets the dtype of products on this thread, and returns the previous one.
pub fn set_autocast(dtype: Option<DType>) -> Option<DType> {
    LOWER.replace(dtype)
}

/// Runs `body` with autocast off.
pub(crate) fn without<T>(body: impl FnOnce() -> T) -> T {
    struct RestoreDType(Option<DType>);
    impl Drop for RestoreDType {
        fn drop(&mut self) {
            LOWER.set(self.0);
        }
    }
    let _restore = RestoreDType(LOWER.replace(None));
    body()
}

/// Operands, cast to the dtype that autocast requires.
pub(crate) struct CastOperands(SmallVec<[Operand<Tensor>; 3]>);

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
pub(crate) fn cast(
    operation: &Operation,
    operands: &[Operand<&Tensor>],
    attributes: &Attributes,
) -> Result<Option<CastOperands>> {
    match LOWER.get() {
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
