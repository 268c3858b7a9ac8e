//! Finds the first instruction whose result differs between two drivers.
//!
//! Both run the same stream. A first pass runs it as recorded, and compares the live tensors in
//! intervals, and what the program received. A second pass, up to where the first found a difference,
//! runs the last interval as plain instructions, and compares the result of each. Within tolerances the
//! whole stream is run so: see [`aligned`].
//!
//! - [`pass`]: a run of the stream on both drivers.

mod aligned;
mod pass;

use std::sync::Arc;

use gt_client::driver::Driver;
use gt_ir::{Instruction, Meta, TensorId};
use rustc_hash::FxHashMap;

use crate::error::RecordingError;
use crate::reading::Recording;
use crate::replay::compare::Received;
use crate::replay::run::ReplayOptions;
use pass::Pass;

/// The least number of instructions of an interval, and the number of intervals of a long stream.
const INTERVAL: u64 = 256;
const INTERVALS: u64 = 64;

/// Opens a driver.
pub type OpenDriver<'a> = &'a mut dyn FnMut() -> Result<Arc<dyn Driver>, RecordingError>;

/// What a search has found.
#[derive(Debug)]
pub enum FirstDifference {
    /// The results of all instructions are equal.
    None,
    /// The results of all instructions are equal within tolerances if their operands are.
    Accumulated,
    /// The result of an instruction differs, and its operands do not.
    Instruction(Box<DifferingInstruction>),
    /// Results differ after these instructions only if iterations run as hot paths.
    HotPath { first: u64, last: u64 },
}

/// An instruction whose result differs.
#[derive(Debug)]
pub struct DifferingInstruction {
    /// Its number.
    pub number: u64,
    pub instruction: Instruction,
    /// Shapes and dtypes of its operands.
    pub operands: FxHashMap<TensorId, Meta>,
    /// The differing result, where the reference computed it and where the other driver did.
    pub tensor: TensorId,
    pub reference: Received,
    pub asked: Received,
}

/// Finds the first instruction up to number `until` whose result differs between two drivers.
///
/// # Errors
/// A driver cannot be opened, its session has ended, or `interrupt` ended a wait.
pub fn bisect(
    recording: &Recording,
    reference: OpenDriver,
    asked: OpenDriver,
    until: u64,
    options: &ReplayOptions,
    interrupt: &mut dyn FnMut() -> bool,
) -> Result<FirstDifference, RecordingError> {
    let interval = INTERVAL.max(until / INTERVALS);
    let mut pass = |begins: u64| {
        let drivers = [reference()?, asked()?];
        let mut pass = Pass::new(recording, &drivers, options, interrupt, (begins, interval));
        let found = pass.run(until);
        drivers.iter().for_each(|driver| driver.close());
        found
    };
    if !options.tolerances.is_exact {
        return Ok(match pass(0)? {
            Some(FoundDifference::Instruction(found)) => FirstDifference::Instruction(found),
            _ => FirstDifference::Accumulated,
        });
    }
    let (first, last) = match pass(u64::MAX)? {
        None => return Ok(FirstDifference::None),
        Some(FoundDifference::Interval { first, last }) => (first, last),
        Some(FoundDifference::Instruction(found)) => {
            return Ok(FirstDifference::Instruction(found));
        }
    };
    Ok(match pass(first)? {
        Some(FoundDifference::Instruction(found)) => FirstDifference::Instruction(found),
        _ => FirstDifference::HotPath { first: first + 1, last },
    })
}

enum FoundDifference {
    /// A difference appears after instruction `first` and up to `last`.
    Interval {
        first: u64,
        last: u64,
    },
    Instruction(Box<DifferingInstruction>),
}
