//! Reports of compiled code that differs from its operations.

use std::fmt;

use gt_ir::trace::Trace;
use gt_ir::{Operand, TensorData};

use crate::plan::{InputValue, Plan};

/// A run of compiled code that differs from its operations run one by one, with all that it takes
/// to run both again.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The engine's name.
    pub engine: String,
    /// The original plan; engines receive it simplified.
    pub plan: Plan,
    /// The values of its inputs before the run.
    pub inputs: Vec<InputValue<TensorData>>,
    /// The results of the operations.
    pub expected: Vec<TensorData>,
    /// The results of the compiled code; empty if it failed.
    pub given: Vec<TensorData>,
    pub wrong: Wrong,
}

/// What is wrong with compiled code.
#[derive(Clone, PartialEq, Debug)]
pub enum Wrong {
    /// It failed, where the operations did not.
    Failed(String),
    /// An output, by its index, differs from the operations' result.
    Output(usize, Difference),
    /// An output has another dtype or shape, or there are more or fewer: in words.
    Form(String),
    /// An input, by its index, was written to.
    Input(usize),
    /// A result of the previous run, by its index among the outputs, was written to.
    Earlier(usize),
}

/// The first element of an output that differs by more than it may.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// Its index along each axis.
    pub index: Vec<usize>,
    pub given: String,
    pub expected: String,
    /// How much it may differ by.
    pub bound: f64,
    /// How many elements do, and of how many.
    pub count: usize,
    pub elements: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { index, given, expected, bound, count, elements } = self;
        write!(f, "{given} instead of {expected} at {index:?}, ")?;
        if *bound == 0.0 {
            write!(f, "where it is to be exact")?;
        } else {
            write!(f, "where it may differ by {bound:.3e}")?;
        }
        write!(f, " ({count} of {elements} elements are wrong)")
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wrong {
            Wrong::Failed(error) => f.write_str(error),
            Wrong::Output(output, difference) => {
                write!(f, "{}: {difference}", origin(&self.plan.trace, *output))
            }
            Wrong::Form(text) => f.write_str(text),
            Wrong::Input(input) => write!(f, "other values to its input %{input}"),
            Wrong::Earlier(output) => {
                write!(
                    f,
                    "other values to what it had given: {}",
                    origin(&self.plan.trace, *output)
                )
            }
        }
    }
}

/// Returns what an output of a trace is, by its place: `the result of sum, float32 (3,)`.
fn origin(trace: &Trace, output: usize) -> String {
    let value = trace.outputs[output];
    let name = trace.step_of(value).map_or("an input".to_string(), |step| {
        // A further result is named by the operation that gives it.
        let first = (0..=step).rev().find(|&step| !trace.steps[step].is_further());
        format!("the result of {}", trace.steps[first.unwrap_or(step)].operation.name)
    });
    match trace.meta(value) {
        Operand::Tensor(meta) => format!("{name}, {} {}", meta.dtype, meta.shape),
        Operand::Scalar(_) => name,
    }
}
