//! Appending instructions and data to the stream, and the references to their results.

use std::sync::{Arc, OnceLock};

use gt_ir::instruction::{Operands, Results};
use gt_ir::{
    Attributes, ClientCommand, Content, Create, Instruction, Meta, Operation, SourceId, TensorData,
    TensorId,
};

use super::{Element, Session};
use crate::signal::{self, Scope};

/// The result of an instruction in a session's stream. It is freed when the last reference is
/// dropped.
pub(crate) struct Value {
    /// Its number in the stream, once it has one: see [`Value::id`].
    pub(super) id: OnceLock<TensorId>,
    pub meta: Meta,
    /// The line that issued it.
    pub source: SourceId,
    pub session: Session,
    /// How many elements are not zero, once that was asked for.
    pub(crate) true_count: OnceLock<i64>,
    /// What it is an element of, if iterating gave it.
    pub(crate) element: OnceLock<Element>,
}

impl Drop for Value {
    fn drop(&mut self) {
        if let Some(&id) = self.id.get() {
            self.session.0.push(ClientCommand::Free(id));
        }
    }
}

impl Session {
    /// Appends an instruction with these results, and returns the id of the first. `work` estimates
    /// its cost, as [`Driver::submit`](crate::Driver::submit) takes it.
    pub(crate) fn issue(
        &self,
        operation: &'static Operation,
        operands: Operands,
        attributes: Attributes,
        results: Results,
        work: u64,
        source: SourceId,
    ) -> TensorId {
        let Scope { signal, compiled: region, .. } = signal::current();
        let mut stream = self.0.lock();
        if signal != 0 {
            self.0.define_signal(&mut stream, signal);
        }
        let output = stream.new_tensors(results.len());
        let instruction =
            Instruction { operation, output, results, operands, attributes, source, signal };
        self.0.append(&mut stream, ClientCommand::Run(instruction), region, work);
        output
    }

    /// A reference to a tensor that has just been issued.
    pub(crate) fn value(&self, id: TensorId, meta: Meta, source: SourceId) -> Arc<Value> {
        Arc::new(Value {
            id: OnceLock::from(id),
            meta,
            source,
            session: self.clone(),
            true_count: OnceLock::new(),
            element: OnceLock::new(),
        })
    }

    /// Appends a tensor's data.
    pub(crate) fn create(&self, data: TensorData) -> Arc<Value> {
        let meta = Meta::new(data.dtype, data.shape);
        let Scope { signal, compiled: region, .. } = signal::current();
        let mut stream = self.0.lock();
        if signal != 0 {
            self.0.define_signal(&mut stream, signal);
        }
        let output = stream.new_tensors(1);
        let create = Create { output, content: Content::Data(data), signal };
        let work = meta.bytes() as u64;
        self.0.append(&mut stream, ClientCommand::Create(create), region, work);
        drop(stream);
        self.value(output, meta, SourceId::default())
    }
}
