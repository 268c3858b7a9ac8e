//! An iteration of a client's template that is to be planned.

use gt_ir::template::IterationPart;
use gt_ir::{Bindings, Definition, Instance, Invocation, SlotId, TransferId};

/// The template, steps and frees of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct IterationSpan {
    pub template: u32,
    pub part: IterationPart,
    /// How many frees were done before.
    pub freed: u32,
}

/// An iteration to be planned.
#[derive(Clone, Copy)]
pub struct TemplateIteration<'a> {
    pub instance: &'a Instance,
    pub invocation: &'a Invocation,
    pub(super) span: IterationSpan,
}

impl<'a> TemplateIteration<'a> {
    /// Creates an iteration, of whose template's frees `freed` were done before.
    pub fn new(
        instance: &'a Instance,
        invocation: &'a Invocation,
        freed: u32,
    ) -> TemplateIteration<'a> {
        let Invocation { template, part, .. } = *invocation;
        TemplateIteration { instance, invocation, span: IterationSpan { template, part, freed } }
    }

    /// Returns whether it runs all steps and does all frees of its template.
    pub(super) fn is_whole(&self) -> bool {
        let IterationPart { first, last, frees } = self.span.part;
        let template = &self.instance.template;
        let counts = (last as usize, frees as usize);
        first == 0 && counts == (template.len(), template.frees.len())
    }
}

/// Called for each invocation, so that the log can show its commands.
pub type InvocationObserver<'a> = &'a mut dyn FnMut(SlotId, &Definition, &Bindings, TransferId);
