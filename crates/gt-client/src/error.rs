//! Errors of the client.

use std::fmt::Write;
use std::sync::Arc;

use gt_ir::entitlement::Holding;
use gt_ir::failure::BadIndex;
use gt_ir::message::Failure;
use gt_ir::ops::index::WRAP_INDEX;

use crate::source;

/// The result of a client call.
pub type Result<T> = std::result::Result<T, ClientError>;

/// An error of the client.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// An operation rejected its operands before anything was sent.
    #[error("{0}")]
    Invalid(#[from] gt_ir::Error),

    /// A mistake in the use of the client.
    #[error("{0}")]
    Usage(String),

    /// An operation failed where it ran.
    #[error("{}", failed_text(.failure, .location.as_deref(), &|_| None))]
    Failed { failure: Failure, location: Option<String> },

    /// The dispatcher is lost, or was never reached.
    #[error("{0}")]
    Connection(String),

    /// The window is full: the next instruction should wait for credit.
    #[error("the window of the session is full: wait for room")]
    WindowFull,

    /// A user's function (a hook, a backward) failed.
    #[error("{0}")]
    Callback(CallbackError),

    /// The user has interrupted a wait.
    #[error("interrupted while waiting for a value")]
    Interrupted,
}

/// The error of a user's function.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CallbackError(pub Arc<dyn std::error::Error + Send + Sync>);

impl PartialEq for CallbackError {
    fn eq(&self, other: &CallbackError) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl ClientError {
    /// Returns a [`ClientError::Usage`].
    pub fn usage(text: impl Into<String>) -> ClientError {
        ClientError::Usage(text.into())
    }
}

/// Returns the error of an index out of range under the name of the function that the user called;
/// `None` if the failure names it already.
fn bad_index_text(failure: &Failure) -> Option<String> {
    let BadIndex { index, length } = failure.bad_index()?;
    let is_wrapped = failure.name() == WRAP_INDEX.name;
    let call = source::call(failure.line).filter(|call| call.name != failure.name());
    let (name, operand) = match &call {
        Some(call) => (call.name.as_str(), call.operand.as_str()),
        None if is_wrapped => ("indexing", "index"),
        None => return None,
    };
    // Negative indices count from the end.
    let low = if is_wrapped { format!("-{length}") } else { "0".into() };
    Some(format!("{name}: {operand} {index} is not in [{low}, {length})"))
}

/// Returns a line, given as `file:line`, as Python shows it if it was typed, or is in a cell of a
/// notebook. A statement that was typed has a number, as in `<stdin 3>`, which is not shown.
fn shown_line(line: &str) -> String {
    match line.rsplit_once(':') {
        Some((place, number)) if place.starts_with("<stdin") => format!("<stdin>, line {number}"),
        Some((place, number)) if place.starts_with("Cell In[") => format!("{place}, line {number}"),
        _ => line.to_string(),
    }
}

/// Formats a failure, with the line that issued it and, for lack of memory, the largest tensors.
/// `variable` returns the name of the variable that a line, as `file:line`, assigns.
pub fn failed_text(
    failure: &Failure,
    location: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> String {
    let mut text = bad_index_text(failure).unwrap_or_else(|| failure.to_string());
    for (index, holding) in failure.largest.iter().enumerate() {
        let Holding { meta, bytes, .. } = holding;
        let begin = if index == 0 { "\n  the largest are " } else { ",\n  " };
        let line = source::text(holding.line);
        let is_gradient = source::is_of_gradient(holding.line);
        let name = line.as_deref().filter(|_| !is_gradient).and_then(variable);
        let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
        let of = if is_gradient { " for gradients of " } else { " of " };
        let made = line.map(|line| format!("{of}{line}")).unwrap_or_default();
        let size = (*bytes as f64) / 1e6;
        // Writing into a `String` does not fail.
        let _ = write!(text, "{begin}{name}{} {}{made}, {size:.1} MB", meta.dtype, meta.shape);
    }
    for (index, other) in failure.others.iter().enumerate() {
        let begin = if index == 0 { "\n  others hold " } else { ", " };
        let name = match other.label.as_str() {
            "" => "a session that has ended",
            label => label,
        };
        let _ = write!(text, "{begin}{name} {:.1} MB", (other.bytes as f64) / 1e6);
    }
    if !failure.worker.is_empty() {
        let _ = write!(text, "\n  on worker {}", failure.worker);
    }
    if let Some(line) = location {
        let _ = write!(text, "\n  issued at {}", shown_line(line));
    }
    text
}
