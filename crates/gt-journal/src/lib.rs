//! A journal on disk: records that are appended, and read again after a crash.
//!
//! A folder holds one segment: a file with a header and records, each with its length and checksum.
//! Records are written in groups, each of which is made durable at once. A segment is replaced by a
//! shorter one that says the same, so that it does not grow without a bound. Of a segment that was
//! cut or damaged, the records before the damage are read.
//!
//! - [`segment`]: the format; [`folder`]: the files; [`writer`]: a thread that writes.
//!
//! This crate knows nothing of what the records mean.

pub mod folder;
pub mod segment;
pub mod writer;

pub use folder::{Contents, Folder, has_journal};
pub use writer::Writer;

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
