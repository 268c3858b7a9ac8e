//! A run of the stream on both drivers, with comparisons.

use std::sync::Arc;

use gt_client::ClientError;
use gt_client::driver::Driver;
use gt_ir::ops::commit::is_commit;
use gt_ir::{ClientCommand, Instruction, Meta, RequestId, Rescale, SourceId, TensorId};
use rustc_hash::FxHashMap;

use super::{DifferingInstruction, FoundDifference};
use crate::error::RecordingError;
use crate::event::SessionEvent;
use crate::reading::Recording;
use crate::replay::commands::submitted;
use crate::replay::compare::Received;
use crate::replay::expansion::StreamExpansion;
use crate::replay::run::ReplayOptions;

/// The first of the requests that a search makes.
const OWN_REQUESTS: u64 = 1 << 48;

/// How many instructions are in flight while their results are compared.
const GROUP: usize = 32;

/// A tensor that is alive, and the instruction that made it; `None` for data.
struct LiveTensor {
    meta: Meta,
    made_by: Option<u64>,
}

/// A run of the stream on both drivers.
pub(super) struct Pass<'a> {
    recording: &'a Recording,
    pub(super) drivers: &'a [Arc<dyn Driver>; 2],
    pub(super) options: &'a ReplayOptions,
    pub(super) interrupt: &'a mut dyn FnMut() -> bool,
    expansion: StreamExpansion,
    live: FxHashMap<TensorId, LiveTensor>,
    /// The tensor of each request of the program.
    fetched: FxHashMap<RequestId, TensorId>,
    pub(super) next_request: u64,
    /// The next name of a tensor that the stream does not have.
    pub(super) next_tensor: u64,
    /// The number of instructions so far, and up to where all results are known to be equal.
    pub(super) number: u64,
    equal_up_to: u64,
    /// Results are compared one by one from this instruction on.
    begins: u64,
    interval: u64,
    /// Instructions whose results were requested, and not compared yet.
    pending: Vec<PendingResult>,
}

