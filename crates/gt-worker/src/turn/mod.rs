//! A lane's turn on the device: runs queued commands.
//!
//! - [`hot`]: iterations, part by part; [`calls`]: long calls, in slices of time.
//! - [`room`]: what the next command waits for: tensors that are not there, and memory.
//! - [`snapshot`]: taking a snapshot of the lane, and restoring it.

mod calls;
mod hot;
mod room;
mod snapshot;

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::WorkerCommand;
use gt_ir::message::WorkerToServer;
use gt_ir::statistics::WorkerStats;

use crate::collective::Collectives;
use crate::device::Device;
use crate::device::measure::Measure;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::lane::call::PauseState;
use crate::lost_workers::LostWorkers;
use crate::memory::dying;
use crate::memory::{self, Need};
use crate::snapshot_store::SnapshotStore;
use crate::work::{FileJob, Out};

/// The time after which a turn ends if no other lane is ready: one may become ready.
const LONG: Duration = Duration::from_millis(10);

/// A lane's turns of this length, in nanoseconds, end before they would hold back a message.
const HOLDS_BACK: u64 = 50_000;

/// A lane's turn.
pub(crate) struct Turn<'a, E: Engine> {
    pub device: &'a mut Device<E>,
    pub lane: &'a mut Lane<E::Tensor>,
    pub collectives: &'a mut Collectives<E::Tensor>,
    pub lost: &'a LostWorkers,
    pub snapshots: &'a mut SnapshotStore,
    pub out: &'a mut Vec<Out>,
    /// The work done in this turn, by an estimate.
    pub spent: u64,
    pub measure: Measure,
    /// The device time that was reported to the dispatcher, in nanoseconds.
    pub told: u64,
    /// The number of messages so far for none of which others wait.
    pub sent: usize,
    /// How long to wait for a compiler.
    pub patience: Duration,
    /// Whether the lane waits for a compiler.
    pub compiles: bool,
    /// Whether the lane waits for a pending or spilled tensor.
    pub is_pending: bool,
    /// The memory that the next command needs, if it does not fit.
    pub short: Option<Need>,
}

