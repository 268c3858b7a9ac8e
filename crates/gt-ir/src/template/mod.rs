//! Templates: sequences of instructions that a stream repeats, defined once and then invoked.
//!
//! A [`Template`] is a sequence of steps that refer to tensors and numbers by position or slot. One
//! run of it is an *iteration*. [`Bindings`] map these to the tensors and numbers of an iteration,
//! and predict those of the next. An [`Invocation`] stands for another iteration, and contains only
//! the differences from the prediction: none in a training loop, as parameters are results of the
//! previous iteration, and numbers repeat or count.
//!
//! A client's template has neither planner-made names nor exchanges. A worker's has both, and
//! describes one slot's part of an iteration. Otherwise they are the same.
//!
//! - [`step`]: templates and their steps; [`build`]: a template from an iteration; [`bindings`]:
//!   predictions; [`invocation`]: the commands; [`expand`]: an iteration as plain commands;
//!   [`varying_slice`]: slices whose position changes between iterations.

mod bindings;
mod build;
mod expand;
mod invocation;
mod step;
pub mod varying_slice;

pub use bindings::{Bindings, Start, Values};
pub use build::TemplateBuilder;
pub use expand::expand;
pub use invocation::{Definition, Instance, Invocation, IterationPart};
pub use step::varying_numbers;
pub use step::{Argument, ExchangeStep, Name, RunStep, Step, Template, Varying};
pub use varying_slice::VaryingSlice;

/// The most steps a client's template may have.
pub const MAX_STEPS: usize = 1 << 14;
/// The most templates that a session may have at once.
pub const MAX_TEMPLATES: u32 = 64;
/// The most steps in all templates of a session.
pub const MAX_ALL_STEPS: usize = 1 << 16;

/// Why a definition or an invocation is invalid. A GT client sends only valid ones.
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
