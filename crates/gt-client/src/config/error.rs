//! Errors of configurations, with their positions.

use std::fmt;

use thiserror::Error;

/// A position in a file; lines and columns count from 1, and are 0 if the parser knows none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePosition {
    pub file: String,
    pub line: u64,
    pub column: u64,
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            _ => write!(f, "{}:{}:{}", self.file, self.line, self.column),
        }
    }
}

/// An error of a configuration. Keys have their path: `forward.shard.axis`.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ConfigError {
    #[error("{place}: this cannot be read: {reason}")]
    Syntax { place: FilePosition, reason: String },
    #[error("{place}: '{key}' occurs twice, expected once")]
    DuplicateKey { place: FilePosition, key: String },
    #[error(
        "{place}: '{key}' is not a known key, expected {}{}",
        expected.join(", "), hint(*nearest)
    )]
    UnknownKey {
        place: FilePosition,
        key: String,
        expected: &'static [&'static str],
        nearest: Option<&'static str>,
    },
    #[error("{place}: '{key}' is {given}, expected {expected}")]
    WrongValue { place: FilePosition, key: String, given: String, expected: &'static str },
    #[error("{place}: '{key}' is not an axis of the mesh, expected {}", names.join(", "))]
    UnknownMeshAxis { place: FilePosition, key: String, names: Vec<String> },
    #[error("{place}: '{key}' names worker {worker} twice, expected each worker once")]
    DuplicateWorker { place: FilePosition, key: String, worker: u32 },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map(|key| format!("\n  hint: did you mean '{key}'?")).unwrap_or_default()
}
