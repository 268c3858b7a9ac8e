//! A world's counters: traffic, credit, and leftover state.

use gt_dispatcher::PeerId;
use gt_ir::wire::Record;

use crate::world::World;

/// Counts of messages with commands, and their encoded length.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Traffic {
    pub messages: u64,
    pub commands: u64,
    pub bytes: u64,
}

impl Traffic {
    pub(crate) fn count<C: Record>(&mut self, commands: &[C]) {
        self.messages += 1;
        self.commands += commands.len() as u64;
        self.bytes += commands.iter().map(Record::length).sum::<usize>() as u64;
    }
}

impl World {
    /// Returns the weight that a client has sent and that was not returned yet; 0 once its session
    /// has ended.
    pub fn credit(&self, client: PeerId) -> u64 {
        self.credit.get(&client).copied().unwrap_or_default()
    }

    /// Describes the state left in dispatcher and workers after all sessions have ended; empty if
    /// none.
    pub fn leftovers(&self) -> String {
        let mut left: Vec<String> = self.dispatcher.leftovers().into_iter().collect();
        for (peer, worker) in &self.workers {
            left.extend(worker.leftovers().map(|of| format!("worker {}: {of}", peer.number)));
        }
        left.join("; ")
    }

    /// The number of tensors that all workers hold.
    pub fn tensors_held(&self) -> u64 {
        self.workers.values().map(|worker| worker.stats().tensors).sum()
    }
}
