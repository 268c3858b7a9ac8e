//! Runs cached programs on tensors of a lane.

use std::sync::Arc;

use gt_ir::message::Failure;
use gt_ir::{Meta, Scalar, SourceId, TensorId};

use super::Device;
use crate::engine::{Engine, EngineError};
use crate::lane::Lane;
use crate::lane::call::{BegunLaunch, GivenTensor, Launch, Purpose};
use crate::plan::{InputValue, Plan};

/// The outcome of running a part as a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartRun {
    Done,
    /// It waits for its compiler; nothing was run.
    Compiling,
    /// It cannot be run as a plan; nothing was run.
    Refused,
    /// It is the lane's call now.
    Begun,
}

impl<E: Engine> Device<E> {
    /// The program of a plan: see [`crate::programs::ProgramCache::prepare`].
    pub fn prepare(&mut self, plan: Plan) -> Option<(u64, u64)> {
        if !self.events.is_on() {
            return self.programs.prepare(&mut self.engine, plan);
        }
        let (begin, steps) = (self.engine.now(), plan.trace.steps.len());
        let misses = self.programs.misses();
        let program = self.programs.prepare(&mut self.engine, plan);
        if self.programs.misses() > misses {
            self.events.compiled(begin, self.engine.now(), steps);
        }
        program
    }

    /// Runs a program, and stores its outputs under their ids; `freed` are freed after it. If it
    /// failed, the inputs are restored. A long one is begun as the lane's call.
    pub fn launch(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        launch: Launch,
        given: Vec<GivenTensor>,
        numbers: impl Iterator<Item = Scalar>,
        kept: impl Iterator<Item = (TensorId, Meta, SourceId)>,
        freed: impl Iterator<Item = TensorId>,
    ) -> PartRun {
        let mut inputs: Vec<InputValue<E::Tensor>> = Vec::with_capacity(given.len());
        for given in &given {
            // A dying input is moved, so that the program holds the only reference.
            let tensor = if given.dies {
                lane.store.take(given.id).map(|(tensor, _)| tensor)
            } else {
                lane.store.ready(given.id).cloned()
            };
            inputs.push(tensor.map_or(InputValue::Taken, InputValue::Tensor));
        }
        inputs.extend(numbers.map(InputValue::Number));
        if launch.is_warm && self.is_long_program(launch.program) {
            match self.programs.begin(&mut self.engine, launch.program, inputs) {
                Ok(call) => {
                    let (kept, freed) = (kept.collect(), freed.collect());
                    let begun = BegunLaunch { launch, given, kept, freed, commands: None };
                    self.set_call(lane, call, Purpose::Launch(Box::new(begun)));
                    return PartRun::Begun;
                }
                Err(given_back) => inputs = given_back,
            }
        }
        let Launch { program, is_warm, .. } = launch;
        let launched = self.programs.launch(&mut self.engine, program, is_warm, &mut inputs);
        self.settle_launch(lane, launch, &given, (inputs, launched), kept, freed)
    }

    /// Stores the outputs of a launch, or restores its inputs: then it is refused.
    pub(super) fn settle_launch(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        Launch { program, is_warm, operations }: Launch,
        given: &[GivenTensor],
        (inputs, launched): (Vec<InputValue<E::Tensor>>, Result<Vec<E::Tensor>, EngineError>),
        kept: impl Iterator<Item = (TensorId, Meta, SourceId)>,
        freed: impl Iterator<Item = TensorId>,
    ) -> PartRun {
        let outputs = match launched {
            Ok(outputs) => outputs,
            Err(error) => {
                self.restore(lane, program, &error, given, inputs);
                return PartRun::Refused;
            }
        };
        for index in self.programs.take_restored() {
            if let (Some(of), InputValue::Tensor(tensor)) = (given.get(index), &inputs[index])
                && !of.dies
            {
                lane.store.put_back(of.id, tensor.clone(), of.meta);
            }
        }
        drop(inputs);
        if self.events.is_on() {
            self.events.spans(operations, self.programs.mix(program));
        }
        for given in given.iter().filter(|given| given.dies) {
            self.release(lane, given.id, &given.meta);
        }
        for ((id, meta, line), tensor) in kept.zip(outputs) {
            let sources = given.iter().filter(|given| !given.dies).map(|given| given.id);
            self.keep(lane, (id, tensor, meta, line), sources);
        }
        self.stats.operations_total += operations;
        if is_warm && self.programs.is_compiled(&self.engine, program) {
            self.stats.operations_compiled += operations;
        }
        freed.for_each(|id| self.free(lane, id));
        PartRun::Done
    }

    /// Restores the dying inputs of a failed launch. Those that the program has taken are lost: it
    /// may fail after that only if out of memory.
    fn restore(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        program: u64,
        error: &EngineError,
        given: &[GivenTensor],
        inputs: Vec<InputValue<E::Tensor>>,
    ) {
        let mut lost: Option<Arc<Failure>> = None;
        for (given, input) in given.iter().zip(inputs).filter(|(given, _)| given.dies) {
            match input {
                InputValue::Tensor(tensor) => lane.store.put_back(given.id, tensor, given.meta),
                _ => {
                    self.release(lane, given.id, &given.meta);
                    let failure = lost.get_or_insert_with(|| {
                        let (summary, reason) =
                            (self.programs.summary(program), self.explain(lane, error));
                        let (name, line) = (self.stats.name.as_str(), SourceId::default());
                        let largest = self.largest_if_full(lane, error);
                        Arc::new(Failure { largest, ..Failure::new(summary, reason, name, line) })
                    });
                    let failure = Arc::clone(failure);
                    lane.store.fail(&mut self.held, given.id, failure);
                }
            }
        }
    }
}
