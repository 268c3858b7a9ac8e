//! Calls that can be paused: a long operation, or program, of an engine that stops at its cut points,
//! so that another session's short question need not wait for its end.

use std::time::Duration;

use gt_ir::instruction::{Operands, Results};
use gt_ir::{Attributes, Operation};

use super::{Engine, EngineError, guarded, run_several};
use crate::plan::InputValue;

/// A call of an engine that can be paused.
pub enum EngineCall<'a, E: Engine + ?Sized> {
    Operation(Box<PausableOperation<E::Tensor>>),
    /// As [`Engine::launch`].
    Program {
        program: &'a E::Program,
        inputs: Vec<InputValue<E::Tensor>>,
    },
}

/// A call as of [`Engine::run`], or [`Engine::run_several`].
pub struct PausableOperation<T> {
    pub operation: &'static Operation,
    pub operands: Operands<T>,
    pub attributes: Attributes,
    pub outputs: Results,
}

impl<T> PausableOperation<T> {
    /// Computes it on an engine.
    pub fn run<E: Engine<Tensor = T>>(self, engine: &mut E) -> CallResult<T> {
        let PausableOperation { operation, operands, attributes, outputs } = self;
        let outputs = guarded(|| {
            if operation.further.is_some() {
                return run_several(engine, operation, operands, &attributes, &outputs);
            }
            engine.run(operation, operands, &attributes, outputs[0]).map(|made| vec![made])
        });
        CallResult { outputs, inputs: Vec::new() }
    }
}

/// A call that has begun. It computes by itself until it is paused. Dropping it
/// abandons it at its next cut point.
pub trait PausableCall<T>: Send {
    /// Waits until it is complete, at most this long; returns whether it is.
    fn wait(&mut self, at_most: Duration) -> bool;

    /// Pauses it at its next cut point, for which it waits at most this long; returns whether it
    /// is paused, or complete. If not, it is paused once it reaches a cut point.
    fn pause(&mut self, at_most: Duration) -> bool;

    /// Resumes it. It may allocate what the engine's budget leaves.
    fn resume(&mut self);

    /// Returns the bytes that it has allocated beside its inputs.
    fn held(&self) -> u64;

    /// Returns the result of a complete call.
    fn finish(self: Box<Self>) -> CallResult<T>;
}

/// The result of a call.
pub struct CallResult<T> {
    pub outputs: Result<Vec<T>, EngineError>,
    /// What is left of a program's inputs.
    pub inputs: Vec<InputValue<T>>,
}
