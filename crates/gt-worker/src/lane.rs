//! A lane: a session's slot on this worker, with its own tensors and queue.

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
    /// The iteration that it is running.
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

    /// Queues commands. Definitions and invocations are applied to the bindings at once, so that
    /// the effects of queued iterations are known.
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
