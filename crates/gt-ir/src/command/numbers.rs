//! The numbers with which a client's stream begins, after those of its predecessor.

use super::ClientCommand;
use crate::record;

/// The numbers with which a client's stream begins: those before are taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StreamNumbers {
    pub tensor: u64,
    pub request: u64,
}

record!(struct StreamNumbers { tensor, request });

impl StreamNumbers {
    /// Advances them beyond the numbers that commands use, whose numbers increase.
    pub fn advance(&mut self, commands: &[ClientCommand]) {
        let mut latest = commands.iter().rev();
        if let Some(tensor) = latest.clone().find_map(ClientCommand::after_made) {
            self.tensor = self.tensor.max(tensor);
        }
        if let Some(request) = latest.find_map(ClientCommand::request) {
            self.request = self.request.max(request.0.saturating_add(1));
        }
    }
}
