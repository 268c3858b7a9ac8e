//! What can go wrong for a client.

use std::sync::Arc;

use gt_ir::message::Failure;

pub type Result<T> = std::result::Result<T, ClientError>;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// A mistake in the use of an operation, found before anything was sent.
    #[error("{0}")]
    Invalid(#[from] gt_ir::Error),

    /// A mistake in the use of the client.
    #[error("{0}")]
    Usage(String),

    /// An operation failed where it ran.
    #[error("{failure}{}{}", place_text(&failure.worker), line_text(.location))]
    Failed { failure: Failure, location: Option<String> },

    /// The dispatcher is gone, or never was there.
    #[error("{0}")]
    Connection(String),

    /// So much is under way that the next instruction should wait for room.
    #[error("the window of the session is full: wait for room")]
    WindowFull,

    /// A function that the user gave (a hook, a backward) failed.
    #[error("{0}")]
    Callback(CallbackError),

    /// The user asked to stop waiting.
    #[error("interrupted while waiting for a value")]
    Interrupted,
}

/// What a user's own function failed with.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CallbackError(pub Arc<dyn std::error::Error + Send + Sync>);

impl PartialEq for CallbackError {
    fn eq(&self, other: &CallbackError) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ClientError {
    pub fn usage(text: impl Into<String>) -> ClientError {
        ClientError::Usage(text.into())
    }
}

fn place_text(worker: &str) -> String {
    if worker.is_empty() { String::new() } else { format!("\n  on worker {worker}") }
}

fn line_text(location: &Option<String>) -> String {
    location.as_ref().map(|line| format!("\n  issued at {line}")).unwrap_or_default()
}
