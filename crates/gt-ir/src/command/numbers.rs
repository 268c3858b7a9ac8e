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
    /// Advances them beyond the numbers that a batch uses: they increase, and a request ends its
    /// batch.
    pub fn advance(&mut self, batch: &[ClientCommand]) {
        if let Some(tensor) = batch.iter().rev().find_map(ClientCommand::after_made) {
            self.tensor = self.tensor.max(tensor);
        }
        if let Some(request) = batch.last().and_then(ClientCommand::request) {
            self.request = self.request.max(request.0.saturating_add(1));
        }
    }
}
