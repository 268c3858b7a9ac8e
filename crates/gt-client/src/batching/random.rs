//! Random numbers inside `vmap`.

use std::sync::Arc;

use gt_ir::instruction::Attribute;
use gt_ir::operation::ints;
use gt_ir::{Attributes, Operand, Operation};
use smallvec::SmallVec;

use super::axes::{repeated, with_level};
use super::issue::{ResultValues, emit};
use super::value::{hide, levels};
use crate::context::CallSite;
use crate::context::level::{Level, Randomness};
use crate::error::{ClientError, Result};
use crate::session::{Session, StreamValue};

/// Draws random numbers inside `vmap`, as the levels' flags require.
pub(super) fn draw(
    site: CallSite,
    session: &Session,
    operation: &'static Operation,
    operands: &[Operand<Arc<StreamValue>>],
    attributes: Attributes,
) -> Result<ResultValues> {
    let active = site.context.levels();
    if active.iter().any(|level| level.randomness == Randomness::Error) {
        return Err(ClientError::usage(format!(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap ({})",
            operation.name
        )));
    }
    let different: Vec<_> =
        active.into_iter().filter(|of| of.randomness == Randomness::Different).collect();
    match operands.iter().position(|operand| operand.tensor().is_some()) {
        None => filled(site, session, operation, operands, attributes, &different),
        Some(first) => {
            check_same(operation, operands, &different)?;
            let mut operands = operands.to_vec();
            operands[first] = match &operands[first] {
                Operand::Tensor(value) => Operand::Tensor(at_all(site, value, &different)?),
                number => number.clone(),
            };
            emit(site, session, operation, &operands, attributes)
        }
    }
}

/// Draws numbers of a shape, for the whole batch at once.
fn filled(
    site: CallSite,
    session: &Session,
    operation: &'static Operation,
    operands: &[Operand<Arc<StreamValue>>],
    mut attributes: Attributes,
    levels: &[Arc<Level>],
) -> Result<ResultValues> {
    let lengths = levels.iter().map(|level| level.size as i64);
    let dims: SmallVec<[i64; 8]> = lengths.chain(ints(&attributes, 0).iter().copied()).collect();
    attributes[0] = Attribute::ints(&dims);
    let values = emit(site, session, operation, operands, attributes)?;
    Ok(values.into_iter().map(|value| levels.iter().fold(value, hide)).collect())
}

/// Returns an error if a batch of distributions is to draw the same numbers.
fn check_same(
    operation: &Operation,
    operands: &[Operand<Arc<StreamValue>>],
    different: &[Arc<Level>],
) -> Result<()> {
    let mut given = operands.iter().filter_map(Operand::tensor).flat_map(|value| levels(value));
    if given.all(|number| different.iter().any(|level| level.number == number)) {
        return Ok(());
    }
    Err(ClientError::usage(format!(
        "vmap: {} of a tensor that is mapped over cannot draw the same numbers for all of the batch\n  hint: randomness='different'",
        operation.name
    )))
}

/// Returns a value that is mapped over at all of the levels, repeating it where it is not.
fn at_all(
    site: CallSite,
    value: &Arc<StreamValue>,
    wanted: &[Arc<Level>],
) -> Result<Arc<StreamValue>> {
    let own = levels(value);
    let missing = wanted.iter().filter(|level| !own.contains(&level.number));
    missing.into_iter().try_fold(Arc::clone(value), |value, level| {
        with_level(site, repeated(site, &value, level.size)?, level)
    })
}
