//! Autocast: products are computed in a lower precision, and operations that would lose accuracy in
//! float32.
//!
//! Each thread has its own dtype. When an operation is issued, its operands are cast by ordinary
//! instructions, which are on the tape like any other. A backward pass computes in the dtypes of
//! its forward pass.

use gt_ir::DType;

use crate::context;

/// Returns the dtype of products on this thread; `None` while autocast is off.
pub fn autocast() -> Option<DType> {
    context::with(context::Context::autocast)
}

/// Sets the dtype of products on this thread, and returns the previous one.
pub fn set_autocast(dtype: Option<DType>) -> Option<DType> {
    context::with(|context| context.set_autocast(dtype))
}
