//! A lane: a session's slot on this worker, with its own tensors and queue.
//!
//! - [`queue`]: its commands; [`iteration`]: its templates, and the iterations that they invoke.
//! - [`exchanges`]: its exchanges that wait for pieces; [`undone`]: steps that were undone;
//!   [`keeping`]: its snapshot in progress; [`call`]: its long call.
//! - [`usage`], [`holdings`]: what it reports to the dispatcher, and in failures.

pub(crate) mod call;
pub(crate) mod exchanges;
pub(crate) mod holdings;
pub(crate) mod iteration;
pub(crate) mod keeping;
pub(crate) mod queue;
pub(crate) mod undone;
mod usage;

use std::collections::VecDeque;

use gt_ir::entitlement::Anticipation;
use gt_ir::template::Step;
use gt_ir::{LaneId, SessionId, SlotId, WorkerCommand, WorkerId};
use rustc_hash::FxHashMap;

use self::call::LaneCall;
use self::exchanges::Exchanges;
use self::iteration::{Iteration, RunningIteration, Templates};
use self::keeping::Keeping;
use self::queue::Queue;
use self::undone::Undone;
use crate::memory::{LaneMemory, records};
use crate::store::Store;

pub(crate) struct Lane<T> {
    pub id: LaneId,
    pub store: Store<T>,
    pub queue: Queue,
    pub templates: Templates,
    pub exchanges: Exchanges<T>,
    /// The iteration that it is running.
    pub running: Option<RunningIteration>,
    /// The long call that it has begun: the command, or the part of the iteration, that is next.
    pub call: Option<Box<LaneCall<T>>>,
    /// The publications that have ended during the call, whose tensors fail after it.
    pub ended: Vec<SessionId>,
    /// The nanoseconds of its longest recent turn.
    pub longest_turn: u64,
    /// The workers that the session's slots are on.
    pub slots: Vec<WorkerId>,
    pub warmth: Warmth,
    /// The device time that was not reported to the dispatcher yet, in nanoseconds.
    pub untold: u64,
    /// How the device was kept idle for it, as far as that was not reported either.
    pub anticipation: Anticipation,
    /// The bytes that it holds in memory and elsewhere, as last reported to the dispatcher.
    pub reported: (u64, u64),
    pub memory: LaneMemory,
    pub undone: Undone,
    /// The snapshot of it that is in progress.
    pub keeping: Option<Keeping>,
    /// Whether it has started, which a restored lane does after it has taken the values of its
    /// snapshot.
    pub is_restored: bool,
}

/// The number of runs of a lane's plans, by their hashes. What is forgotten depends on the counts
/// alone, which snapshots have: a restored lane compiles the same plans.
#[derive(Default)]
pub(crate) struct Warmth(FxHashMap<u64, u32>);

/// The most plans that are counted: beyond it, counts restart from 0.
const COUNTED: usize = 4096;

impl Warmth {
    pub fn of(&self, plan: u64) -> u32 {
        self.0.get(&plan).copied().unwrap_or(0)
    }

    /// Returns the counts of plans, up to `most`, beyond which they make no difference.
    pub fn counts(&self, most: u32) -> Vec<(u64, u32)> {
        let counts = self.0.iter().map(|(plan, runs)| (*plan, (*runs).min(most)));
        let mut all: Vec<(u64, u32)> = counts.filter(|(_, runs)| *runs > 0).collect();
        all.sort_unstable();
        all
    }

    /// Resumes from counts.
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

/// The next commands of a lane: the steps of a part, or those of its queue.
pub(crate) fn next_commands<'a>(
    queue: &'a mut Queue,
    running: &'a mut Option<RunningIteration>,
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
            call: None,
            ended: Vec::new(),
            longest_turn: 0,
            slots: Vec::new(),
            warmth: Warmth::default(),
            untold: 0,
            anticipation: Anticipation::default(),
            reported: (0, 0),
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

    /// Returns whether all of its commands are done.
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.running.is_none() && self.call.is_none()
    }

    /// Returns the next commands, and the index of the first that is not complete.
    pub fn next_commands(&mut self) -> Option<(&mut Vec<WorkerCommand>, &mut usize)> {
        next_commands(&mut self.queue, &mut self.running)
    }

    /// Returns whether its next command computes.
    pub fn computes_next(&mut self) -> bool {
        if let Some(running) = self.running.as_ref().filter(|running| running.steps.is_none()) {
            let part = self.templates.part(running.generation, running.part);
            let steps = part.map(|part| &running.template.steps[part.steps.clone()]);
            return !matches!(steps, Some([Step::Exchange(_)]));
        }
        let next = self.next_commands().and_then(|(commands, place)| commands.get(*place));
        matches!(next, Some(WorkerCommand::Run(_) | WorkerCommand::Invoke(_)))
    }

    /// Returns the session whose snapshot it must restore, and the snapshot's number.
    pub fn restores(&mut self) -> Option<(SessionId, u64)> {
        let (commands, place) = self.next_commands()?;
        commands[*place..].iter().find_map(|command| match command {
            WorkerCommand::Restore { session, snapshot, .. } => Some((*session, *snapshot)),
            _ => None,
        })
    }

    /// Returns the additional bytes that it may hold, in `tensors` more tensors; `None` if even the
    /// records of these exceed a quota.
    #[inline]
    pub fn room(&self, tensors: usize) -> Option<u64> {
        self.memory.room(&self.store, tensors)
    }

    /// Returns the bytes that the records of its tensors count for its quotas.
    pub fn records(&self) -> u64 {
        records(self.store.count())
    }

    /// Returns the same for `more` additional tensors.
    pub fn records_of(&self, tensors: usize) -> u64 {
        records(self.store.count() + tensors) - self.records()
    }

    /// Returns the bytes that count for its quotas: in memory, spilled, and records.
    pub fn counted(&self) -> u64 {
        self.store.bytes() + self.store.spilled() + self.records()
    }

    /// Returns the bytes that may be unspilled.
    pub fn room_back(&self) -> u64 {
        self.memory.room_back(&self.store)
    }

    /// Returns whether `bytes` in `tensors` tensors fit.
    pub fn has_room(&self, bytes: u64, tensors: usize) -> bool {
        self.room(tensors).is_some_and(|room| bytes <= room)
    }

    /// Returns the worker that hosts a slot of the session.
    pub fn host(&self, slot: SlotId) -> Option<WorkerId> {
        self.slots.get(slot.0 as usize).copied()
    }
}
