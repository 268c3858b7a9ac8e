//! Sequences of instructions that a stream repeats: told once, then invoked.
//!
//! A [`Template`] is a sequence of steps whose tensors and numbers are named by their place. One
//! run of it is an *iteration*; [`Bindings`] say which tensors and numbers an iteration is of, and
//! predict those of the next. An [`Invocation`] is another iteration: it says only what differs
//! from the prediction. In a training loop nothing does: parameters are results of the iteration
//! before, and numbers follow from the last.
//!
//! A client's template has no names of the planner's own and no exchanges; one for a worker has
//! both, and stands for what one slot does of an iteration. Otherwise they are the same.
//!
//! - [`step`]: what a template consists of; [`build`]: from an iteration to its template;
//!   [`bindings`]: what is predicted; [`invocation`]: how it is told; [`expand`]: an iteration as
//!   ordinary commands; [`moving`]: slices whose place moves from iteration to iteration.

mod bindings;
mod build;
mod expand;
mod invocation;
pub mod moving;
mod step;

pub use bindings::{Bindings, Start, Values};
pub use build::Builder;
pub use expand::expand;
pub use invocation::{Definition, Instance, Invocation, IterationPart};
pub use moving::MovingSlice;
pub use step::{Argument, ExchangeStep, Name, RunStep, Step, Template, Varying};
pub use step::{varying_attribute, varying_numbers};

/// The most steps a client's template may have.
pub const MAX_STEPS: usize = 1 << 14;
/// How many templates a session may have at once,
pub const MAX_TEMPLATES: u32 = 64;
/// and how many steps in all of them.
pub const MAX_ALL_STEPS: usize = 1 << 16;

/// Why a definition or an invocation is not valid; no client of GT's sends such a one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a template of {steps} steps: at most {MAX_STEPS} are allowed, and one needed")]
    Length { steps: usize },
    #[error("step {step} of a template is out of order")]
    Order { step: usize },
    #[error("step {step} of a template is one that only the planner makes")]
    Planned { step: usize },
    #[error("template {number} is not among the {MAX_TEMPLATES} of a session")]
    Unknown { number: u32 },
    #[error("template {number} has {steps} steps, and steps {first} to {last} were asked for")]
    Range { number: u32, steps: usize, first: u32, last: u32 },
    #[error("template {number} has no such slot or free")]
    Slot { number: u32 },
    #[error("an invocation of template {number} binds other tensors or numbers at each end")]
    Digest { number: u32 },
}

#[cfg(test)]
mod tests;
