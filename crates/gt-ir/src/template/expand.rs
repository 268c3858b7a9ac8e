//! Expands an iteration into plain commands.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Instance, Invocation, IterationPart, Step};
use crate::command::ClientCommand;
use crate::instruction::TensorId;
use crate::template::Values;

/// Returns the instructions of a client's iteration and the frees of its template, each placed
/// after the last use of its tensor. The first `freed` frees were done before.
pub fn expand(instance: &Instance, invocation: &Invocation, freed: u32) -> Vec<ClientCommand> {
    let Instance { template, bindings, .. } = instance;
    let IterationPart { first, last, frees } = invocation.part;
    let steps = &template.steps[first as usize..last as usize];
    // The last step that uses or makes each tensor.
    let mut last_uses: FxHashMap<TensorId, usize> = FxHashMap::default();
    for (index, step) in steps.iter().enumerate() {
        if let Step::Run(_) = step {
            let makes = step.makes().into_iter().map(|(name, _)| name);
            let names = step.reads().chain(makes);
            last_uses.extend(names.map(|name| (bindings.tensor(name), index)));
        }
    }
    // The frees after each step, and those of tensors that no step uses.
    let mut after: Vec<SmallVec<[TensorId; 2]>> = vec![SmallVec::new(); steps.len()];
    let mut rest: Vec<TensorId> = Vec::new();
    for index in freed..frees {
        let id = template.freed(index as usize, bindings);
        match last_uses.get(&id) {
            Some(index) => after[*index].push(id),
            None => rest.push(id),
        }
    }
    let mut commands = Vec::with_capacity(2 * steps.len() + rest.len());
    for (step, gone) in steps.iter().zip(after) {
        if let Step::Run(step) = step {
            commands.push(ClientCommand::Run(step.instruction(bindings)));
        }
        commands.extend(gone.into_iter().map(ClientCommand::Free));
    }
    commands.extend(rest.into_iter().map(ClientCommand::Free));
    commands
}
