//! A driver that records what its session sends and receives.

use std::sync::{Arc, Weak};

use gt_client::driver::{Batches, Driver, HeldLister, Interrupt, Outbox};
use gt_client::{ClientError, Result};
use gt_ir::message::Answer;
use gt_ir::status::inspection::HeldTensors;
use gt_ir::{ClientCommand, Content, RequestId, SessionId, StreamNumbers, TensorData, TensorId};

use crate::event::SessionEvent;
use crate::forks::ProcessGeneration;
use crate::outcome::{Outcome, RecordedValue};
use crate::substitute::CommandSubstitution;
use crate::writer::RecordingWriter;

/// Passes all calls to another driver, and records them.
pub struct RecordingDriver {
    inner: Arc<dyn Driver>,
    writer: RecordingWriter,
    substitution: CommandSubstitution,
    /// The process that opened the session. A fork of it has no writing thread, and records nothing.
    process: ProcessGeneration,
}

impl RecordingDriver {
    pub fn new(
        inner: Arc<dyn Driver>,
        writer: RecordingWriter,
        substitution: CommandSubstitution,
    ) -> RecordingDriver {
        RecordingDriver { inner, writer, substitution, process: ProcessGeneration::watch() }
    }

    /// Returns the writer, unless this is a fork.
    #[inline]
    fn writer(&self) -> Option<&RecordingWriter> {
        self.process.is_this().then_some(&self.writer)
    }

    fn record(&self, batch: &[ClientCommand], work: u64, to_read: bool) {
        if let Some(writer) = self.writer().filter(|_| !batch.is_empty()) {
            writer.append(|to| to.batch(batch, work, to_read, self.substitution));
        }
    }

    fn finish(&self) {
        if let Some(writer) = self.writer() {
            writer.finish();
        }
    }
}

impl Driver for RecordingDriver {
    fn attach(&self, outbox: Weak<dyn Outbox>) {
        self.inner.attach(outbox);
    }

    fn batches(&self) -> Batches {
        self.inner.batches()
    }

    fn nudge(&self) {
        self.inner.nudge();
    }

    fn submit(&self, batch: &mut Vec<ClientCommand>, work: u64) {
        self.record(batch, work, false);
        self.inner.submit(batch, work);
    }

    fn submit_to_read(&self, batch: &mut Vec<ClientCommand>, work: u64) {
        self.record(batch, work, true);
        self.inner.submit_to_read(batch, work);
    }

    fn read(&self, tensor: TensorId) -> Option<TensorData> {
        let data = self.inner.read(tensor)?;
        if let Some(writer) = self.writer() {
            let outcome = match self.substitution.is_anonymous {
                true => Outcome::Unrecorded,
                false => Outcome::Value(RecordedValue::of(&data)),
            };
            writer.append(|to| to.event(&SessionEvent::Read { tensor, outcome }));
        }
        Some(data)
    }

    fn can_read(&self) -> bool {
        self.inner.can_read()
    }

    fn is_full(&self) -> bool {
        self.inner.is_full()
    }

    fn wait_for_room(&self, interrupt: Interrupt) -> Result<()> {
        self.inner.wait_for_room(interrupt)
    }

    fn wait(&self, request: RequestId, interrupt: Interrupt) -> Result<Answer> {
        let answer = self.inner.wait(request, interrupt)?;
        if let Some(outcome) = Outcome::of(&answer)
            && let Some(writer) = self.writer()
        {
            let outcome =
                if self.substitution.is_anonymous { Outcome::Unrecorded } else { outcome };
            writer.append(|to| to.event(&SessionEvent::Answered { request, outcome }));
        }
        Ok(answer)
    }

    fn abandon(&self, request: RequestId) {
        self.inner.abandon(request);
    }

    fn close(&self) {
        self.inner.close();
        self.finish();
    }

    fn settle(&self, interrupt: Interrupt) -> std::result::Result<(), ClientError> {
        self.inner.settle(interrupt)
    }

    fn end(&self) {
        self.inner.end();
        self.finish();
    }

    fn list_held_by(&self, lister: HeldLister) {
        self.inner.list_held_by(lister);
    }

    fn answer_held(&self, held: HeldTensors) {
        self.inner.answer_held(held);
    }

    fn records_published(&self) -> bool {
        !self.substitution.is_anonymous && self.process.is_this()
    }

    fn record_published(&self, publication: SessionId, index: TensorId, values: TensorData) {
        if let Some(writer) = self.writer() {
            let values = Content::Data(values);
            writer.append(|to| to.event(&SessionEvent::Published { publication, index, values }));
        }
    }

    fn numbers(&self) -> StreamNumbers {
        self.inner.numbers()
    }

    fn data_roots(&self) -> Option<Vec<String>> {
        self.inner.data_roots()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}

impl Drop for RecordingDriver {
    fn drop(&mut self) {
        self.finish();
    }
}
