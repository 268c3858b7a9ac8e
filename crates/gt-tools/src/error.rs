//! Errors of the tools, with messages for the user.

use gt_net::NetError;

#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error(
        "no dispatcher of yours runs on this machine\n  hint: start a program that uses gt, or `gt server`; or name one elsewhere with --host and --port"
    )]
    NobodyHere,

    #[error(
        "several dispatchers run on this machine:\n{list}  hint: choose one with --port or --pid"
    )]
    Several { list: String },

    #[error("no program with an embedded session runs as process {process}{list}")]
    NoSuchProcess { process: u32, list: String },

    #[error(transparent)]
    Link(#[from] NetError),

    #[error("{action} {path}: {error}")]
    File { action: &'static str, path: String, error: std::io::Error },

    #[error("{path}, line {line}: {reason}")]
    BadLog { path: String, line: usize, reason: String },

    #[error("{path} has no events in it\n  hint: {hint}")]
    EmptyLog { path: String, hint: &'static str },

    #[error("{0}")]
    BadOption(String),
}

impl ToolError {
    /// Adds the attempted action to the system's error.
    pub fn file(action: &'static str, path: &std::path::Path) -> impl Fn(std::io::Error) -> Self {
        move |error| ToolError::File { action, path: path.display().to_string(), error }
    }
}
