//! The methods that `tests/methods.rs` generates from the operations' declarations.

use gt_ir::instruction::Attribute;
use gt_ir::{Error, Operand, Operation};
use smallvec::smallvec;

use super::Tensor;
use super::elementwise::Value;
use crate::error::Result;

include!("generated.rs");

#[inline]
fn by_id(id: u16) -> &'static Operation {
    Operation::from_id(id).expect("the methods name operations of this instruction set")
}

/// Returns the index of a word among those that a parameter accepts.
fn word(
    operation: &'static str,
    parameter: &'static str,
    given: &str,
    words: &'static [&'static str],
) -> Result<i64> {
    match words.iter().position(|word| *word == given) {
        Some(place) => Ok(place as i64),
        None => {
            Err(Error::BadWord { operation, parameter, given: given.to_string(), words }.into())
        }
    }
}
