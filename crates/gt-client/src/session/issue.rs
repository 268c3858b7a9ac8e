//! Appends instructions and data to the stream; references to their results.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use gt_ir::instruction::{Operands, Results};
use gt_ir::{
    Attributes, ClientCommand, Content, Create, Instruction, Meta, Operand, Operation, SourceId,
    TensorId,
};

use super::{BlockElement, Session};
use crate::context::level::Level;
use crate::context::scopes::Scope;
use crate::context::{self, CallSite};
use crate::hotpath::UninferredInstruction;

/// No number of elements.
pub(super) const UNKNOWN_COUNT: i64 = -1;

/// The value behind a hidden axis.
pub(crate) struct BatchedValue {
    pub level: Arc<Level>,
    /// The value with the batch axis of this level in front; axes of outer levels are hidden in it.
    pub of: Arc<StreamValue>,
}

/// The result of an instruction in a session's stream. It is freed when the last reference is
/// dropped.
pub(crate) struct StreamValue {
    /// Its id in the stream, once it has one: see [`StreamValue::id`].
    pub(super) id: OnceLock<TensorId>,
    pub meta: Meta,
    /// The line that issued it.
    pub source: SourceId,
    pub session: Session,
    /// See [`StreamValue::true_count`]; [`UNKNOWN_COUNT`] until it is known.
    pub(super) true_count: AtomicI64,
    /// Its place in a block, if it is an element from iteration.
    pub(crate) element: OnceLock<BlockElement>,
    /// Whether a commit was issued that may assign it another value.
    pub(super) is_committed: AtomicBool,
    /// Whether its session keeps its tensor under a name, or did.
    pub(super) is_kept: AtomicBool,
    /// The value with the batch axis that it hides, inside `vmap`.
    pub(crate) batched: Option<Box<BatchedValue>>,
}

impl StreamValue {
    /// Returns the same tensor without its batch axis.
    pub(crate) fn hidden(&self, meta: Meta, batched: BatchedValue) -> StreamValue {
        StreamValue {
            id: OnceLock::from(self.id()),
            meta,
            source: self.source,
            session: self.session.clone(),
            true_count: AtomicI64::new(UNKNOWN_COUNT),
            element: OnceLock::new(),
            is_committed: AtomicBool::new(self.is_committed()),
            is_kept: AtomicBool::new(false),
            batched: Some(Box::new(batched)),
        }
    }

    /// Returns its id in the stream, if it has one.
    #[inline]
    pub(crate) fn issued(&self) -> Option<TensorId> {
        self.id.get().copied()
    }

    /// Returns whether a commit was issued that may assign it another value. Such a value must not
    /// be read before the commit has run: a request is ordered behind it, a direct read is not.
    pub(crate) fn is_committed(&self) -> bool {
        self.is_committed.load(Ordering::Relaxed)
    }

    /// Records that a commit of it was issued, and forgets what is known of its elements.
    pub(crate) fn set_committed(&self) {
        self.is_committed.store(true, Ordering::Relaxed);
        self.set_true_count(UNKNOWN_COUNT);
    }

    /// Returns the number of its nonzero elements, if it was counted.
    pub(crate) fn true_count(&self) -> Option<i64> {
        let count = self.true_count.load(Ordering::Relaxed);
        (count != UNKNOWN_COUNT).then_some(count)
    }

    /// Records the number of its nonzero elements.
    pub(crate) fn set_true_count(&self, count: i64) {
        self.true_count.store(count, Ordering::Relaxed);
    }

    /// Returns whether it, or the tensor that it is an element of, is older than a tensor.
    pub(crate) fn is_older_than(&self, tensor: TensorId) -> bool {
        self.id.get().is_none_or(|&id| id < tensor)
    }
}

impl Drop for StreamValue {
    fn drop(&mut self) {
        // A value that hides an axis refers to the value that has it.
        if self.batched.is_none()
            && let Some(&id) = self.id.get()
            && (!*self.is_kept.get_mut() || self.session.drop_kept_value(id))
        {
            self.session.0.push(ClientCommand::Free(id));
        }
    }
}

impl Session {
    /// Appends an instruction that repeats one of a hot path: its result is known, and no command
    /// is made. Returns the result's id and meta; `None` if it must be issued as a command.
    #[inline]
    pub(crate) fn repeat(
        &self,
        CallSite { context, source }: CallSite,
        operation: &'static Operation,
        operands: &[Operand<TensorId>],
        attributes: &Attributes,
        inputs: impl Iterator<Item = Option<Meta>>,
    ) -> Option<(TensorId, Meta)> {
        let Scope { signal, compiled: region, .. } = context.scope();
        // A signal's configuration may have changed.
        if signal != 0 || context.is_recording() {
            return None;
        }
        let output = TensorId(0);
        let issue =
            UninferredInstruction { operation, output, operands, attributes, source, signal };
        let mut stream = self.0.lock();
        if stream.closed {
            return None;
        }
        stream.repeat(issue, region, inputs)
    }

    /// Appends an instruction with these results, and returns the id of the first. `work` estimates
    /// its cost, as [`Driver::submit`](crate::Driver::submit) takes it. `inputs` are the operands
    /// from which a single result was inferred.
    #[expect(clippy::too_many_arguments, reason = "an instruction has as many parts")]
    pub(crate) fn issue(
        &self,
        CallSite { context, source }: CallSite,
        operation: &'static Operation,
        operands: Operands,
        attributes: Attributes,
        results: Results,
        inputs: &[Operand<Meta>],
        work: u64,
    ) -> TensorId {
        let Scope { signal, compiled: region, .. } = context.scope();
        let mut stream = self.0.lock();
        if signal != 0 {
            self.0.define_signal(&mut stream, signal);
        }
        let output = stream.new_tensors(results.len());
        let instruction =
            Instruction { operation, output, results, operands, attributes, source, signal };
        context.record(self.number(), &instruction, work);
        self.0.append(&mut stream, ClientCommand::Run(instruction), region, work);
        if !inputs.is_empty() {
            stream.detector.note(inputs, work);
        }
        output
    }

    /// Returns a reference to a tensor that was just issued.
    pub(crate) fn value(&self, id: TensorId, meta: Meta, source: SourceId) -> Arc<StreamValue> {
        Arc::new(StreamValue {
            id: OnceLock::from(id),
            meta,
            source,
            session: self.clone(),
            true_count: AtomicI64::new(UNKNOWN_COUNT),
            element: OnceLock::new(),
            is_committed: AtomicBool::new(false),
            is_kept: AtomicBool::new(false),
            batched: None,
        })
    }

    /// Frees a tensor without references.
    pub(crate) fn free(&self, id: TensorId) {
        self.0.push(ClientCommand::Free(id));
    }

    /// Returns the id of the next tensor.
    pub(crate) fn next_tensor(&self) -> TensorId {
        self.0.lock().new_tensors(0)
    }

    /// Appends a tensor's data.
    pub(crate) fn create(&self, content: Content, source: SourceId) -> Arc<StreamValue> {
        let meta = content.meta();
        let Scope { signal, compiled: region, .. } = context::with(|context| {
            context.invalidate_recording();
            context.scope()
        });
        let mut stream = self.0.lock();
        if signal != 0 {
            self.0.define_signal(&mut stream, signal);
        }
        let output = stream.new_tensors(1);
        let create = Create { output, content, signal, source };
        let work = meta.bytes() as u64;
        self.0.append(&mut stream, ClientCommand::Create(create), region, work);
        drop(stream);
        self.value(output, meta, source)
    }
}
