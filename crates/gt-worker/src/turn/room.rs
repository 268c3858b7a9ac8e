//! What a lane's next command waits for: tensors that are not there, and memory.

use gt_ir::{TensorId, WorkerCommand};
use smallvec::SmallVec;

use super::Turn;
use crate::engine::Engine;
use crate::lane::{Lane, next_commands};
use crate::memory;
use crate::store::Away;

impl<E: Engine> Turn<'_, E> {
    /// The tensors that the next command reads.
    fn reads_next(&mut self) -> SmallVec<[TensorId; 4]> {
        let next = self.lane.next_commands();
        let command = next.and_then(|(commands, place)| commands.get(*place));
        command.map_or_else(SmallVec::new, reads)
    }

    /// Whether the next command reads a tensor that is pending.
    pub(super) fn is_pending(&mut self) -> bool {
        self.reads_next().into_iter().any(|id| self.lane.store.is_pending(id))
    }

    /// Brings the tensors back that the next command reads and that are elsewhere; returns whether
    /// that takes time. What there is no room for fails where it is used.
    pub(super) fn brings_back(&mut self) -> bool {
        let reads = self.reads_next();
        if !self.lane.has_room(self.elsewhere(&reads)) {
            return false;
        }
        let mut waits = false;
        for id in reads {
            if self.lane.store.away(id).is_some() {
                waits |= self.device.bring_back(self.lane, id, self.out);
            }
        }
        waits
    }

    /// The bytes that these tensors will need when they are brought back.
    fn elsewhere(&self, ids: &[TensorId]) -> u64 {
        let is_first = |(at, id): &(usize, &TensorId)| !ids[..*at].contains(id);
        let away = ids.iter().enumerate().filter(is_first);
        away.filter_map(|(_, id)| self.lane.store.away(*id)).map(Away::elsewhere).sum()
    }

    /// Whether there is no room for what the next command needs: its results, and the tensors that
    /// it reads and that are elsewhere.
    pub(super) fn is_short(&mut self) -> bool {
        let room = self.lane.room();
        let mut elsewhere = 0;
        if self.lane.store.has_absent() {
            let reads = self.reads_next();
            elsewhere = self.elsewhere(&reads);
        }
        let Lane { queue, running, store, .. } = &mut *self.lane;
        let Some((commands, place)) = next_commands(queue, running) else { return false };
        let (command, rest) = (&commands[*place], &commands[*place + 1..]);
        let left = room.saturating_sub(elsewhere);
        let need = memory::of_command(&self.device.engine, command, rest, store, left);
        self.short = match need {
            Some(need) => Some(need + elsewhere),
            None => (elsewhere > room).then_some(elsewhere),
        };
        self.short.is_some()
    }

    /// The tensors that stay while the next command waits for memory.
    pub fn needs_next(&mut self) -> Vec<TensorId> {
        self.reads_next().into_vec()
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
