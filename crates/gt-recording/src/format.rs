//! The entries of a recording's file. The file is a segment of `gt-journal`, each of whose records is
//! an entry.
//!
//! The first is the header, the last [`RecordingEntry::End`], if the session ended in order. Lines precede the
//! events whose instructions they issued, and data precedes the events that refer to it.

use std::time::Duration;

use bytes::Bytes;
use gt_ir::{Operation, ops, record};

use crate::content::ContentHash;
use crate::place::RecordedPlace;

/// What the segment of a recording has instead of a schema of the server's journal.
pub const SCHEMA: u64 = u64::from_le_bytes(*b"GTSTREAM");

/// The version of the entries and of the commands in them. Operations are no part of it: they are
/// found by name.
pub const LAYOUT: u32 = 2;

/// One record of a recording's file.
#[derive(Clone, PartialEq, Debug)]
pub enum RecordingEntry {
    Header(Box<RecordingHeader>),
    /// Lines of the program, in the order of their numbers.
    Lines(Vec<RecordedLine>),
    /// Data of tensors, which later events refer to by its hash.
    Data {
        hash: ContentHash,
        bytes: Bytes,
    },
    /// Consecutive events, and the data that they refer to, in order: see [`crate::event`].
    Events {
        data: Vec<ContentHash>,
        events: Bytes,
    },
    /// The session has ended.
    End,
}

record!(enum RecordingEntry {
    0 => Header(header),
    1 => Lines(lines),
    2 => Data { hash, bytes },
    3 => Events { data, events },
    4 => End,
});

/// What a replay must know before the stream, and a reader wants to know.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordingHeader {
    pub layout: u32,
    /// The version of GT that recorded.
    pub version: String,
    /// When the session began, since 1970.
    pub begun: Duration,
    /// The program and its arguments.
    pub program: Vec<String>,
    pub place: RecordedPlace,
    /// The environment variables of GT that were set, without keys.
    pub environment: Vec<(String, String)>,
    pub is_anonymous: bool,
    /// The operations that the recording GT knew, by their numbers in the stream.
    pub operations: Vec<OperationName>,
}

record!(struct RecordingHeader {
    layout, version, begun, program, place, environment, is_anonymous, operations,
});

/// A line of the program, as `file:line`, and the function that was called there, or an empty text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedLine {
    pub text: String,
    pub called: String,
}

record!(struct RecordedLine { text, called });

/// An operation's number in the stream, its name, and the names of its attributes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationName {
    pub number: u16,
    pub name: String,
    pub attributes: Vec<String>,
}

record!(struct OperationName { number, name, attributes });

impl OperationName {
    /// Returns the name of an operation of this GT.
    pub fn of(operation: &'static Operation) -> OperationName {
        OperationName {
            number: operation.id,
            name: operation.name.into(),
            attributes: operation.attributes().map(|(of, _)| of.name.into()).collect(),
        }
    }

    /// Returns the names of all operations.
    pub fn all() -> Vec<OperationName> {
        ops::ALL.iter().map(|operation| OperationName::of(operation)).collect()
    }
}
