//! A session's queue of batches that wait to be planned, and the removal of unwanted work from it.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::liveness::{Effects, Liveness, Verdict};
use gt_ir::{ClientCommand, Content, RequestId, TensorId, record};
use rustc_hash::FxHashSet;

use crate::templates::ClientTemplates;

/// The number of slots that the plans of a batch used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotCount {
    Known(usize),
    /// The number that the batch before it left: the journal records no other.
    Unchanged,
}

/// A batch that waits to be planned.
pub(crate) struct UnplannedBatch {
    pub commands: Vec<ClientCommand>,
    /// The weight that the client gets back when the batch is complete.
    pub weight: u64,
    pub since: Duration,
    /// The number of the client's batch that it is part of, in the session's lineage.
    pub batch: u64,
    /// The number of slots that plans used at first, if it is replayed.
    pub slots: Option<SlotCount>,
    /// Unwanted iterations, by their first name and step: they advance the bindings and do their
    /// frees, but are not run.
    pub skipped: Vec<(TensorId, u32)>,
}

impl UnplannedBatch {
    /// Creates a batch received at `now` that is not in a log.
    pub fn new(now: Duration, commands: Vec<ClientCommand>, weight: u64) -> UnplannedBatch {
        let skipped = Vec::new();
        UnplannedBatch { commands, weight, since: now, batch: 0, slots: None, skipped }
    }

    /// Subtracts the weight of removed commands. Returns the weight that the client gets back now:
    /// all that is left once the batch is empty, as the weights of expanded templates may differ.
    pub fn give_up(&mut self, weight: u64) -> u64 {
        let returned = if self.commands.is_empty() { self.weight } else { weight.min(self.weight) };
        self.weight -= returned;
        returned
    }
}

/// The commands of a batch that are not planned, because their results are unwanted.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Pruned {
    /// The first results of instructions, and data.
    pub removed: Vec<TensorId>,
    /// Iterations, by their first name and step.
    pub skipped: Vec<(TensorId, u32)>,
}

/// Returns the first tensor that a removable command makes.
fn first_made(command: &ClientCommand) -> Option<TensorId> {
    match command {
        ClientCommand::Run(instruction) => Some(instruction.output),
        ClientCommand::Create(create) => Some(create.output),
        _ => None,
    }
}

record!(struct Pruned { removed, skipped });

impl Pruned {
    /// Adds further commands that are not planned.
    pub fn add(&mut self, more: Pruned) {
        self.removed.extend(more.removed);
        self.skipped.extend(more.skipped);
    }

    /// Removes the instructions and data from the whole batch.
    pub fn remove_from(&self, commands: &mut Vec<ClientCommand>) {
        if self.removed.is_empty() {
            return;
        }
        let removed: FxHashSet<TensorId> = self.removed.iter().copied().collect();
        commands.retain(|command| first_made(command).is_none_or(|made| !removed.contains(&made)));
    }
}

/// The result of pruning a queue.
#[derive(Default)]
pub(crate) struct PruneResult {
    /// The weight that the client gets back.
    pub returned: u64,
    /// The shared blocks that no worker will map.
    pub blocks: Vec<u128>,
    /// The removed commands, by batch.
    pub removed: Vec<(u64, Pruned)>,
}

/// Removes a request from a queue. Returns the weight that its client gets back; `None` if the
/// request is not in the queue.
pub(crate) fn cancel(queue: &mut VecDeque<UnplannedBatch>, request: RequestId) -> Option<u64> {
    let asks = |command: &ClientCommand| command.request() == Some(request);
    let (batch, index) = queue
        .iter_mut()
        .find_map(|batch| batch.commands.iter().position(asks).map(|index| (batch, index)))?;
    batch.commands.remove(index);
    let returned = batch.give_up(1);
    queue.retain(|batch| !batch.commands.is_empty());
    Some(returned)
}

