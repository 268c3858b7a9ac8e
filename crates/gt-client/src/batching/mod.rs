//! Operations on values that are mapped over, inside `vmap`.
//!
//! A value that is mapped over at a level hides its batch axis: user code, the tape and gradient
//! rules see the shape of one sample. [`issue`] restores the axis by the operations' batching rules
//! (`gt_ir::batching`), level by level from the innermost.
//!
//! - [`value`]: values with hidden axes; [`axes`]: adding and removing the axis of a level.
//! - [`random`]: random numbers, equal or different within the batch.

mod axes;
mod issue;
mod random;
mod value;

use std::sync::Arc;

use gt_ir::batching::Batching;
use gt_ir::shape::MAX_RANK;
use gt_ir::{Attributes, Operand, Operation};

pub(crate) use axes::{with_level, without_level};
pub(crate) use issue::ResultValues;
pub(crate) use value::{LevelNumbers, levels, levels_of, nest};

use crate::context::CallSite;
use crate::error::{ClientError, Result};
use crate::session::{Session, StreamValue};
use issue::{emit, metas};

/// Issues an operation that user code calls.
///
/// # Errors
/// The operation's inference rejects the operands; the `vmap` forbids random numbers; with the
/// batch axes there are more axes than a tensor may have.
pub(crate) fn issue(
    site: CallSite,
    session: &Session,
    operation: &'static Operation,
    operands: &[Operand<Arc<StreamValue>>],
    attributes: Attributes,
) -> Result<ResultValues> {
    check_rank(operation, operands, &attributes)?;
    if matches!(operation.batching, Batching::Drawn) {
        return random::draw(site, session, operation, operands, attributes);
    }
    emit(site, session, operation, operands, attributes)
}

/// Returns an error if the ranks with all batch axes are too high.
fn check_rank(
    operation: &'static Operation,
    operands: &[Operand<Arc<StreamValue>>],
    attributes: &Attributes,
) -> Result<()> {
    let results = operation.results(&metas(operands), attributes)?;
    let given = operands.iter().filter_map(Operand::tensor);
    let depth = given.clone().map(|value| nest(value).count()).max().unwrap_or(0);
    let ranks = given.map(|value| &value.meta).chain(&results).map(|meta| meta.shape.rank());
    let rank = ranks.max().unwrap_or(0);
    if rank + depth <= MAX_RANK {
        return Ok(());
    }
    Err(ClientError::usage(format!(
        "{}: {rank} axes and {depth} batch axes of vmap are more than {MAX_RANK}, the most that a tensor has",
        operation.name
    )))
}
