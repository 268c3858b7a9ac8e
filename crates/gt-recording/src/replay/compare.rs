//! Compares values with recorded ones, or with each other.

use gt_ir::message::{Answer, Failure};
use gt_ir::{DType, Meta, TensorData};

use crate::outcome::{Outcome, RecordedValue, SHOWN};

/// How values are compared: bit for bit, or within tolerances.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Tolerances {
    /// Whether all bits must be equal.
    pub is_exact: bool,
    /// The relative and the absolute tolerance; `None` for those of the dtype.
    pub relative: Option<f64>,
    pub absolute: Option<f64>,
}

impl Tolerances {
    /// Returns the relative and the absolute tolerance for a dtype. Without a choice they are those of
    /// PyTorch's `assert_close`.
    pub fn of(&self, dtype: DType) -> (f64, f64) {
        let (relative, absolute) = match dtype {
            DType::F16 => (1e-3, 1e-5),
            DType::BF16 => (1.6e-2, 1e-5),
            DType::F32 | DType::C64 => (1.3e-6, 1e-5),
            DType::F64 | DType::C128 => (1e-7, 1e-7),
            _ => (0.0, 0.0),
        };
        (self.relative.unwrap_or(relative), self.absolute.unwrap_or(absolute))
    }

    /// Returns whether two numbers are equal within the tolerances of a dtype.
    fn are_close(&self, dtype: DType, one: f64, other: f64) -> bool {
        let (relative, absolute) = self.of(dtype);
        one == other
            || one.is_nan() && other.is_nan()
            || (one - other).abs() <= absolute + relative * one.abs()
    }

    /// Returns whether two values of one shape and dtype are equal.
    pub fn agree(&self, one: &TensorData, other: &TensorData) -> bool {
        if one.bytes == other.bytes {
            return true;
        }
        let is_close = |index| {
            let (a, b) = (one.complex(index), other.complex(index));
            self.are_close(one.dtype, a.0, b.0) && self.are_close(one.dtype, a.1, b.1)
        };
        !self.is_exact && (0..one.shape.numel()).all(is_close)
    }
}

/// What a comparison has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// All bits are equal.
    Equal,
    /// Equal within the tolerances.
    Close,
    Different,
    /// Nothing is recorded to compare with.
    Unrecorded,
}

/// What was received now.
#[derive(Clone, PartialEq, Debug)]
pub enum Received {
    Value(TensorData),
    Failed(Box<Failure>),
}

impl Received {
    /// Returns what an answer has; `None` if it is not about a value.
    pub fn of(answer: Answer) -> Option<Received> {
        use gt_ir::Content;
        use gt_ir::message::Reply;
        match answer.result {
            Ok(Reply::Value(Content::Data(data))) => Some(Received::Value(data)),
            Err(failure) => Some(Received::Failed(Box::new(failure))),
            _ => None,
        }
    }

    /// Returns whether it is equal to what was received elsewhere.
    pub fn agrees(&self, other: &Received, tolerances: &Tolerances) -> bool {
        match (self, other) {
            (Received::Value(one), Received::Value(other)) => {
                meta_of(one) == meta_of(other) && tolerances.agree(one, other)
            }
            (Received::Failed(one), Received::Failed(other)) => {
                fails_alike(&one.operation, &one.reason, other)
            }
            _ => false,
        }
    }
}

fn meta_of(data: &TensorData) -> Meta {
    Meta::new(data.dtype, data.shape)
}

/// Returns whether a failure is the recorded one. Numbers of bytes differ between workers.
fn fails_alike(operation: &str, reason: &str, failure: &Failure) -> bool {
    let is_of_memory = reason.starts_with(gt_ir::failure::OUT_OF_MEMORY);
    operation == failure.operation
        && (reason == failure.reason || is_of_memory && failure.is_of_memory())
}

/// Compares what was received with what is recorded.
pub fn compare(recorded: &Outcome, received: &Received, tolerances: &Tolerances) -> Agreement {
    match (recorded, received) {
        (Outcome::Unrecorded, _) => Agreement::Unrecorded,
        (Outcome::Value(recorded), Received::Value(data)) => values(recorded, data, tolerances),
        (Outcome::Failed { operation, reason, .. }, Received::Failed(failure))
            if fails_alike(operation, reason, failure) =>
        {
            Agreement::Equal
        }
        _ => Agreement::Different,
    }
}

fn values(recorded: &RecordedValue, data: &TensorData, tolerances: &Tolerances) -> Agreement {
    let now = RecordedValue::of(data);
    if now.meta != recorded.meta {
        return Agreement::Different;
    }
    if now.hash == recorded.hash {
        return Agreement::Equal;
    }
    let (one, other) = (recorded.first_elements(), now.first_elements());
    match one.zip(other) {
        // Of the elements that are not recorded, all that is known is that some may differ.
        Some((one, other)) if !tolerances.is_exact && tolerances.agree(&one, &other) => {
            Agreement::Close
        }
        _ => Agreement::Different,
    }
}

/// Returns the number of elements that are compared within tolerances.
pub fn compared_elements(meta: &Meta) -> usize {
    meta.shape.numel().min(SHOWN)
}
