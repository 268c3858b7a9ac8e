//! A lane: a session's slot on this worker, with its own tensors and queue.

use std::collections::VecDeque;

use gt_ir::{LaneId, SlotId, WorkerCommand, WorkerId};
use rustc_hash::FxHashMap;

use crate::commit::Undone;
use crate::exchange::Exchanges;
use crate::iteration::{Iteration, Running, Templates};
use crate::memory::{LaneMemory, records};
use crate::queue::Queue;
use crate::store::Store;
use crate::vault::Keeping;

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
    pub warmth: Warmth,
    /// The device time that the dispatcher has not been told of, in nanoseconds.
    pub untold: u64,
    /// The bytes that it holds in memory and elsewhere, as the dispatcher was told last.
    pub told: (u64, u64),
    pub memory: LaneMemory,
    pub undone: Undone,
    /// The snapshot that is being taken of it.
    pub keeping: Option<Keeping>,
    /// Whether it has begun, after taking back the values of a snapshot if it is made again.
    pub is_restored: bool,
}

/// How often a lane has run its plans, by their hashes.
#[derive(Default)]
pub(crate) struct Warmth(FxHashMap<u64, u32>);

/// The most plans that are counted: their runs count from 0 again when there are more.
const COUNTED: usize = 4096;

impl Warmth {
    pub fn of(&self, plan: u64) -> u32 {
        self.0.get(&plan).copied().unwrap_or(0)
    }

    /// The counts of plans, up to `most`, beyond which they make no difference.
    pub fn counts(&self, most: u32) -> Vec<(u64, u32)> {
        let counts = self.0.iter().map(|(plan, runs)| (*plan, (*runs).min(most)));
        let mut all: Vec<(u64, u32)> = counts.filter(|(_, runs)| *runs > 0).collect();
        all.sort_unstable();
        all
    }

    /// Goes on from counts.
    pub fn set(&mut self, counts: &[(u64, u32)]) {
        self.0 = counts.iter().copied().collect();
    }

    pub fn rise(&mut self, plan: u64) {
        if self.0.len() >= COUNTED {
            self.0.clear();
        }
        let runs = self.0.entry(plan).or_default();
        *runs = runs.saturating_add(1);
    }
}

/// The commands that come next in a lane: the steps of a part, or those of its queue.
pub(crate) fn next_commands<'a>(
    queue: &'a mut Queue,
    running: &'a mut Option<Running>,
) -> Option<(&'a mut Vec<WorkerCommand>, &'a mut usize)> {
    if let Some(running) = running {
        return running.steps.as_mut().map(|steps| (&mut steps.commands, &mut steps.next));
    }
    queue.front().map(|batch| (&mut batch.commands, &mut batch.next))
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
            warmth: Warmth::default(),
            untold: 0,
            told: (0, 0),
            memory: LaneMemory::default(),
            undone: Undone::default(),
            keeping: None,
            is_restored: false,
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

    /// The commands that come next, and the index of the first of them that is not done.
    pub fn next_commands(&mut self) -> Option<(&mut Vec<WorkerCommand>, &mut usize)> {
        next_commands(&mut self.queue, &mut self.running)
    }

    /// The session whose snapshot it is to take back.
    pub fn restores(&mut self) -> Option<u32> {
        let (commands, place) = self.next_commands()?;
        commands[*place..].iter().find_map(|command| match command {
            WorkerCommand::Restore { session, .. } => Some(*session),
            _ => None,
        })
    }

    /// The bytes that it may hold beside those that it holds, in so many more tensors; `None` if even
    /// the records of these are too many for a quota.
    #[inline]
    pub fn room(&self, tensors: usize) -> Option<u64> {
        self.memory.room(&self.store, tensors)
    }

    /// The bytes that the records of its tensors count for its quotas.
    pub fn records(&self) -> u64 {
        records(self.store.count())
    }

    /// The same of so many more.
    pub fn records_of(&self, tensors: usize) -> u64 {
        records(self.store.count() + tensors) - self.records()
    }

    /// The bytes that it counts for its quotas: what it holds in memory and elsewhere, and records.
    pub fn counted(&self) -> u64 {
        self.store.bytes() + self.store.spilled() + self.records()
    }

    /// The bytes that may come back to it from elsewhere.
    pub fn room_back(&self) -> u64 {
        self.memory.room_back(&self.store)
    }

    /// Whether there is room for so many bytes in so many tensors.
    pub fn has_room(&self, bytes: u64, tensors: usize) -> bool {
        self.room(tensors).is_some_and(|room| bytes <= room)
    }

    /// The worker that a slot of the session is on.
    pub fn host(&self, slot: SlotId) -> Option<WorkerId> {
        self.slots.get(slot.0 as usize).copied()
    }
}
