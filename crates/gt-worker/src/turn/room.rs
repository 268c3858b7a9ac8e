//! What a lane's next command waits for: pending or spilled tensors, and memory.

use gt_ir::{TensorId, WorkerCommand};
use smallvec::SmallVec;

use super::Turn;
use crate::engine::Engine;
use crate::lane::{Lane, next_commands};
use crate::memory::{self, Need};

impl<E: Engine> Turn<'_, E> {
    /// Returns the tensors that the next command reads. A commit needs their values only if one of
    /// them has failed.
    fn reads_next(&mut self) -> SmallVec<[TensorId; 4]> {
        let Lane { queue, running, store, .. } = &mut *self.lane;
        let next = next_commands(queue, running);
        match next.and_then(|(commands, place)| commands.get(*place)) {
            Some(WorkerCommand::Run(instruction)) => match instruction.commit() {
                Some(commit) if store.first_failure(commit.watched()).is_none() => SmallVec::new(),
                _ => instruction.reads().collect(),
            },
            command => command.map_or_else(SmallVec::new, reads),
        }
    }

    /// Returns whether the next command reads a pending tensor.
    pub(super) fn is_pending(&mut self) -> bool {
        // A save can read spilled tensors from disk.
        if let Some((commands, place)) = self.lane.next_commands()
            && let WorkerCommand::Save(part) = &commands[*place]
        {
            let ids: Vec<TensorId> = part.blocks.iter().map(|block| block.tensor).collect();
            return ids.into_iter().any(|id| self.lane.store.is_on_its_way(id));
        }
        if let Some((commands, place)) = self.lane.next_commands()
            && matches!(commands[*place], WorkerCommand::Snapshot(_))
        {
            return self.lane.store.has_pending();
        }
        if let Some((commands, place)) = self.lane.next_commands()
            && let WorkerCommand::Run(instruction) = &commands[*place]
        {
            let ids: SmallVec<[TensorId; 4]> = instruction.reads().collect();
            return ids.into_iter().any(|id| self.lane.store.is_pending(id));
        }
        self.reads_next().into_iter().any(|id| self.lane.store.is_pending(id))
    }

    /// Returns whether the next command waits for values of a snapshot.
    pub(super) fn waits_for_snapshot(&mut self) -> bool {
        if self.lane.is_restored {
            return false;
        }
        match self.lane.next_commands().map(|(commands, place)| &commands[*place]) {
            Some(&WorkerCommand::Restore { session, snapshot, is_here }) => {
                self.lacks_snapshot(session, snapshot, is_here)
            }
            Some(WorkerCommand::Slots(_)) => false,
            _ => {
                self.lane.is_restored = true;
                false
            }
        }
    }

    /// Unspills the tensors that the next command reads; returns whether that takes time. A tensor
    /// that does not fit fails the command.
    pub(super) fn brings_back(&mut self) -> bool {
        let reads = self.reads_next();
        if self.lane.store.elsewhere(&reads) > self.lane.room_back() {
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

    /// Returns whether the next command does not fit in memory: its results, and the spilled
    /// tensors that it reads.
    pub(super) fn is_short(&mut self) -> bool {
        let mut back = 0;
        let mut is_full = false;
        if self.lane.store.has_absent() {
            let reads = self.reads_next();
            back = self.lane.store.elsewhere(&reads);
            is_full = back > self.lane.room_back();
        }
        let Lane { queue, running, store, memory, .. } = &mut *self.lane;
        let Some((commands, place)) = next_commands(queue, running) else { return false };
        let Some(command) = commands.get(*place) else { return false };
        let rest = &commands[*place + 1..];
        let tensors = memory::made_by(command);
        let mut room = memory.room(store, tensors);
        if back > 0 {
            let beside = memory.room_back(store).saturating_sub(back);
            room = room.map(|room| room.min(beside));
        }
        let new = memory::of_command(&self.device.engine, command, rest, store, room);
        let is_short = new.is_some() || is_full;
        let (new, tensors) = new.map_or((0, 0), |new| (new, tensors));
        self.short = is_short.then_some(Need { new, tensors, back });
        self.short.is_some()
    }

    /// Returns the tensors that stay in memory while the next command waits.
    pub fn needs_next(&mut self) -> Vec<TensorId> {
        self.reads_next().into_vec()
    }
}

/// The tensors that a command other than an instruction reads.
fn reads(command: &WorkerCommand) -> SmallVec<[TensorId; 4]> {
    match command {
        WorkerCommand::Fetch { tensor, .. } => SmallVec::from_slice(&[*tensor]),
        WorkerCommand::Exchange(exchange) => exchange.input.into_iter().collect(),
        _ => SmallVec::new(),
    }
}
