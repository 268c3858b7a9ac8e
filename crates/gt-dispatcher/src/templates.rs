//! The templates that a session's client has defined, with their bindings.

use gt_ir::liveness::Effects;
use gt_ir::template::{
    IterationPart, MAX_ALL_STEPS, MAX_TEMPLATES, Step, Template, Values, expand,
};
use gt_ir::wire::{Decoded, Record, Sink, Source};
use gt_ir::{ClientCommand, Definition, Instance, Invocation, SourceId, TemplateError, TensorId};
use rustc_hash::FxHashMap;

use crate::planner::PlanCache;
use crate::recent::TensorSource;

/// The templates of a session, by number.
#[derive(Clone, Default)]
pub(crate) struct ClientTemplates {
    known: FxHashMap<u32, Instance>,
    steps: usize,
    /// Incremented by each definition.
    definitions: u64,
    /// The number of instructions that were issued as parts of each template's iterations. They are
    /// counted anew after a restart.
    issued: FxHashMap<u32, u64>,
}

impl Record for ClientTemplates {
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(self.known.len() as u64);
        for (number, instance) in &self.known {
            number.write(to);
            instance.write(to);
        }
    }

    fn read(from: &mut Source) -> Decoded<ClientTemplates> {
        let known: FxHashMap<u32, Instance> = Vec::read(from)?.into_iter().collect();
        let steps = known.values().map(|instance| instance.template.len()).sum();
        let definitions = known.len() as u64;
        Ok(ClientTemplates { definitions, known, steps, ..ClientTemplates::default() })
    }
}

impl ClientTemplates {
    /// Adds or replaces a template.
    ///
    /// # Errors
    /// No valid client would send it.
    pub fn define(&mut self, definition: Definition) -> Result<(), TemplateError> {
        let number = definition.number;
        if number >= MAX_TEMPLATES {
            return Err(TemplateError::Unknown { number });
        }
        definition.check_client()?;
        self.forget(number);
        let steps = self.steps + definition.template.len();
        if steps > MAX_ALL_STEPS {
            return Err(TemplateError::Length { steps });
        }
        self.steps = steps;
        self.definitions += 1;
        self.known.insert(number, Instance::new(definition));
        Ok(())
    }

    /// Returns the number of definitions so far.
    pub fn definitions(&self) -> u64 {
        self.definitions
    }

    /// Returns a template, if it is defined.
    pub fn get(&self, number: u32) -> Option<&Template> {
        self.known.get(&number).map(|instance| &*instance.template)
    }

    /// Returns a template with its bindings, if it is defined.
    pub fn instance(&self, number: u32) -> Option<&Instance> {
        self.known.get(&number)
    }

    /// Returns each template with its number, and how many instructions were issued as parts of its
    /// iterations.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Template, u64)> {
        let issued = |number| self.issued.get(number).copied().unwrap_or(0);
        self.known.iter().map(move |(number, of)| (*number, &*of.template, issued(number)))
    }

    /// Returns the lines of all instructions, in the order of the templates' numbers.
    pub fn lines(&self) -> impl Iterator<Item = SourceId> {
        let mut numbers: Vec<&u32> = self.known.keys().collect();
        numbers.sort_unstable();
        let instances = numbers.into_iter().map(|number| &self.known[number]);
        instances.flat_map(|instance| &instance.template.steps).filter_map(|step| match step {
            Step::Run(step) => Some(step.source),
            _ => None,
        })
    }

    /// Returns what computes a tensor of the current iteration of a template.
    pub fn source(&self, tensor: TensorId) -> Option<TensorSource> {
        let mut all = self.known.iter().filter(|(_, instance)| instance.bindings.is_own(tensor));
        let (_, instance) = all.next()?;
        let made = |step: &Step| match step {
            Step::Run(step) if instance.bindings.tensor(step.output) == tensor => {
                Some(TensorSource { operation: step.operation, line: step.source })
            }
            _ => None,
        };
        instance.template.steps.iter().find_map(made)
    }

    pub fn forget(&mut self, number: u32) {
        if let Some(replaced) = self.known.remove(&number) {
            self.issued.remove(&number);
            self.steps -= replaced.template.len();
        }
    }

    /// Advances a template's bindings by an invocation. Returns the template, and how many of the
    /// iteration's frees were done before.
    ///
    /// # Errors
    /// The invocation does not fit its template.
    pub fn take(&mut self, invocation: &Invocation) -> Result<(&Instance, u32), TemplateError> {
        let number = invocation.template;
        let Some(instance) = self.known.get_mut(&number) else {
            return Err(TemplateError::Unknown { number });
        };
        let freed = instance.take(invocation)?;
        *self.issued.entry(number).or_default() += invocation.weight();
        Ok((instance, freed))
    }

    /// Applies the definitions in a list, and replaces invocations by the commands that they stand
    /// for. Plans of templates that are replaced or forgotten are dropped.
    ///
    /// # Errors
    /// A definition or invocation is not valid.
    pub fn expand_all(
        &mut self,
        commands: &mut Vec<ClientCommand>,
        plans: &mut PlanCache,
    ) -> Result<(), TemplateError> {
        use ClientCommand::{Abandon, Define, Forget, Invoke};
        // A `Forget` left in the queue would later forget a template defined after it.
        let is_of_template = |command: &ClientCommand| {
            matches!(command, Define(_) | Forget { .. } | Invoke(_) | Abandon)
        };
        if !commands.iter().any(is_of_template) {
            return Ok(());
        }
        let mut plain = Vec::with_capacity(commands.len());
        for command in commands.drain(..) {
            match command {
                Define(definition) => {
                    plans.forget(definition.number);
                    self.define(*definition)?;
                }
                Forget { template } => {
                    plans.forget(template);
                    self.forget(template);
                }
                Invoke(invocation) => {
                    let (instance, freed) = self.take(&invocation)?;
                    plain.append(&mut expand(instance, &invocation, freed));
                    plain.extend(invocation.others.into_iter().map(ClientCommand::Free));
                }
                Abandon => {
                    *self = ClientTemplates::default();
                    plain.push(Abandon);
                }
                other => plain.push(other),
            }
        }
        *commands = plain;
        Ok(())
    }

    /// Returns a copy of the templates, to replay queued commands on.
    pub fn followed(&self) -> ReplayedTemplates {
        ReplayedTemplates { known: self.known.clone(), freed: 0 }
    }
}

