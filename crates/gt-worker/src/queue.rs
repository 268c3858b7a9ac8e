//! A lane's queue: commands that wait for their turn, without what nobody wants any more.

use std::collections::VecDeque;

use gt_ir::liveness::{Effects, Liveness, Verdict};
use gt_ir::{RequestId, TensorId, WorkerCommand};
use rustc_hash::FxHashSet;

use crate::iteration::Iteration;

/// Commands are looked through for what nobody wants when so many wait,
const MANY: u64 = 256;

/// Commands that came together, and the iterations among them.
pub(crate) struct Batch {
    pub commands: Vec<WorkerCommand>,
    /// The next to be run.
    pub next: usize,
    /// Those of the invocations among the commands that are not run yet, in their order.
    pub iterations: VecDeque<Iteration>,
    /// The commands that are not run, by their places.
    skipped: FxHashSet<usize>,
    weight: u64,
}

/// The commands of a lane that wait.
#[derive(Default)]
pub(crate) struct Queue {
    batches: VecDeque<Batch>,
    weight: u64,
    /// How much waited when it was looked through last.
    looked_through: u64,
    /// The commands that nobody wants, counted.
    pub skipped: u64,
}

impl Queue {
    pub fn push(&mut self, commands: Vec<WorkerCommand>, iterations: VecDeque<Iteration>) {
        let weight = commands.iter().map(WorkerCommand::weight).sum();
        self.weight += weight;
        let skipped = FxHashSet::default();
        self.batches.push_back(Batch { commands, next: 0, iterations, skipped, weight });
    }

    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The batch whose turn it is.
    pub fn front(&mut self) -> Option<&mut Batch> {
        self.batches.front_mut()
    }

    /// Takes the first batch out, all of which is done: gives its weight.
    pub fn pop(&mut self) -> u64 {
        let weight = self.batches.pop_front().map_or(0, |batch| batch.weight);
        self.weight -= weight;
        self.looked_through = self.looked_through.min(self.weight);
        weight
    }

    /// Nobody waits for the answer to a question any more. Whether it is there.
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

    /// Whether so much has come since the queue was looked through that it may pay to do it again.
    pub fn has_grown(&self) -> bool {
        self.weight >= MANY.max(2 * self.looked_through)
    }

    /// Marks the commands that nobody wants: they will not be run. Gives the tensors that may be
    /// freed at once.
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

impl Batch {
    /// Whether a command is not run.
    #[inline]
    pub fn is_skipped(&self, place: usize) -> bool {
        !self.skipped.is_empty() && self.skipped.contains(&place)
    }
}
