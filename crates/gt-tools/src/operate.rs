//! What operators do: `gt worker drain`, `gt sessions end NAME --user USER`, `gt sessions pause`,
//! `gt weight`.

use gt::drivers::operate::{self, OperationError, OperatorRequest};

use crate::error::ToolError;
use crate::find::WatchTarget;

/// Checks that a target is a server, and its key one for operators. Returns the user on whose
/// sessions alone it operates, if it is a user's.
///
/// # Errors
/// No server is found, or the key is for another role.
pub fn check(target: &WatchTarget) -> Result<Option<String>, ToolError> {
    let (address, key_file) = (target.server()?, target.key_file.as_deref());
    Ok(operate::check_key(&address, key_file, target.insecure)?)
}

/// Has a server do something, as the operator of this name. Returns what was done; `None` if
/// `interrupt` ended the wait.
///
/// # Errors
/// No server is found, it does not answer, or it refuses.
pub fn run(
    target: &WatchTarget,
    name: String,
    operation: OperatorRequest,
    interrupt: &mut dyn FnMut() -> bool,
) -> Result<Option<String>, ToolError> {
    let (address, key_file) = (target.server()?, target.key_file.as_deref());
    match operate::operate(&address, key_file, target.insecure, name, operation, interrupt) {
        Ok(done) => Ok(Some(done)),
        Err(OperationError::Interrupted) => Ok(None),
        Err(OperationError::Refused(reason)) => Err(ToolError::BadOption(reason)),
        Err(OperationError::Link(error)) => Err(error.into()),
    }
}
