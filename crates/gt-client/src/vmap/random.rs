//! Random numbers inside `vmap`.

use std::sync::Arc;

use gt_ir::instruction::Attribute;
use gt_ir::operation::ints;
use gt_ir::{Attributes, Operand, Operation, SourceId};
use smallvec::SmallVec;

use super::issue::{ResultValues, emit};
use super::value::{hide, levels, repeated, with_level};
use super::{Level, active};
use crate::error::{ClientError, Result};
use crate::session::{Session, StreamValue};

/// How random numbers are drawn within a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Randomness {
    /// Drawing random numbers is an error.
    Error,
    /// All samples have the same numbers.
    Same,
    /// Each sample has its own numbers.
    Different,
}

impl Randomness {
    /// Returns the flag with this name.
    pub fn from_name(name: &str) -> Option<Randomness> {
        Some(match name {
            "error" => Randomness::Error,
            "same" => Randomness::Same,
            "different" => Randomness::Different,
            _ => return None,
        })
    }
}

/// Draws random numbers inside `vmap`, as the levels' flags require.
pub(super) fn draw(
    session: &Session,
    operation: &'static Operation,
    operands: &[Operand<Arc<StreamValue>>],
    attributes: Attributes,
    source: SourceId,
) -> Result<ResultValues> {
    let active = active();
    if active.iter().any(|level| level.randomness == Randomness::Error) {
        return Err(ClientError::usage(format!(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap ({})",
            operation.name
        )));
    }
    let different: Vec<_> =
        active.into_iter().filter(|of| of.randomness == Randomness::Different).collect();
    match operands.iter().position(|operand| operand.tensor().is_some()) {
        None => filled(session, operation, operands, attributes, &different, source),
        Some(first) => {
            check_same(operation, operands, &different)?;
            let mut operands = operands.to_vec();
            operands[first] = match &operands[first] {
                Operand::Tensor(value) => Operand::Tensor(at_all(value, &different)?),
                number => number.clone(),
            };
            emit(session, operation, &operands, attributes, source)
        }
    }
}

/// Draws numbers of a shape, for the whole batch at once.
fn filled(
    session: &Session,
    operation: &'static Operation,
    operands: &[Operand<Arc<StreamValue>>],
    mut attributes: Attributes,
    levels: &[Arc<Level>],
    source: SourceId,
) -> Result<ResultValues> {
    let lengths = levels.iter().map(|level| level.size as i64);
    let dims: SmallVec<[i64; 8]> = lengths.chain(ints(&attributes, 0).iter().copied()).collect();
    attributes[0] = Attribute::ints(&dims);
    let values = emit(session, operation, operands, attributes, source)?;
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
fn at_all(value: &Arc<StreamValue>, wanted: &[Arc<Level>]) -> Result<Arc<StreamValue>> {
    let own = levels(value);
    let missing = wanted.iter().filter(|level| !own.contains(&level.number));
    missing.into_iter().try_fold(Arc::clone(value), |value, level| {
        with_level(repeated(&value, level.size)?, level)
    })
}