/// Removes unwanted work: instructions all of whose results are freed before a needed command reads
/// them. Batches that are replayed keep the commands that they were planned with.
pub(crate) fn prune(
    queue: &mut VecDeque<UnplannedBatch>,
    templates: &ClientTemplates,
) -> PruneResult {
    // The effects of an iteration depend on its bindings, which are replayed from the front.
    let mut templates = templates.followed();
    let mut effects: Vec<Vec<Effects>> = Vec::with_capacity(queue.len());
    for batch in queue.iter() {
        let of_batch = batch.commands.iter().map(|command| {
            templates.follow(command);
            Effects::of_client(command).unwrap_or_else(|| templates.effects(command))
        });
        effects.push(of_batch.collect());
    }
    let mut liveness = Liveness::default();
    let mut pruning = PruneResult::default();
    for (batch, effects) in queue.iter_mut().zip(&effects).rev() {
        let mut wanted: Vec<bool> = effects
            .iter()
            .rev()
            .map(|effects| liveness.before(effects) == Verdict::Needed)
            .collect();
        if batch.slots.is_some() || wanted.iter().all(|wanted| *wanted) {
            continue;
        }
        let (mut weight, mut pruned) = (0, Pruned::default());
        batch.commands.retain(|command| {
            let is_wanted = wanted.pop().unwrap_or(true);
            if !is_wanted && let ClientCommand::Invoke(invocation) = command {
                pruned.skipped.push((invocation.bases[0], invocation.part.first));
                return true;
            }
            if let ClientCommand::Create(create) = command
                && let Content::Shared { block, .. } = &create.content
                && !is_wanted
            {
                pruning.blocks.push(block.token);
            }
            if !is_wanted {
                pruned.removed.extend(first_made(command));
                weight += command.weight();
            }
            is_wanted
        });
        batch.skipped.extend(&pruned.skipped);
        pruning.returned += batch.give_up(weight);
        pruning.removed.push((batch.batch, pruned));
    }
    queue.retain(|batch| !batch.commands.is_empty());
    pruning
}

#[cfg(test)]
mod tests {
    use gt_ir::instruction::Operands;
    use gt_ir::{DType, Instruction, Meta, Operand, Shape, SourceId, ops};

    use super::*;

    fn add(output: u64, left: u64) -> ClientCommand {
        let operands: Operands =
            [Operand::Tensor(TensorId(left)), Operand::Tensor(TensorId(0))].into_iter().collect();
        ClientCommand::Run(Instruction {
            operation: &ops::binary::ADD,
            output: TensorId(output),
            results: [Meta::new(DType::F32, Shape::SCALAR)].into_iter().collect(),
            operands,
            attributes: Default::default(),
            source: SourceId(0),
            signal: 0,
        })
    }

    fn free(id: u64) -> ClientCommand {
        ClientCommand::Free(TensorId(id))
    }

    fn fetch(id: u64) -> ClientCommand {
        let (request, line) = (RequestId(id), SourceId(0));
        ClientCommand::Fetch { request, tensor: TensorId(id), line }
    }

    fn queue(batches: Vec<Vec<ClientCommand>>) -> VecDeque<UnplannedBatch> {
        let queued = |commands: Vec<ClientCommand>| {
            let weight = commands.len() as u64;
            UnplannedBatch::new(Duration::ZERO, commands, weight)
        };
        batches.into_iter().map(queued).collect()
    }

    fn left(queue: &VecDeque<UnplannedBatch>) -> Vec<ClientCommand> {
        queue.iter().flat_map(|batch| batch.commands.clone()).collect()
    }

    #[test]
    fn a_chain_whose_results_are_freed_is_pruned() {
        let chain = vec![add(1, 0), add(2, 1), free(1), add(3, 2), free(2)];
        let mut waiting = queue(vec![chain, vec![free(3), fetch(0)]]);
        let pruning = prune(&mut waiting, &ClientTemplates::default());
        assert_eq!(pruning.returned, 3);
        assert_eq!(pruning.removed[0].1.removed, [1, 2, 3].map(TensorId));
        assert_eq!(left(&waiting), [free(1), free(2), free(3), fetch(0)]);
    }

    #[test]
    fn instructions_whose_results_are_used_stay() {
        let commands = vec![add(1, 0), add(2, 1), free(1), fetch(2), free(2), add(3, 0)];
        let mut waiting = queue(vec![commands.clone()]);
        assert_eq!(prune(&mut waiting, &ClientTemplates::default()).returned, 0);
        assert_eq!(left(&waiting), commands);
    }

    #[test]
    fn a_cancelled_request_is_removed_and_its_operands_pruned() {
        let mut waiting = queue(vec![vec![add(1, 0), fetch(1), free(1)]]);
        assert_eq!(cancel(&mut waiting, RequestId(7)), None);
        assert_eq!(cancel(&mut waiting, RequestId(1)), Some(1));
        assert_eq!(prune(&mut waiting, &ClientTemplates::default()).returned, 1);
        assert_eq!(left(&waiting), [free(1)]);
    }
}
