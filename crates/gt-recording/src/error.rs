//! Why a recording cannot be written, read or replayed.

use gt_client::ClientError;

/// Why a recording cannot be written, read or replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("{action} '{path}': {error}{hint}")]
    File { action: &'static str, path: String, error: std::io::Error, hint: &'static str },

    #[error(
        "'{path}' is not a recording{found}\n  hint: `gt record -o FILE -- PROGRAM` writes one, and so does a program with GT_RECORD=FILE"
    )]
    Foreign { path: String, found: &'static str },

    #[error(
        "'{path}' has layout {found} of recordings, and this gt ({version}) reads layouts up to {known}\n  hint: replay it with gt {recorded} or later"
    )]
    Layout { path: String, found: u32, known: u32, version: String, recorded: String },

    #[error(
        "'{path}' is damaged at byte {at}: {reason}\n  hint: copy the file from its origin again{}",
        before(*.instructions)
    )]
    Damaged { path: String, at: usize, reason: String, instructions: u64 },

    #[error(
        "'{path}' has no stream in it: it ends at byte {at}, within its beginning\n  hint: record the program again; a file is complete when its program has ended"
    )]
    Empty { path: String, at: usize },

    #[error("'{path}' uses {missing}, which this gt ({version}) lacks\n  hint: {hint}")]
    Operation { path: String, missing: String, version: String, hint: String },

    #[error("'{path}' lacks {what}\n  hint: {hint}")]
    Data { path: String, what: String, hint: &'static str },

    #[error(
        "'{path}' cannot be replayed: {reason}\n  hint: report this, with the file: a recording of this gt does not have it"
    )]
    Broken { path: String, reason: String },

    #[error("--until is {given}, and the recording has {instructions} instructions")]
    Until { given: u64, instructions: u64 },

    #[error(transparent)]
    Session(#[from] ClientError),
}

/// Returns how the stream before a damage can be replayed.
fn before(instructions: u64) -> String {
    match instructions {
        0 => String::new(),
        count => {
            format!(", or replay the {count} instructions before the damage with --until {count}")
        }
    }
}
