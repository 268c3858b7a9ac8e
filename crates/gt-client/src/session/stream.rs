//! The unsent commands of a session.

use gt_ir::signal::Shard;
use gt_ir::{ClientCommand, Meta, RequestId, Rescale, StreamNumbers, TensorId};
use rustc_hash::FxHashMap;

use crate::error::ClientError;
use crate::hotpath::{self, HotPathDetector, UninferredInstruction};

/// A session's stream: commands enter the hot path detector, and leave it into the batch.
pub(super) struct Stream {
    next_tensor: u64,
    next_request: u64,
    pub(super) detector: HotPathDetector,
    pub(super) batch: Vec<ClientCommand>,
    /// The number of instructions in the batch. An invocation counts as its steps.
    pub(super) weight: usize,
    /// The cost of running the batch, as [`Driver::submit`](crate::Driver::submit) takes it.
    pub(super) work: u64,
    /// Tensors before this one were made by submitted commands.
    submitted: u64,
    /// The cost of the commands that the detector holds back.
    held_work: u64,
    /// `next_tensor` at the outbox's last flush: whether anything was issued since.
    next_tensor_at_flush: u64,
    /// The signals that the dispatcher knows, as they were sent.
    pub(super) signals: FxHashMap<u32, SentSignal>,
    /// The configured number of slots that was last sent.
    pub(super) slots: Rescale,
    pub(super) strict: Option<u64>,
    pub(super) closed: bool,
    /// Why it is closed, if there is more to say.
    pub(super) closing: Option<String>,
}

/// The configuration of a signal that the dispatcher has.
pub(super) struct SentSignal {
    /// The version of all configurations in which this one is as it was sent.
    pub(super) version: u64,
    pub(super) shard: Option<Shard>,
    pub(super) slots: Rescale,
}

impl Stream {
    pub(super) fn new(settings: hotpath::Settings, numbers: StreamNumbers) -> Stream {
        Stream {
            next_tensor: numbers.tensor,
            next_request: numbers.request,
            detector: HotPathDetector::new(settings),
            batch: Vec::new(),
            weight: 0,
            work: 0,
            submitted: numbers.tensor,
            held_work: 0,
            next_tensor_at_flush: numbers.tensor,
            signals: FxHashMap::default(),
            slots: Rescale::default(),
            strict: None,
            closed: false,
            closing: None,
        }
    }

    /// Returns the first of `count` new, consecutive ids.
    #[inline]
    pub(super) fn new_tensors(&mut self, count: usize) -> TensorId {
        let id = TensorId(self.next_tensor);
        self.next_tensor += count as u64;
        id
    }

    pub(super) fn new_request(&mut self) -> RequestId {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        // A request is submitted with all earlier commands.
        self.submitted = self.next_tensor;
        id
    }

    /// Returns the error for the use of a closed session.
    pub(super) fn closed_error(&self) -> ClientError {
        let reason = self.closing.clone();
        ClientError::Connection(reason.unwrap_or_else(|| "the session is closed".into()))
    }

    /// Appends a command, with the compiled region that it is issued in (0 for none), and its cost.
    #[inline]
    pub(super) fn push(&mut self, command: ClientCommand, region: u32, work: u64) {
        let before = self.batch.len();
        self.detector.process(command, region, &mut self.batch);
        self.held_work += work;
        if self.batch.len() > before {
            self.count(before);
        }
    }

    /// Appends an instruction that repeats one of a hot path, inside an iteration. Returns the id
    /// and the meta of its result; `None` if it must be issued as a command.
    #[inline]
    pub(super) fn repeat(
        &mut self,
        mut issue: UninferredInstruction,
        region: u32,
        inputs: impl Iterator<Item = Option<Meta>>,
    ) -> Option<(TensorId, Meta)> {
        issue.output = TensorId(self.next_tensor);
        let (meta, work) = self.detector.repeat(&issue, region, inputs)?;
        self.next_tensor += 1;
        self.held_work += work;
        Some((issue.output, meta))
    }

    /// Returns the cost of the batch, and resets it.
    pub(super) fn take_work(&mut self) -> u64 {
        self.weight = 0;
        std::mem::take(&mut self.work)
    }

    /// Moves what the detector holds back into the batch.
    pub(super) fn flush(&mut self) {
        let before = self.batch.len();
        self.detector.flush(&mut self.batch);
        self.count(before);
    }

    /// Returns whether the command that made a tensor was not submitted yet.
    pub(super) fn holds(&self, tensor: TensorId) -> bool {
        tensor.0 >= self.submitted
    }

    /// Like [`Stream::flush`], for a thread that waits for a value.
    pub(super) fn flush_to_read(&mut self) {
        self.flush();
        self.detector.note_wait();
        self.submitted = self.next_tensor;
    }

    /// Like [`Stream::flush`], but only if nothing was issued since the last call, and no iteration
    /// of a hot path is unfinished. Where an iteration is split must not depend on time: it is sent
    /// whole, or up to where a value is requested.
    pub(super) fn flush_if_idle(&mut self) {
        let before = std::mem::replace(&mut self.next_tensor_at_flush, self.next_tensor);
        if before == self.next_tensor && !self.detector.is_midway() {
            self.flush();
        }
    }

    /// Starts a new detector; the commands that the old one holds back go into the batch.
    pub(super) fn restart_detector(&mut self, settings: hotpath::Settings) {
        self.flush();
        self.detector = HotPathDetector::new(settings);
    }

    /// Adds the commands of the batch from index `before` on to its weight and work.
    fn count(&mut self, before: usize) {
        self.weight += self.batch[before..]
            .iter()
            .map(|command| match command {
                ClientCommand::Invoke(_) => command.weight() as usize,
                _ => 1,
            })
            .sum::<usize>();
        self.work += std::mem::take(&mut self.held_work);
    }

    /// Returns whether commands wait to be sent. An unfinished iteration of a hot path does not
    /// count: it waits for its remaining steps.
    #[inline]
    pub(super) fn has_waiting(&self) -> bool {
        !self.batch.is_empty() || self.detector.is_pending() && !self.detector.is_midway()
    }
}
