//! What computes.

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, Meta, Operation, TensorData};

/// Why an engine could not do as asked, in words for the user.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    #[error("index {index} is out of range for an axis of length {length}")]
    IndexOutOfRange { index: i64, length: usize },
    #[error("out of memory: {bytes} bytes asked for")]
    OutOfMemory { bytes: usize },
    #[error("{0}")]
    Other(String),
}

/// An engine holds tensors of its own kind and computes operations on them.
///
/// The worker has checked every call against the instruction set: operand count, attributes,
/// shapes and dtypes are valid, and `output` is what inference gives.
pub trait Engine: Send {
    /// A tensor as this engine holds it. Cloning must be cheap (a reference).
    type Tensor: Clone + Send;

    fn name(&self) -> &'static str;

    /// Whether [`Engine::run`] takes the operation; composites it does not take are expanded.
    fn lowers(&self, operation: &'static Operation) -> bool;

    /// A tensor with these values.
    fn create(&mut self, data: TensorData) -> Result<Self::Tensor, EngineError>;

    /// The values of a tensor; waits until they are there.
    fn read(&mut self, tensor: &Self::Tensor) -> Result<TensorData, EngineError>;

    /// Computes one operation. Operands are handed over: one whose last reference this is may be
    /// overwritten. The result has the shape and dtype of `output`.
    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Self::Tensor>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Self::Tensor, EngineError>;

    /// The process has forked, and this is the child: threads of the parent are not here.
    fn after_fork(&mut self) {}
}
