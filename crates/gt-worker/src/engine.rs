//! What computes.

use std::time::Duration;

use gt_ir::fabric::{Joint, Way};
use gt_ir::instruction::{Attribute, Operands};
use gt_ir::template::varying_attribute;
use gt_ir::{Attributes, DType, Meta, Operand, Operation, TensorData, WorkerId};

use crate::plan::{Given, Input, Plan, Step};

/// Why an engine could not do as asked, in words for the user.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EngineError {
    #[error("index {index} is out of range for an axis of length {length}")]
    IndexOutOfRange { index: i64, length: usize },
    #[error("out of memory: {bytes} bytes asked for")]
    OutOfMemory { bytes: usize },
    #[error("{0}")]
    Other(String),
}

/// An engine holds tensors of its own kind and computes operations on them.
///
/// The worker has checked every call against the instruction set: operand count, attributes,
/// shapes and dtypes are valid, and `output` is what inference gives.
pub trait Engine: Send {
    /// A tensor as this engine holds it. Cloning must be cheap (a reference).
    type Tensor: Clone + Send;

    /// A plan made ready to be run many times.
    type Program: Send;

    fn name(&self) -> &str;

    /// Whether [`Engine::run`] takes the operation; composites it does not take are expanded.
    fn lowers(&self, operation: &'static Operation) -> bool;

    /// A tensor with these values.
    fn create(&mut self, data: TensorData) -> Result<Self::Tensor, EngineError>;

    /// The values of a tensor; waits until they are there.
    fn read(&mut self, tensor: &Self::Tensor) -> Result<TensorData, EngineError>;

    /// Computes one operation. Operands are handed over: one whose last reference this is may be
    /// overwritten. The result has the shape and dtype of `output`.
    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Self::Tensor>,
        attributes: &Attributes,
        output: Meta,
    ) -> Result<Self::Tensor, EngineError>;

    /// Makes a plan ready; all of its steps are needed for its outputs.
    fn prepare(&mut self, plan: &Plan) -> Result<Self::Program, EngineError>;

    /// Runs a plan; gives its outputs in order. Inputs that die may be taken, but only once
    /// nothing can go wrong any more but for want of memory: after any other error all are there as
    /// they were.
    fn launch(
        &mut self,
        program: &mut Self::Program,
        inputs: &mut [Given<Self::Tensor>],
    ) -> Result<Vec<Self::Tensor>, EngineError>;

    /// Whether a program would run now what was never compared with its operations one by one.
    fn is_unchecked(&mut self, program: &mut Self::Program) -> bool;

    /// Whether a program is more than its operations run one by one.
    fn is_compiled(&self, program: &Self::Program) -> bool {
        let _ = program;
        true
    }

    /// How long programs were compiled in the background, and how often that has failed.
    fn background(&self) -> (Duration, u64) {
        (Duration::ZERO, 0)
    }

    /// The comparison's result: what is wrong, if anything. Then the program is run plainly from
    /// now on.
    fn judge(&mut self, program: &mut Self::Program, wrong: Option<&str>);

    /// How much work it does in a second, as an estimate: the bytes that elementwise operations read
    /// and write. Long sequences are cut into parts of a hundredth of it.
    fn rate(&self) -> u64 {
        10_000_000_000
    }

    /// A clock, for statistics alone.
    fn now(&self) -> Duration;

    /// Gives back memory that is kept for reuse: a session has ended.
    fn release_memory(&mut self) {}

    /// The process has forked, and this is the child: threads of the parent are not here.
    fn after_fork(&mut self) {}

    /// Moves data with the engines of other workers, which all make the same call; waits for
    /// them. Gives a tensor for each of [`Joining::gets`].
    ///
    /// # Errors
    /// What went wrong; whoever else is in the call may wait until it gives up.
    fn join(&mut self, _part: Joining<Self::Tensor>) -> Result<Vec<Self::Tensor>, EngineError> {
        Err(EngineError::Other(format!("the engine '{}' joins no others", self.name())))
    }

    /// Whether [`Engine::join`] adds up numbers of a dtype: the same on all that can join. Other
    /// parts are only moved, and combined by each worker for itself.
    fn adds(&self, _dtype: DType) -> bool {
        false
    }

    /// A worker is gone: nobody waits for it in a group any more.
    fn leave(&mut self, _worker: WorkerId) {}
}

/// What an engine does of a joint exchange.
pub struct Joining<'a, T> {
    pub joint: &'a Joint,
    /// As the joint says, or without combining.
    pub way: Way,
    /// This worker's place among the members.
    pub rank: usize,
    /// How often the group was given up, and is to be made anew.
    pub epoch: u64,
    /// Blocks with the ranks of who gets them. One block for all stands once, with this worker's
    /// own rank. Where blocks are combined, this worker's own is among them.
    pub gives: Vec<(usize, T)>,
    /// What comes from which rank. Where it is combined, only that, with this worker's own rank.
    pub gets: Vec<(usize, Meta)>,
}

/// The attributes of a step in a run with these inputs.
pub fn attributes<T>(step: &Step, inputs: &[Given<T>]) -> Attributes {
    let mut attributes = step.attributes.clone();
    if let Some(index) = varying_attribute(step.operation)
        && let Some(Attribute::Ints(values)) = attributes.get_mut(index)
    {
        for (value, number) in values.iter_mut().zip(&step.varying) {
            *value = inputs[*number as usize].number().as_i64();
        }
    }
    attributes
}

/// Runs a plan one operation after another, for engines that know nothing better.
///
/// # Errors
/// What the engine says of the first operation that fails.
pub fn launch_plainly<E: Engine>(
    engine: &mut E,
    plan: &Plan,
    last_uses: &[Option<u32>],
    inputs: &[Given<E::Tensor>],
) -> Result<Vec<E::Tensor>, EngineError> {
    let count = plan.inputs.len();
    let mut values: Vec<Option<E::Tensor>> = vec![None; plan.steps.len()];
    let kept = |value: usize| plan.outputs.contains(&(value as u32));
    for (index, step) in plan.steps.iter().enumerate() {
        let mut operands = Operands::new();
        for (place, source) in step.operands.iter().enumerate() {
            operands.push(match source {
                Operand::Scalar(scalar) => Operand::Scalar(*scalar),
                Operand::Tensor(value) if (*value as usize) < count => {
                    match (&inputs[*value as usize], &plan.inputs[*value as usize]) {
                        (Given::Number(scalar), Input::Number(_)) => Operand::Scalar(*scalar),
                        (Given::Tensor(tensor), _) => Operand::Tensor(tensor.clone()),
                        _ => unreachable!("nothing is taken in a plain run"),
                    }
                }
                Operand::Tensor(value) => {
                    let made = *value as usize - count;
                    let again = step.operands[place + 1..].contains(source);
                    let dies = last_uses[*value as usize] == Some(index as u32)
                        && !again
                        && !kept(*value as usize);
                    let tensor = if dies { values[made].take() } else { values[made].clone() };
                    Operand::Tensor(tensor.expect("steps use what was made before"))
                }
            });
        }
        let attributes = attributes(step, inputs);
        let made = engine.run(step.operation, operands, &attributes, step.output)?;
        values[index] = Some(made);
    }
    let output = |&value: &u32| match (value as usize).checked_sub(count) {
        Some(made) => values[made].clone().expect("outputs are kept"),
        None => match &inputs[value as usize] {
            Given::Tensor(tensor) => tensor.clone(),
            _ => unreachable!("outputs are tensors"),
        },
    };
    Ok(plan.outputs.iter().map(output).collect())
}
