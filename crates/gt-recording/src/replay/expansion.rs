//! The commands of a recording with each iteration of a hot path as plain instructions.

use gt_ir::ClientCommand;
use gt_ir::template::{Instance, TemplateError, expand};
use rustc_hash::FxHashMap;

/// The templates of a stream, by which invocations are expanded.
#[derive(Default)]
pub struct StreamExpansion {
    templates: FxHashMap<u32, Instance>,
}

impl StreamExpansion {
    /// Appends the plain commands that a command stands for.
    ///
    /// # Errors
    /// An invocation does not match its template: the recording was not written by a client of GT.
    pub fn expand(
        &mut self,
        command: &ClientCommand,
        to: &mut Vec<ClientCommand>,
    ) -> Result<(), TemplateError> {
        match command {
            ClientCommand::Define(definition) => {
                let instance = Instance::new((**definition).clone());
                self.templates.insert(definition.number, instance);
            }
            ClientCommand::Forget { template } => {
                self.templates.remove(template);
            }
            ClientCommand::Invoke(invocation) => {
                let number = invocation.template;
                let instance = self.templates.get_mut(&number);
                let instance = instance.ok_or(TemplateError::Unknown { number })?;
                let freed = instance.take(invocation)?;
                to.append(&mut expand(instance, invocation, freed));
                to.extend(invocation.others.iter().copied().map(ClientCommand::Free));
            }
            other => to.push(other.clone()),
        }
        Ok(())
    }
}
