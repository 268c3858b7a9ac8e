//! The templates of a session, as the dispatcher knows them.

use gt_ir::template::{MAX_ALL_STEPS, MAX_TEMPLATES, Pass, expand};
use gt_ir::{
    Bindings, Command, Definition, Invocation, Operand, Template, TemplateError, TensorId,
};
use rustc_hash::FxHashMap;

use crate::planner::PassAtHand;

/// The templates of a session, by number.
#[derive(Default)]
pub(crate) struct Templates {
    known: FxHashMap<u32, Known>,
    steps: usize,
}

struct Known {
    template: Template,
    bindings: Bindings,
    /// Whether its client asked for it to be compiled.
    compile: bool,
    /// How many frees of the current pass are done.
    freed: u32,
}

impl Templates {
    /// Learns a template, or forgets one.
    ///
    /// # Errors
    /// It is not one that a client would send.
    pub fn define(&mut self, definition: &Definition) -> Result<(), TemplateError> {
        let number = definition.number;
        if number >= MAX_TEMPLATES {
            return Err(TemplateError::Unknown { number });
        }
        let replaced = self.known.get(&number).map_or(0, |known| known.template.len());
        if definition.steps.is_empty() {
            self.known.remove(&number);
            self.steps -= replaced;
            return Ok(());
        }
        let (template, bindings) = Template::new(definition)?;
        let steps = self.steps - replaced + template.len();
        if steps > MAX_ALL_STEPS {
            return Err(TemplateError::Length { steps });
        }
        self.steps = steps;
        self.known
            .insert(number, Known { template, bindings, compile: definition.compile, freed: 0 });
        Ok(())
    }

    /// Takes an invocation; gives the pass that it is.
    ///
    /// # Errors
    /// It does not fit its template.
    pub fn take<'a>(
        &'a mut self,
        invocation: &'a Invocation,
    ) -> Result<PassAtHand<'a>, TemplateError> {
        let number = invocation.template;
        let Some(known) = self.known.get_mut(&number) else {
            return Err(TemplateError::Unknown { number });
        };
        let Known { template, bindings, compile, freed } = known;
        bindings.take(template, invocation)?;
        let before = if invocation.first == 0 { 0 } else { *freed };
        if invocation.frees < before {
            return Err(TemplateError::Slot { number });
        }
        *freed = invocation.frees;
        let pass = Pass {
            first: invocation.first as usize,
            last: invocation.last as usize,
            freed: before as usize,
            frees: invocation.frees as usize,
            others: &invocation.others,
        };
        Ok(PassAtHand { number, template, bindings, pass, compile: *compile })
    }

    /// The commands that an invocation stands for.
    ///
    /// # Errors
    /// It does not fit its template.
    pub fn expand(&mut self, invocation: &Invocation) -> Result<Vec<Command>, TemplateError> {
        let PassAtHand { template, bindings, pass, .. } = self.take(invocation)?;
        Ok(expand(template, bindings, pass))
    }

    /// Learns the templates of a list, and puts what invocations stand for into their places.
    ///
    /// # Errors
    /// One of them is not valid.
    pub fn expand_all(&mut self, commands: &mut Vec<Command>) -> Result<(), TemplateError> {
        let is_plain =
            |command: &Command| !matches!(command, Command::Define(_) | Command::Invoke(_));
        if commands.iter().all(is_plain) {
            return Ok(());
        }
        let mut plain = Vec::with_capacity(commands.len());
        for command in commands.drain(..) {
            match command {
                Command::Define(definition) => self.define(&definition)?,
                Command::Invoke(invocation) => plain.append(&mut self.expand(&invocation)?),
                other => plain.push(other),
            }
        }
        *commands = plain;
        Ok(())
    }
}

/// Gives all tensors of a definition the names that `name` says.
pub(crate) fn rename(definition: &mut Definition, mut name: impl FnMut(TensorId) -> TensorId) {
    definition.base = name(definition.base);
    for instruction in definition.steps.iter_mut().flatten() {
        instruction.output = name(instruction.output);
        for operand in &mut instruction.operands {
            if let Operand::Tensor(id) = operand {
                *id = name(*id);
            }
        }
    }
    definition.frees.iter_mut().for_each(|id| *id = name(*id));
}
