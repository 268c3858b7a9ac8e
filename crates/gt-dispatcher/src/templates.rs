//! The templates of a session, as its client has told them.

use gt_ir::liveness::Effects;
use gt_ir::template::{IterationPart, MAX_ALL_STEPS, MAX_TEMPLATES, Step, Values, expand};
use gt_ir::{ClientCommand, Definition, Instance, Invocation, TemplateError};
use rustc_hash::FxHashMap;

/// The templates of a session, by number.
#[derive(Default)]
pub(crate) struct Templates {
    known: FxHashMap<u32, Instance>,
    steps: usize,
}

impl Templates {
    /// Learns a template.
    ///
    /// # Errors
    /// It is not one that a client would send.
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
        self.known.insert(number, Instance::new(definition));
        Ok(())
    }

    pub fn forget(&mut self, number: u32) {
        if let Some(replaced) = self.known.remove(&number) {
            self.steps -= replaced.template.len();
        }
    }

    /// Takes an invocation: gives its template, and how many frees of the iteration were done
    /// before.
    ///
    /// # Errors
    /// It does not fit its template.
    pub fn take(&mut self, invocation: &Invocation) -> Result<(&Instance, u32), TemplateError> {
        let number = invocation.template;
        let Some(instance) = self.known.get_mut(&number) else {
            return Err(TemplateError::Unknown { number });
        };
        let freed = instance.take(invocation)?;
        Ok((instance, freed))
    }

    /// Learns the templates of a list, and puts what invocations stand for into their places.
    ///
    /// # Errors
    /// One of them is not valid.
    pub fn expand_all(&mut self, commands: &mut Vec<ClientCommand>) -> Result<(), TemplateError> {
        let is_plain = |command: &ClientCommand| {
            !matches!(command, ClientCommand::Define(_) | ClientCommand::Invoke(_))
        };
        if commands.iter().all(is_plain) {
            return Ok(());
        }
        let mut plain = Vec::with_capacity(commands.len());
        for command in commands.drain(..) {
            match command {
                ClientCommand::Define(definition) => self.define(*definition)?,
                ClientCommand::Forget { template } => self.forget(template),
                ClientCommand::Invoke(invocation) => {
                    let (instance, freed) = self.take(&invocation)?;
                    plain.append(&mut expand(instance, &invocation, freed));
                    plain.extend(invocation.others.into_iter().map(ClientCommand::Free));
                }
                other => plain.push(other),
            }
        }
        *commands = plain;
        Ok(())
    }

    /// Templates to follow commands with that are not taken yet.
    pub fn followed(&self) -> Followed {
        Followed { known: self.known.clone(), freed: 0 }
    }
}

/// Templates as they will be when some commands are taken.
pub(crate) struct Followed {
    known: FxHashMap<u32, Instance>,
    /// How many frees of the iteration at hand were done before.
    freed: u32,
}

impl Followed {
    /// Takes a command. One that is not valid is told of when its turn comes.
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

    /// What the iteration that was followed last does.
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
        }
        let usual = (self.freed..frees).map(|index| template.freed(index as usize, bindings));
        effects.frees.extend(usual.chain(invocation.others.iter().copied()));
        // What it makes and frees itself is nobody else's.
        let own: rustc_hash::FxHashSet<_> = effects.makes.iter().copied().collect();
        effects.reads.retain(|id| !own.contains(id));
        let freed: rustc_hash::FxHashSet<_> = effects.frees.iter().copied().collect();
        effects.makes.retain(|id| !freed.contains(id));
        effects
    }
}