/// The templates as they will be after some queued commands.
pub(crate) struct ReplayedTemplates {
    known: FxHashMap<u32, Instance>,
    /// How many frees of the last replayed iteration were done before.
    freed: u32,
}

impl ReplayedTemplates {
    /// Replays a command. Errors are ignored here, and reported when the command is planned.
    pub fn follow(&mut self, command: &ClientCommand) {
        match command {
            ClientCommand::Define(definition) if definition.check_client().is_ok() => {
                self.known.insert(definition.number, Instance::new((**definition).clone()));
            }
            ClientCommand::Forget { template } => {
                self.known.remove(template);
            }
            ClientCommand::Invoke(invocation) => {
                let instance = self.known.get_mut(&invocation.template);
                let freed = instance.and_then(|instance| instance.take(invocation).ok());
                match freed {
                    Some(freed) => self.freed = freed,
                    None => {
                        self.known.remove(&invocation.template);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the effects of the invocation that was replayed last; other commands count as
    /// needed.
    pub fn effects(&self, command: &ClientCommand) -> Effects {
        let needed = Effects { is_needed: true, ..Effects::default() };
        let ClientCommand::Invoke(invocation) = command else { return needed };
        let Some(instance) = self.known.get(&invocation.template) else { return needed };
        let Instance { template, bindings, .. } = instance;
        let IterationPart { first, last, frees } = invocation.part;
        let steps = &template.steps[first as usize..last as usize];
        let mut effects = Effects::default();
        for step in steps {
            effects.reads.extend(step.reads().map(|name| bindings.tensor(name)));
            if let Step::Run(_) = step {
                let makes = step.makes().into_iter().map(|(name, _)| bindings.tensor(name));
                effects.makes.extend(makes);
            }
            if let Some(commit) = step.commit() {
                effects.changes.extend(commit.news().map(|name| bindings.tensor(name)));
            }
        }
        let usual = (self.freed..frees).map(|index| template.freed(index as usize, bindings));
        effects.frees.extend(usual.chain(invocation.others.iter().copied()));
        // Tensors that it makes itself, or makes and frees, have no effect outside.
        let own: rustc_hash::FxHashSet<_> = effects.makes.iter().copied().collect();
        effects.reads.retain(|id| !own.contains(id));
        effects.changes.retain(|id| !own.contains(id));
        let freed: rustc_hash::FxHashSet<_> = effects.frees.iter().copied().collect();
        effects.makes.retain(|id| !freed.contains(id));
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_forgotten_before_a_later_batch_redefines_its_number() {
        let mut commands = vec![ClientCommand::Forget { template: 3 }];
        ClientTemplates::default().expand_all(&mut commands, &mut PlanCache::default()).unwrap();
        assert_eq!(commands, []);
    }
}
