//! A lane: one session's worker slot, with tensors and a queue of its own.

use std::collections::VecDeque;

use gt_ir::{LaneId, SlotId, WorkerCommand, WorkerId};

use crate::exchange::Exchanges;
use crate::iteration::{Iteration, Running, Templates};
use crate::queue::Queue;
use crate::store::Store;

pub(crate) struct Lane<T> {
    pub id: LaneId,
    pub store: Store<T>,
    pub queue: Queue,
    pub templates: Templates,
    pub exchanges: Exchanges<T>,
    /// The iteration that is under way.
    pub running: Option<Running>,
    /// The workers that the session's slots are on.
    pub slots: Vec<WorkerId>,
}

impl<T> Lane<T> {
    pub fn new(id: LaneId) -> Lane<T> {
        Lane {
            id,
            store: Store::default(),
            queue: Queue::default(),
            templates: Templates::default(),
            exchanges: Exchanges::default(),
            running: None,
            slots: Vec::new(),
        }
    }

    /// Takes commands. Definitions and invocations are followed at once: an iteration is known
    /// before its turn comes.
    pub fn accept(&mut self, commands: Vec<WorkerCommand>) {
        let mut iterations: VecDeque<Iteration> = VecDeque::new();
        for command in &commands {
            match command {
                WorkerCommand::Define(definition) => self.templates.define(definition),
                WorkerCommand::Invoke(invocation) => {
                    iterations.push_back(self.templates.take(invocation));
                }
                _ => {}
            }
        }
        self.queue.push(commands, iterations);
    }

    /// The worker that a slot of the session is on.
    pub fn host(&self, slot: SlotId) -> Option<WorkerId> {
        self.slots.get(slot.0 as usize).copied()
    }
}