impl<E: Engine> Turn<'_, E> {
    /// Returns whether it has taken so long that the worker must check its messages.
    pub fn is_long(&self) -> bool {
        let taken = match self.measure {
            Measure::Device(begin) => self.device.engine.now().saturating_sub(begin),
            _ => Duration::from_nanos(self.cost()),
        };
        taken > LONG
    }

    /// Returns whether others wait for a message of this turn, a piece or a value, that would be sent
    /// only after what the lane computes next, and the lane's turns are long.
    pub fn is_awaited(&mut self) -> bool {
        if self.lane.longest_turn < HOLDS_BACK {
            return false;
        }
        let messages = &self.out[self.sent..];
        let is_awaited = |out: &Out| {
            use WorkerToServer::{CollectiveReady, Value};
            matches!(out, Out::Worker(..) | Out::Server(Value { .. } | CollectiveReady { .. }))
        };
        if !messages.iter().any(is_awaited) {
            self.sent = self.out.len();
            return false;
        }
        self.lane.computes_next() && !self.waits_next()
    }

    /// Returns whether what the lane computes next reads a pending tensor.
    fn waits_next(&mut self) -> bool {
        if !self.lane.store.has_absent() {
            return false;
        }
        let Lane { running, templates, .. } = &*self.lane;
        match running.as_ref().filter(|running| running.steps.is_none()) {
            Some(running) => {
                let part = templates.part(running.generation, running.part);
                part.is_some_and(|part| self.absent(part, &running.bound).0)
            }
            None => self.is_pending(),
        }
    }

    /// Returns the measure of a turn that began with `began`: the lane's call, if one computes, is
    /// charged for the time between turns, too.
    pub fn since_charged(&self, began: Measure) -> Measure {
        match (began, &self.lane.call) {
            (Measure::Clock(_), Some(call)) if call.state != PauseState::Paused => {
                Measure::Clock(call.charged)
            }
            _ => began,
        }
    }

    /// Ends the turn; returns its nanoseconds.
    pub fn end(self) -> u64 {
        let cost = self.cost();
        self.lane.untold += cost.saturating_sub(self.told);
        let longest = self.lane.longest_turn;
        self.lane.longest_turn = cost.max(longest - longest / 16);
        cost
    }

    /// Returns its nanoseconds so far; 0 if the device reports them later.
    fn cost(&self) -> u64 {
        self.device.cost(self.measure, self.spent)
    }

    /// Makes one step; returns false if there is no work, or the lane waits for an exchange, for
    /// memory or for a compiler.
    pub fn next(&mut self) -> bool {
        if self.lane.call.is_some() {
            return self.resume_call();
        }
        if self.lane.running.as_ref().is_some_and(|running| running.steps.is_none()) {
            return self.run_part();
        }
        if self.lane.running.is_none() {
            let Some(batch) = self.lane.queue.front() else { return false };
            let (place, count) = (batch.next, batch.commands.len());
            if place == count {
                self.finish_batch();
                return true;
            }
            if batch.is_skipped(place) {
                batch.next += 1;
                if let WorkerCommand::Invoke(_) = batch.commands[place] {
                    let iteration = batch.iterations.pop_front();
                    self.skip(iteration);
                }
                self.lane.memory.end_grant(&mut self.device.held);
                self.lane.memory.failure_if_short = None;
                return true;
            }
        }
        let is_absent = self.lane.store.has_absent();
        self.is_pending = is_absent && self.is_pending();
        if self.is_pending || self.waits_for_snapshot() {
            return false;
        }
        if self.lane.memory.failure_if_short.is_none() && self.is_short() {
            return false;
        }
        if is_absent && self.brings_back() {
            return false;
        }
        // The commands are taken out of the lane while one is run, to borrow it mutably.
        let Some((commands, place)) = self.lane.next_commands() else { return false };
        let (place, commands) = (*place, std::mem::take(commands));
        let done = self.run(&commands, place);
        self.lane.memory.failure_if_short = None;
        self.lane.memory.end_grant(&mut self.device.held);
        // An invocation has started another iteration since.
        if self.lane.running.as_ref().is_some_and(|running| running.steps.is_some()) {
            self.end_steps(commands, place + done);
        } else if let Some(batch) = self.lane.queue.front() {
            batch.commands = commands;
            batch.next = place + done;
        }
        !self.compiles
    }

    /// Runs the command at `place`, or a batch that begins there; returns how many commands.
    fn run(&mut self, commands: &[WorkerCommand], place: usize) -> usize {
        let command = &commands[place];
        let is_batch = self.device.options.batch_size > 1
            && !self.lane.store.has_absent()
            && self.lane.memory.failure_if_short.is_none()
            && self.lane.running.is_none()
            && self.batch_fits(&commands[place..]);
        // A batch emits its own event.
        let is_begun =
            self.lane.keeping.is_some() || is_batch && matches!(command, WorkerCommand::Run(_));
        if self.device.events.is_on() && !is_begun {
            self.device.emit_command(command);
        }
        match command {
            WorkerCommand::Run(_) if is_batch => {
                let skipped: Vec<usize> = match self.lane.queue.front() {
                    Some(batch) => {
                        (place..commands.len()).filter(|at| batch.is_skipped(*at)).collect()
                    }
                    None => Vec::new(),
                };
                let is_skipped = |at: usize| skipped.contains(&(place + at));
                // A batch that runs as one program is a whole turn if another lane waits.
                self.spent = self.spent.max(self.device.turn_work()) + 1;
                let (lane, patience) = (&mut *self.lane, self.patience);
                let done = self.device.run_batch(lane, &commands[place..], is_skipped, patience);
                self.compiles = done == 0;
                return done;
            }
            WorkerCommand::Run(instruction) => {
                let dying = dying(&commands[place + 1..]);
                self.spent += self.device.run(self.lane, instruction, dying);
            }
            WorkerCommand::Free(id) => self.device.free(self.lane, *id),
            WorkerCommand::Create(create) => self.create(create),
            WorkerCommand::Fetch { request, tensor, .. } => {
                let result = self.device.fetch(self.lane, *tensor);
                if self.device.events.is_on() {
                    self.device.events.fetches(&result);
                }
                let value = WorkerToServer::Value { request: *request, result };
                self.out.push(Out::Server(value));
            }
            WorkerCommand::Save(part) => {
                let out = match self.device.values_to_save(self.lane, part) {
                    Ok(values) => Out::Files(FileJob::Write { part: part.clone(), values }),
                    Err(failure) => {
                        let (request, result) = (part.request, Err(failure));
                        Out::Server(WorkerToServer::Saved { request, result })
                    }
                };
                self.out.push(out);
            }
            WorkerCommand::Statistics { request } => {
                let compilations = self.device.engine.compilations();
                let failed = self.lane.failures();
                let statistics = WorkerStats { compilations, failed, ..self.device.stats() };
                let (request, statistics) = (*request, Box::new(statistics));
                self.out.push(Out::Server(WorkerToServer::Statistics { request, statistics }));
            }
            WorkerCommand::Exchange(exchange) => self.exchange(exchange),
            WorkerCommand::Slots(workers) => self.lane.slots.clone_from(workers),
            WorkerCommand::Define(definition) => {
                self.device.stats.unique_sequences += 1;
                self.lane.templates.retire(definition.number);
            }
            WorkerCommand::Snapshot(snapshot) => {
                return usize::from(self.take_snapshot(snapshot));
            }
            WorkerCommand::Restore { session, snapshot, .. } => self.restore(*session, *snapshot),
            WorkerCommand::Invoke(_) => {
                let iterations = self.lane.queue.front().map(|batch| &mut batch.iterations);
                let iteration = iterations.and_then(VecDeque::pop_front);
                self.begin(iteration);
            }
        }
        1
    }

    /// Returns whether all results of a batch fit in memory.
    fn batch_fits(&self, commands: &[WorkerCommand]) -> bool {
        let made = commands.iter().filter_map(|command| match command {
            WorkerCommand::Run(instruction) => Some(&instruction.results),
            _ => None,
        });
        let made = made.take(self.device.options.batch_size);
        let (bytes, tensors) = made.fold((0, 0), |(bytes, tensors), results| {
            (bytes + memory::bytes_of(results), tensors + results.len())
        });
        self.lane.has_room(bytes, tensors)
    }

    fn exchange(&mut self, exchange: &gt_ir::Exchange) {
        match &exchange.engine_collective {
            Some(engine_collective) => {
                let collectives = (&mut *self.collectives, self.lost);
                self.device.begin_engine_collective(
                    self.lane,
                    collectives,
                    exchange,
                    engine_collective,
                    self.out,
                );
            }
            None => self.device.begin_exchange(self.lane, self.lost, exchange, self.out),
        }
    }

    fn finish_batch(&mut self) {
        let weight = self.lane.queue.pop();
        let skipped = std::mem::take(&mut self.lane.queue.skipped);
        self.device.stats.operations_skipped += skipped;
        let cost = self.cost();
        let usage = self.lane.usage(cost.saturating_sub(self.told));
        self.told = cost;
        let lane = self.lane.id;
        self.out.push(Out::Server(WorkerToServer::LaneDone { lane, weight, usage }));
        if let Some(failure) = self.lane.undone.untold.take() {
            let failure = Box::new((*failure).clone());
            self.out.push(Out::Server(WorkerToServer::StepUndone { lane, failure }));
        }
    }
}
