//! What a lane's next command waits for: tensors that are not there, and memory.

use gt_ir::{TensorId, WorkerCommand};
use smallvec::SmallVec;

use super::Turn;
use crate::engine::Engine;
use crate::lane::{Lane, next_commands};
use crate::memory;

impl<E: Engine> Turn<'_, E> {
    /// Whether the next command needs a tensor that is not there.
    pub(super) fn has_to_wait(&mut self) -> bool {
        let Some((commands, place)) = self.lane.next_commands() else { return false };
        let reads = reads(&commands[*place]);
        self.waits_for(&reads)
    }

    /// Whether any of these tensors is not there; those that are elsewhere are brought back.
    fn waits_for(&mut self, ids: &[TensorId]) -> bool {
        let mut waits = false;
        let (mut away, mut need): (SmallVec<[TensorId; 4]>, u64) = (SmallVec::new(), 0);
        for id in ids {
            waits |= self.lane.store.is_pending(*id);
            if let Some(found) = self.lane.store.away(*id).filter(|_| !away.contains(id)) {
                need += found.elsewhere();
                away.push(*id);
            }
        }
        if !away.is_empty() && !self.lane.has_room(need) {
            if self.lane.memory.gives_up.is_some() {
                return waits;
            }
            self.short = Some(need);
            return true;
        }
        for id in away {
            waits |= self.device.bring_back(self.lane, id, self.out);
        }
        waits
    }

    /// Whether there is no room for what the next command needs.
    pub(super) fn is_short(&mut self) -> bool {
        let room = self.lane.room();
        let Lane { queue, running, store, .. } = &mut *self.lane;
        let Some((commands, place)) = next_commands(queue, running) else { return false };
        let (command, rest) = (&commands[*place], &commands[*place + 1..]);
        self.short = memory::of_command(&self.device.engine, command, rest, store, room);
        self.short.is_some()
    }

    /// The tensors that the lane reads next.
    pub fn needs_next(&mut self) -> Vec<TensorId> {
        let next = self.lane.next_commands();
        let command = next.and_then(|(commands, place)| commands.get(*place));
        command.map_or_else(Vec::new, |command| reads(command).into_vec())
    }
}

/// The tensors that a command reads.
fn reads(command: &WorkerCommand) -> SmallVec<[TensorId; 4]> {
    match command {
        WorkerCommand::Run(instruction) => instruction.reads().collect(),
        WorkerCommand::Fetch { tensor, .. } => SmallVec::from_slice(&[*tensor]),
        WorkerCommand::Save(part) => part.blocks.iter().map(|block| block.tensor).collect(),
        WorkerCommand::Exchange(exchange) => exchange.input.into_iter().collect(),
        _ => SmallVec::new(),
    }
}
