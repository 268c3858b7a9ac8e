//! What a program received for a value that it read.

use bytes::Bytes;
use gt_ir::message::{Answer, Reply};
use gt_ir::{Content, Meta, Shape, SourceId, TensorData, record};

use crate::content::ContentHash;

/// The most elements of a value that are recorded; of a larger value, the first ones.
pub const SHOWN: usize = 64;

/// A value by its hash, with its first elements.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedValue {
    pub meta: Meta,
    pub hash: ContentHash,
    /// The bytes of the first [`SHOWN`] elements.
    pub shown: Bytes,
}

record!(struct RecordedValue { meta, hash, shown });

impl RecordedValue {
    /// Returns the record of a value.
    pub fn of(data: &TensorData) -> RecordedValue {
        let meta = Meta::new(data.dtype, data.shape);
        let length = meta.bytes().min(SHOWN * data.dtype.size());
        RecordedValue {
            meta,
            hash: ContentHash::of(&data.bytes),
            shown: data.bytes.slice(..length),
        }
    }

    /// Returns the first elements, as a value with one axis; `None` if the bytes do not fit.
    pub fn first_elements(&self) -> Option<TensorData> {
        let dtype = self.meta.dtype;
        let count = self.meta.shape.numel().min(SHOWN);
        TensorData::new(dtype, Shape::new(&[count]).ok()?, self.shown.clone())
    }
}

/// The answer to a request for a value.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    Value(RecordedValue),
    Failed {
        operation: String,
        reason: String,
        line: SourceId,
    },
    /// An answer of which nothing is recorded.
    Unrecorded,
}

record!(enum Outcome {
    0 => Value(value),
    1 => Failed { operation, reason, line },
    2 => Unrecorded,
});

impl Outcome {
    /// Returns what is recorded of an answer; `None` if it is not about a value.
    pub fn of(answer: &Answer) -> Option<Outcome> {
        match &answer.result {
            Ok(Reply::Value(Content::Data(data))) => Some(Outcome::Value(RecordedValue::of(data))),
            Err(failure) => Some(Outcome::Failed {
                operation: failure.operation.clone(),
                reason: failure.reason.clone(),
                line: failure.line,
            }),
            _ => None,
        }
    }
}
