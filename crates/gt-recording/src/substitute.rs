//! Which commands are recorded otherwise than they are submitted.

use gt_ir::stored::StoredValues;
use gt_ir::{ClientCommand, Content, Create, TensorData};

use crate::anonymous;

/// Reads values from files; `None` if they cannot be read here.
pub type ReadStored = fn(&StoredValues) -> Option<TensorData>;

/// How a recording differs from the stream.
#[derive(Clone, Copy)]
pub struct CommandSubstitution {
    /// Whether data, texts and names are left out.
    pub is_anonymous: bool,
    /// Reads what workers read from files, so that the recording has it.
    pub read: ReadStored,
}

impl CommandSubstitution {
    /// Returns the command that is recorded instead of another, if one is.
    #[inline]
    pub fn instead(&self, command: &ClientCommand) -> Option<ClientCommand> {
        if self.is_anonymous {
            return anonymous::command(command);
        }
        match command {
            ClientCommand::Create(create) => self.with_data(create),
            _ => None,
        }
    }

    fn with_data(&self, create: &Create) -> Option<ClientCommand> {
        let Content::Stored(stored) = &create.content else { return None };
        let content = Content::Data((self.read)(stored)?);
        Some(ClientCommand::Create(Create { content, ..*create }))
    }
}
