//! The commands of a recording as a replay submits them.

use gt_ir::{ClientCommand, Content, Create};

use super::fill::fill;
use crate::anonymous::hidden_meta;
use crate::reading::Recording;

/// Returns the command that a replay submits; `None` for one that it leaves out: requests that do not
/// concern values or that nothing waited for, files that would be written again, and the session's
/// name.
pub fn submitted(recording: &Recording, command: ClientCommand) -> Option<ClientCommand> {
    match command {
        ClientCommand::Fetch { request, .. } => {
            recording.answered.contains(&request).then_some(command)
        }
        ClientCommand::Create(create) => Some(ClientCommand::Create(with_data(create))),
        ClientCommand::Save(_)
        | ClientCommand::Cancel { .. }
        | ClientCommand::Statistics { .. }
        | ClientCommand::Explain { .. }
        | ClientCommand::Locate { .. }
        | ClientCommand::Status { .. }
        | ClientCommand::Kept { .. }
        | ClientCommand::Keep(_)
        | ClientCommand::Unkeep { .. }
        | ClientCommand::Detach(_)
        | ClientCommand::Publish(_)
        | ClientCommand::Find { .. }
        | ClientCommand::Withdraw { .. }
        | ClientCommand::Abandon => None,
        other => Some(other),
    }
}

/// Fills in values if the recording lacks them.
fn with_data(create: Create) -> Create {
    match hidden_meta(&create.content) {
        Some(meta) => Create { content: Content::Data(fill(create.output, meta)), ..create },
        None => create,
    }
}