struct PendingResult {
    number: u64,
    instruction: Instruction,
    tensor: TensorId,
    request: RequestId,
    operands: FxHashMap<TensorId, Meta>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        drivers: &'a [Arc<dyn Driver>; 2],
        options: &'a ReplayOptions,
        interrupt: &'a mut dyn FnMut() -> bool,
        (begins, interval): (u64, u64),
    ) -> Pass<'a> {
        Pass {
            recording,
            drivers,
            options,
            interrupt,
            expansion: StreamExpansion::default(),
            live: FxHashMap::default(),
            fetched: FxHashMap::default(),
            next_request: OWN_REQUESTS,
            next_tensor: recording.after_tensors,
            number: 0,
            equal_up_to: 0,
            begins,
            interval,
            pending: Vec::new(),
        }
    }

    /// Runs events until an instruction has run, or a difference is found.
    pub(super) fn run(&mut self, until: u64) -> Result<Option<FoundDifference>, RecordingError> {
        if self.options.slots.is_some() {
            let rescale = Rescale { slots: self.options.slots, elastic: None };
            self.submit(vec![ClientCommand::Rescale(rescale)])?;
        }
        for event in self.recording.events() {
            if self.number >= until && !matches!(event, Ok(SessionEvent::Answered { .. })) {
                break;
            }
            if let Some(found) = self.event(event?)? {
                return Ok(Some(found));
            }
        }
        self.finish()
    }

    /// Runs an event on both drivers.
    fn event(&mut self, event: SessionEvent) -> Result<Option<FoundDifference>, RecordingError> {
        let commands = match event {
            SessionEvent::Batch { commands, .. } => commands,
            SessionEvent::Answered { request, .. } => {
                let Some(tensor) = self.fetched.remove(&request) else { return Ok(None) };
                return self.compare_requested(tensor, request);
            }
            SessionEvent::Read { tensor, .. } => {
                let request = self.request(tensor);
                return self.compare_requested(tensor, request);
            }
            SessionEvent::Published { .. } => return Ok(None),
        };
        let mut plain = Vec::new();
        for command in &commands {
            let expanded = self.expansion.expand(command, &mut plain);
            expanded.map_err(|error| self.recording.broken(&error))?;
        }
        if self.number >= self.begins {
            return self.one_by_one(plain);
        }
        plain.iter().for_each(|command| self.note(command));
        self.submit(commands)?;
        if self.number < self.equal_up_to + self.interval {
            return Ok(None);
        }
        self.compare_live()
    }

    /// Compares what is left.
    fn finish(&mut self) -> Result<Option<FoundDifference>, RecordingError> {
        if self.begins == u64::MAX { self.compare_live() } else { self.compare_pending() }
    }

    /// Updates the tensors that are alive.
    fn note(&mut self, command: &ClientCommand) {
        match command {
            ClientCommand::Run(instruction) => {
                self.number += 1;
                let made_by = Some(self.number);
                for (tensor, meta) in instruction.outputs() {
                    self.live.insert(tensor, LiveTensor { meta, made_by });
                }
            }
            ClientCommand::Create(create) => {
                let live = LiveTensor { meta: create.content.meta(), made_by: None };
                self.live.insert(create.output, live);
            }
            ClientCommand::Free(tensor) => {
                self.live.remove(tensor);
            }
            _ => {}
        }
    }

    /// Submits commands to both drivers.
    fn submit(&mut self, commands: Vec<ClientCommand>) -> Result<(), RecordingError> {
        let mut batch = Vec::with_capacity(commands.len());
        for command in commands {
            let Some(command) = submitted(self.recording, command) else { continue };
            if let ClientCommand::Fetch { request, tensor, .. } = &command {
                self.fetched.insert(*request, *tensor);
            }
            batch.push(command);
        }
        for driver in self.drivers {
            if driver.is_full() {
                driver.wait_for_room(self.interrupt)?;
            }
            if !batch.is_empty() {
                driver.submit(&mut batch.clone(), 0);
            }
        }
        Ok(())
    }

    /// Requests a tensor's value from both drivers.
    fn request(&mut self, tensor: TensorId) -> RequestId {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        for driver in self.drivers {
            let fetch = ClientCommand::Fetch { request, tensor, line: SourceId::default() };
            driver.submit(&mut vec![fetch], 0);
        }
        request
    }

    /// Waits for both answers to a request for a value.
    pub(super) fn both(
        &mut self,
        request: RequestId,
    ) -> Result<(Received, Received), RecordingError> {
        let mut received = Vec::with_capacity(2);
        for driver in self.drivers {
            received.extend(Received::of(driver.wait(request, self.interrupt)?));
        }
        match (received.pop(), received.pop()) {
            (Some(asked), Some(reference)) => Ok((reference, asked)),
            _ => Err(ClientError::Connection("an answer has no value".into()).into()),
        }
    }

    /// Waits for both answers; returns them if they differ.
    fn differs(
        &mut self,
        request: RequestId,
    ) -> Result<Option<(Received, Received)>, RecordingError> {
        let (reference, asked) = self.both(request)?;
        let agrees = reference.agrees(&asked, &self.options.tolerances);
        Ok((!agrees).then_some((reference, asked)))
    }

    /// Compares a value that the program requested.
    fn compare_requested(
        &mut self,
        tensor: TensorId,
        request: RequestId,
    ) -> Result<Option<FoundDifference>, RecordingError> {
        if let Some(found) = self.compare_pending()? {
            return Ok(Some(found));
        }
        let is_different = self.differs(request)?.is_some();
        let made_by = self.live.get(&tensor).and_then(|live| live.made_by);
        let last = made_by.unwrap_or(self.number);
        let first = self.equal_up_to;
        Ok((is_different && self.begins == u64::MAX)
            .then_some(FoundDifference::Interval { first, last }))
    }

    /// Compares the tensors that are alive and were made since the last call.
    fn compare_live(&mut self) -> Result<Option<FoundDifference>, RecordingError> {
        let since = self.equal_up_to;
        let is_new = |live: &LiveTensor| live.made_by.is_some_and(|number| number > since);
        let mut tensors: Vec<TensorId> =
            self.live.iter().filter(|(_, live)| is_new(live)).map(|(tensor, _)| *tensor).collect();
        tensors.sort_unstable();
        let mut is_different = false;
        for group in tensors.chunks(GROUP) {
            let requests: Vec<RequestId> =
                group.iter().map(|tensor| self.request(*tensor)).collect();
            for request in requests {
                is_different |= self.differs(request)?.is_some();
            }
        }
        if is_different {
            return Ok(Some(FoundDifference::Interval { first: since, last: self.number }));
        }
        self.equal_up_to = self.number;
        Ok(None)
    }

    /// Runs plain commands, and compares the result of each instruction.
    fn one_by_one(
        &mut self,
        plain: Vec<ClientCommand>,
    ) -> Result<Option<FoundDifference>, RecordingError> {
        for command in plain {
            self.note(&command);
            let ClientCommand::Run(instruction) = command else {
                self.submit(vec![command])?;
                continue;
            };
            if !self.options.tolerances.is_exact && !is_commit(instruction.operation) {
                if let Some(found) = self.aligned(&instruction)? {
                    return Ok(Some(found));
                }
                continue;
            }
            self.submit(vec![ClientCommand::Run(instruction.clone())])?;
            let operands = self.metas_of(&instruction);
            for (tensor, _) in instruction.outputs() {
                let request = self.request(tensor);
                let (number, operands) = (self.number, operands.clone());
                let instruction = instruction.clone();
                let result = PendingResult { number, instruction, tensor, request, operands };
                self.pending.push(result);
            }
            if self.pending.len() >= GROUP
                && let Some(found) = self.compare_pending()?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Returns shapes and dtypes of the operands of an instruction.
    pub(super) fn metas_of(&self, instruction: &Instruction) -> FxHashMap<TensorId, Meta> {
        let meta = |tensor: TensorId| Some((tensor, self.live.get(&tensor)?.meta));
        instruction.reads().filter_map(meta).collect()
    }

    fn compare_pending(&mut self) -> Result<Option<FoundDifference>, RecordingError> {
        for pending in std::mem::take(&mut self.pending) {
            let PendingResult { number, instruction, tensor, request, operands } = pending;
            if let Some((reference, asked)) = self.differs(request)? {
                let found = DifferingInstruction {
                    number,
                    instruction,
                    operands,
                    tensor,
                    reference,
                    asked,
                };
                return Ok(Some(FoundDifference::Instruction(Box::new(found))));
            }
        }
        Ok(None)
    }
}
