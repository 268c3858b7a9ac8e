//! Runs the stream of a recording.

use std::time::Instant;

use gt_client::driver::Driver;
use gt_ir::{ClientCommand, Meta, RequestId, Rescale, SourceId, TensorId};
use rustc_hash::FxHashMap;

use super::commands::submitted;
use super::compare::{Agreement, Received, Tolerances, compare};
use super::expansion::StreamExpansion;
use super::report::{DifferingValue, LastInstruction, ReplayReport};
use crate::error::RecordingError;
use crate::event::SessionEvent;
use crate::numbering::InstructionCounter;
use crate::outcome::Outcome;
use crate::reading::Recording;

/// The first of the requests that the program did not make.
const OWN_REQUESTS: u64 = 1 << 48;

/// The most differing values that a report has.
const MOST_DIFFERENCES: usize = 100;

/// How a recording is replayed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplayOptions {
    /// The number of the last instruction; `None` for all of them.
    pub until: Option<u64>,
    pub tolerances: Tolerances,
    /// The session's number of slots, if it is not the number of workers.
    pub slots: Option<u32>,
    /// Whether the replay ends at the first value that differs.
    pub stops_at_difference: bool,
}

/// Replays a recording, and compares the values that the program received.
///
/// # Errors
/// The recording is not valid, the session has ended, or `interrupt` ended a wait.
pub fn replay(
    recording: &Recording,
    driver: &dyn Driver,
    options: &ReplayOptions,
    interrupt: &mut dyn FnMut() -> bool,
) -> Result<ReplayReport, RecordingError> {
    let mut run = StreamRun {
        recording,
        driver,
        options,
        interrupt,
        counter: InstructionCounter::default(),
        expansion: options.until.map(|_| StreamExpansion::default()),
        metas: FxHashMap::default(),
        fetched: FxHashMap::default(),
        next_request: OWN_REQUESTS,
        report: ReplayReport::default(),
    };
    let begun = Instant::now();
    if options.slots.is_some() {
        let rescale = Rescale { slots: options.slots, elastic: None };
        driver.submit(&mut vec![ClientCommand::Rescale(rescale)], 0);
    }
    for event in recording.events() {
        let is_over = run.event(event?)?;
        if is_over || options.stops_at_difference && !run.report.differences.is_empty() {
            break;
        }
    }
    run.synchronize()?;
    run.report.instructions = run.counter.total();
    run.report.took = begun.elapsed();
    Ok(run.report)
}

struct StreamRun<'a> {
    recording: &'a Recording,
    driver: &'a dyn Driver,
    options: &'a ReplayOptions,
    interrupt: &'a mut dyn FnMut() -> bool,
    counter: InstructionCounter,
    /// Present if the last instruction may be within an iteration.
    expansion: Option<StreamExpansion>,
    /// Shapes and dtypes of the live tensors, if there is a last instruction.
    metas: FxHashMap<TensorId, Meta>,
    /// The tensor and the line of each request that was submitted and not answered.
    fetched: FxHashMap<RequestId, (TensorId, SourceId)>,
    next_request: u64,
    report: ReplayReport,
}

