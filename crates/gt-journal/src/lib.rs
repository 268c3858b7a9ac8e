//! A write-ahead journal on disk: records are appended, and read after a crash.
//!
//! A folder holds one segment: a file with a header and records, each with its length and checksum.
//! Records are written in groups (group commit: one sync for each). The writer's owner replaces a segment
//! by a shorter, equivalent one from time to time, so its length is bounded. Of a segment that was
//! truncated or damaged, the records before the damage are read.
//!
//! - [`segment`]: the format; [`folder`]: the files; [`writer`]: the writing thread.
//!
//! This crate does not know the meaning of records.

pub mod folder;
pub mod segment;
pub mod writer;

pub use folder::{Folder, JournalContents, has_journal};
pub use writer::JournalWriter;

use std::path::Path;

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("{action} '{path}': {error}")]
    File { action: &'static str, path: String, error: std::io::Error },
    #[error("the folder '{path}' is in use by another gt process ({process})")]
    InUse { path: String, process: String },
    #[error("'{path}' is no journal of gt that can be used here: {reason}")]
    Foreign { path: String, reason: String },
}

impl JournalError {
    fn file(action: &'static str, path: &Path, error: std::io::Error) -> JournalError {
        JournalError::File { action, path: path.display().to_string(), error }
    }
}
