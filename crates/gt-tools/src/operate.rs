//! What operators do: `gt worker drain`, `gt sessions end NAME --user USER`, `gt sessions pause`,
//! `gt weight`.

use gt::drivers::operate::{OperationError, OperatorRequest, operate};

use crate::error::ToolError;
use crate::find::WatchTarget;

/// Has a server do something. Returns what was done; `None` if `interrupt` ended the wait.
///
/// # Errors
/// No server is found, it does not answer, or it refuses.
pub fn run(
    target: &WatchTarget,
    operation: OperatorRequest,
    interrupt: &mut dyn FnMut() -> bool,
) -> Result<Option<String>, ToolError> {
    let (address, key_file) = (target.server()?, target.key_file.as_deref());
    match operate(&address, key_file, target.insecure, operation, interrupt) {
        Ok(done) => Ok(Some(done)),
        Err(OperationError::Interrupted) => Ok(None),
        Err(OperationError::Refused(reason)) => Err(ToolError::BadOption(reason)),
        Err(OperationError::Link(error)) => Err(error.into()),
    }
}
