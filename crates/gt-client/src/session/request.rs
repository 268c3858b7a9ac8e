//! Requests to the dispatcher, and waiting for their answers.

use std::sync::atomic::{AtomicBool, Ordering};

use gt_ir::explain::{Explanation, PlacedTensor};
use gt_ir::message::{Answer, Failure, Reply};
use gt_ir::statistics::WorkerStats;
use gt_ir::status::Status;
use gt_ir::{ClientCommand, Content, RequestId, SourceId, TensorData};

use super::{BlockElement, Session, StreamValue};
use crate::context::invalidate_recording;
use crate::driver::Interrupt;
use crate::error::{ClientError, Result};
use crate::source;

/// The bytes of the largest value that is read at once: a larger one takes longer than a request.
const READ_AT_ONCE: usize = 16 << 10;

/// A request whose answer is taken once. If it is dropped before that, its answer is dropped, too.
pub(crate) struct PendingAnswer {
    session: Session,
    request: RequestId,
    is_taken: AtomicBool,
    /// Whether dropping it cancels the work for the request.
    is_question: bool,
}

impl PendingAnswer {
    pub fn new(session: &Session, request: RequestId, is_question: bool) -> PendingAnswer {
        PendingAnswer {
            session: session.clone(),
            request,
            is_taken: AtomicBool::new(false),
            is_question,
        }
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// The connection was lost, `interrupt` ended the wait, or the answer was taken by an
    /// earlier wait.
    pub fn wait(&self, interrupt: Interrupt) -> Result<Answer> {
        if self.is_taken.swap(true, Ordering::Relaxed) {
            return Err(ClientError::usage(
                "the answer was taken by an earlier wait, or that wait was interrupted\n  hint: request it again",
            ));
        }
        self.session.0.wait(self.request, interrupt)
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if !*self.is_taken.get_mut() {
            self.session.0.drop_request(self.request, self.is_question);
        }
    }
}

/// A value that has been requested.
pub struct Asked {
    pending: PendingAnswer,
    source: SourceId,
    /// The requested element, if its block was requested.
    element: Option<BlockElement>,
}

impl Asked {
    /// Waits for the value, which can be taken once.
    ///
    /// # Errors
    /// The operation that made it failed, the connection was lost, `interrupt` ended the wait, or
    /// the value was taken by an earlier wait.
    pub fn wait(&self, interrupt: Interrupt) -> Result<TensorData> {
        match self.pending.wait(interrupt)?.result {
            Ok(Reply::Value(Content::Data(data))) => Ok(match &self.element {
                Some(element) => element.keep(data),
                None => data,
            }),
            other => Err(error_in(other, self.source)),
        }
    }
}

/// A status that has been requested.
pub struct AskedStatus(PendingAnswer);

impl AskedStatus {
    /// Waits for the status.
    ///
    /// # Errors
    /// The connection was lost, or `interrupt` ended the wait.
    pub fn wait(self, interrupt: Interrupt) -> Result<Status> {
        match self.0.wait(interrupt)?.result {
            Ok(Reply::Status(status)) => Ok(*status),
            other => Err(error_in(other, SourceId::default())),
        }
    }
}

impl Session {
    /// Requests a tensor's value; for an element, the value of its block.
    pub(crate) fn ask(&self, value: &StreamValue) -> Result<Asked> {
        let line = source::current();
        let element = value.element.get().cloned();
        let block = element.as_ref().map(|element| element.block().value(line)).transpose()?;
        let tensor = block.as_deref().unwrap_or(value).id();
        let fetch = |request| ClientCommand::Fetch { request, tensor, line };
        let request = self.request(fetch)?;
        Ok(Asked {
            pending: PendingAnswer::new(self, request, true),
            source: value.source,
            element,
        })
    }

    /// Returns a tensor's value, if it is available without a request.
    pub(crate) fn read(&self, value: &StreamValue) -> Option<TensorData> {
        let is_direct = value.element.get().is_none() && !value.is_committed();
        if value.meta.bytes() > READ_AT_ONCE || !is_direct {
            return None;
        }
        invalidate_recording();
        self.0.read(value.id())
    }

    /// Returns the statistics of all workers.
    pub fn worker_stats(&self, interrupt: Interrupt) -> Result<Vec<WorkerStats>> {
        let request = self.request(|request| ClientCommand::Statistics { request })?;
        match self.0.wait(request, interrupt)?.result {
            Ok(Reply::Statistics(workers)) => Ok(workers),
            other => Err(error_in(other, SourceId::default())),
        }
    }

    /// Returns the state of the dispatcher, its workers and its sessions.
    ///
    /// # Errors
    /// The connection was lost, or `interrupt` ended the wait.
    pub fn status(&self, interrupt: Interrupt) -> Result<Status> {
        self.ask_status()?.wait(interrupt)
    }

    /// Requests the status, to wait for it later.
    ///
    /// # Errors
    /// The session is closed.
    pub fn ask_status(&self) -> Result<AskedStatus> {
        let request = self.request(|request| ClientCommand::Status { request })?;
        Ok(AskedStatus(PendingAnswer::new(self, request, true)))
    }

    /// Starts recording the dispatcher's plans.
    ///
    /// # Errors
    /// The connection was lost, or `interrupt` ended the wait.
    pub fn begin_explaining(&self, interrupt: Interrupt) -> Result<()> {
        self.explain(true, interrupt).map(|_| ())
    }

    /// Returns the plans since [`Session::begin_explaining`].
    pub fn end_explaining(&self, interrupt: Interrupt) -> Result<Explanation> {
        self.explain(false, interrupt)
    }

    fn explain(&self, begin: bool, interrupt: Interrupt) -> Result<Explanation> {
        let request = self.request(|request| ClientCommand::Explain { request, begin })?;
        match self.0.wait(request, interrupt)?.result {
            Ok(Reply::Explained(explanation)) => Ok(explanation),
            other => Err(error_in(other, SourceId::default())),
        }
    }

    /// Returns the layouts of a tensor, each with its workers.
    pub(crate) fn locate(
        &self,
        value: &StreamValue,
        interrupt: Interrupt,
    ) -> Result<Vec<PlacedTensor>> {
        let tensor = value.id();
        let request = self.request(|request| ClientCommand::Locate { request, tensor })?;
        match self.0.wait(request, interrupt)?.result {
            Ok(Reply::Located(copies)) => Ok(copies),
            other => Err(error_in(other, value.source)),
        }
    }

    /// Submits a request, after all earlier commands.
    pub(crate) fn request(
        &self,
        command: impl FnOnce(RequestId) -> ClientCommand,
    ) -> Result<RequestId> {
        invalidate_recording();
        let mut stream = self.0.lock();
        if stream.closed {
            return Err(stream.closed_error());
        }
        let request = stream.new_request();
        stream.push(command(request), 0, 0);
        self.0.submit(&mut stream);
        Ok(request)
    }
}

/// Returns the error that an answer carries; a reply of another kind is a broken connection. `line`
/// is the requested tensor's, for failures without a line.
pub(crate) fn error_in(result: std::result::Result<Reply, Failure>, line: SourceId) -> ClientError {
    match result {
        Err(failure) => {
            let location = source::text(failure.line).or_else(|| source::text(line));
            ClientError::Failed { failure, location }
        }
        Ok(other) => ClientError::Connection(format!("unexpected answer: {other:?}")),
    }
}