impl StreamRun<'_> {
    /// Runs an event; returns whether it has the last instruction.
    fn event(&mut self, event: SessionEvent) -> Result<bool, RecordingError> {
        match event {
            SessionEvent::Batch { to_read, work, commands } => {
                return self.batch(commands, work, to_read);
            }
            SessionEvent::Answered { request, outcome } => {
                let Some((tensor, line)) = self.fetched.remove(&request) else { return Ok(false) };
                let answer = self.driver.wait(request, self.interrupt)?;
                if let Some(received) = Received::of(answer) {
                    self.compare(tensor, line, outcome, received);
                }
            }
            SessionEvent::Read { tensor, outcome } => {
                let received = match self.driver.read(tensor) {
                    Some(data) => Some(Received::Value(data)),
                    None => self.fetch(tensor)?,
                };
                if let Some(received) = received {
                    self.compare(tensor, SourceId::default(), outcome, received);
                }
            }
            SessionEvent::Published { .. } => {}
        }
        Ok(false)
    }

    fn batch(
        &mut self,
        commands: Vec<ClientCommand>,
        work: u64,
        to_read: bool,
    ) -> Result<bool, RecordingError> {
        let before = self.counter.total();
        commands.iter().for_each(|command| self.counter.count(command));
        let (until, total) = (self.options.until, self.counter.total());
        if let Some(until) = until.filter(|until| total >= *until) {
            return self.last_batch(commands, until - before).map(|()| true);
        }
        for command in &self.expand(&commands)? {
            self.note(command);
        }
        self.submit(commands, work, to_read)?;
        Ok(false)
    }

    /// Runs the first `count` instructions of a batch, and fetches the result of the last.
    fn last_batch(
        &mut self,
        commands: Vec<ClientCommand>,
        count: u64,
    ) -> Result<(), RecordingError> {
        let (mut left, mut first, mut last) = (count, Vec::new(), None);
        for command in self.expand(&commands)? {
            self.note(&command);
            if let ClientCommand::Run(instruction) = &command {
                left -= 1;
                last = Some(instruction.clone());
            }
            first.push(command);
            if left == 0 {
                break;
            }
        }
        self.counter = InstructionCounter::at(self.options.until.unwrap_or_default());
        self.submit(first, 0, false)?;
        if let Some(instruction) = last {
            let value = self.fetch(instruction.output)?;
            let operands = instruction
                .reads()
                .filter_map(|tensor| self.metas.get(&tensor).map(|meta| (tensor, *meta)));
            let operands = operands.collect();
            self.report.last = value.map(|value| LastInstruction { instruction, operands, value });
        }
        Ok(())
    }

    /// Returns the plain commands of a batch, if there is a last instruction, and else none.
    fn expand(&mut self, commands: &[ClientCommand]) -> Result<Vec<ClientCommand>, RecordingError> {
        let mut plain = Vec::new();
        if let Some(expansion) = &mut self.expansion {
            for command in commands {
                let expanded = expansion.expand(command, &mut plain);
                expanded.map_err(|error| self.recording.broken(&error))?;
            }
        }
        Ok(plain)
    }

    /// Updates the tensors that are alive.
    fn note(&mut self, command: &ClientCommand) {
        match command {
            ClientCommand::Run(instruction) => self.metas.extend(instruction.outputs()),
            ClientCommand::Create(create) => {
                self.metas.insert(create.output, create.content.meta());
            }
            ClientCommand::Free(tensor) => {
                self.metas.remove(tensor);
            }
            _ => {}
        }
    }

    /// Submits commands once there is room for them.
    fn submit(
        &mut self,
        commands: Vec<ClientCommand>,
        work: u64,
        to_read: bool,
    ) -> Result<(), RecordingError> {
        let mut batch = Vec::with_capacity(commands.len());
        for command in commands {
            let Some(command) = submitted(self.recording, command) else { continue };
            if let ClientCommand::Fetch { request, tensor, line } = &command {
                self.fetched.insert(*request, (*tensor, *line));
            }
            batch.push(command);
        }
        if batch.is_empty() {
            return Ok(());
        }
        if self.driver.is_full() {
            self.driver.wait_for_room(self.interrupt)?;
        }
        match to_read {
            true => self.driver.submit_to_read(&mut batch, work),
            false => self.driver.submit(&mut batch, work),
        }
        Ok(())
    }

    /// Requests a tensor's value, and waits for it.
    fn fetch(&mut self, tensor: TensorId) -> Result<Option<Received>, RecordingError> {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        let line = SourceId::default();
        self.driver.submit(&mut vec![ClientCommand::Fetch { request, tensor, line }], 0);
        Ok(Received::of(self.driver.wait(request, self.interrupt)?))
    }

    /// Waits until all instructions have run.
    fn synchronize(&mut self) -> Result<(), RecordingError> {
        let request = RequestId(self.next_request);
        self.driver.submit(&mut vec![ClientCommand::Statistics { request }], 0);
        self.driver.wait(request, self.interrupt)?;
        Ok(())
    }

    fn compare(&mut self, tensor: TensorId, line: SourceId, recorded: Outcome, received: Received) {
        let report = &mut self.report;
        match compare(&recorded, &received, &self.options.tolerances) {
            Agreement::Equal => report.equal += 1,
            Agreement::Close => report.close += 1,
            Agreement::Unrecorded => report.unrecorded += 1,
            Agreement::Different => {
                report.different += 1;
                if report.differences.len() < MOST_DIFFERENCES {
                    let at = self.counter.total();
                    let found = DifferingValue { at, tensor, line, recorded, received };
                    report.differences.push(found);
                }
            }
        }
    }
}
