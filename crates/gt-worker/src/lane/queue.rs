//! A lane's queue of commands, in which unwanted work is marked to be skipped.

use std::collections::VecDeque;

use gt_ir::liveness::{Effects, Liveness, Verdict};
use gt_ir::{RequestId, TensorId, WorkerCommand};
use rustc_hash::FxHashSet;

use super::iteration::Iteration;

/// The weight from which a queue is searched for unwanted work as it grows.
const MANY: u64 = 256;

/// Commands of one message, and the iterations that they invoke.
pub(crate) struct QueuedBatch {
    pub commands: Vec<WorkerCommand>,
    /// The index of the next command.
    pub next: usize,
    /// The iterations of the invocations that are not run yet, in order.
    pub iterations: VecDeque<Iteration>,
    /// Whether it was queued when an earlier command failed after waiting for memory.
    pub has_waited: bool,
    /// The indices of commands that are not to be run.
    skipped: FxHashSet<usize>,
    weight: u64,
}

/// A lane's queued commands.
#[derive(Default)]
pub(crate) struct Queue {
    batches: VecDeque<QueuedBatch>,
    weight: u64,
    /// The weight queued when it was searched last.
    looked_through: u64,
    /// The number of instructions that were marked to be skipped since the last reset.
    pub skipped: u64,
}

impl Queue {
    pub fn push(&mut self, commands: Vec<WorkerCommand>, iterations: VecDeque<Iteration>) {
        let weight = commands.iter().map(WorkerCommand::weight).sum();
        self.weight += weight;
        let skipped = FxHashSet::default();
        let (next, has_waited) = (0, false);
        self.batches.push_back(QueuedBatch {
            commands,
            next,
            iterations,
            has_waited,
            skipped,
            weight,
        });
    }

    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The oldest batch.
    pub fn front(&mut self) -> Option<&mut QueuedBatch> {
        self.batches.front_mut()
    }

    /// Marks all queued commands as having waited for memory, with the command that fails now.
    pub fn note_wait(&mut self) {
        self.batches.iter_mut().for_each(|batch| batch.has_waited = true);
    }

    /// Removes the oldest batch, which is complete, and returns its weight.
    pub fn pop(&mut self) -> u64 {
        let weight = self.batches.pop_front().map_or(0, |batch| batch.weight);
        self.weight -= weight;
        self.looked_through = self.looked_through.min(self.weight);
        weight
    }

    /// Marks a cancelled fetch as skipped; returns whether it was queued.
    pub fn cancel(&mut self, asked: RequestId) -> bool {
        for batch in &mut self.batches {
            let is_it = |command: &WorkerCommand| matches!(command, WorkerCommand::Fetch { request, .. } if *request == asked);
            let place = batch.commands[batch.next..].iter().position(is_it);
            if let Some(place) = place {
                batch.skipped.insert(batch.next + place);
                return true;
            }
        }
        false
    }

    /// Whether the queue has grown enough since the last search to search it again.
    pub fn has_grown(&self) -> bool {
        self.weight >= MANY.max(2 * self.looked_through)
    }

    /// Marks unwanted commands to be skipped. Returns the tensors that may be freed at once, as no
    /// queued command uses them before their free.
    pub fn look_through(&mut self) -> FxHashSet<TensorId> {
        self.looked_through = self.weight;
        let mut liveness = Liveness::default();
        for batch in self.batches.iter_mut().rev() {
            let mut iterations = batch.iterations.iter().rev();
            for place in (batch.next..batch.commands.len()).rev() {
                let command = &batch.commands[place];
                let effects = match (Effects::of_worker(command), command) {
                    (Some(effects), _) => effects,
                    (None, _) => match iterations.next() {
                        Some(iteration) => iteration.effects(),
                        None => Effects { is_needed: true, ..Effects::default() },
                    },
                };
                let is_question = matches!(command, WorkerCommand::Fetch { .. });
                if is_question && batch.skipped.contains(&place) {
                    continue;
                }
                if liveness.before(&effects) == Verdict::Unwanted && batch.skipped.insert(place) {
                    self.skipped += match command {
                        WorkerCommand::Run(_) | WorkerCommand::Invoke(_) => command.weight(),
                        _ => 0,
                    };
                }
            }
        }
        liveness.free_at_once()
    }
}

impl QueuedBatch {
    /// Returns whether the command at `place` is skipped.
    #[inline]
    pub fn is_skipped(&self, place: usize) -> bool {
        !self.skipped.is_empty() && self.skipped.contains(&place)
    }
}
