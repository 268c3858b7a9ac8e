//! A session's queue of batches that wait to be planned, and the removal of unwanted work from it.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::liveness::{Effects, Liveness, Verdict};
use gt_ir::{ClientCommand, Content, RequestId, TensorId, record};
use rustc_hash::FxHashSet;

use crate::templates::Templates;

/// How many slots plans of a batch had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotCount {
    Known(usize),
    /// As many as there were after the batch before it: a journal says nothing else.
    Unchanged,
}

/// A batch that waits to be planned.
pub(crate) struct Queued {
    pub commands: Vec<ClientCommand>,
    /// The weight that the client gets back when the batch is complete.
    pub weight: u64,
    pub since: Duration,
    /// The number of the client's batch that it is of, in the session's lineage.
    pub batch: u64,
    /// How many slots plans had, if it is planned anew.
    pub slots: Option<SlotCount>,
    /// Unwanted iterations, by their first name and step: they advance the bindings and do their
    /// frees, but are not run.
    pub skipped: Vec<(TensorId, u32)>,
}

impl Queued {
    pub fn new(now: Duration, commands: Vec<ClientCommand>, weight: u64) -> Queued {
        let skipped = Vec::new();
        Queued { commands, weight, since: now, batch: 0, slots: None, skipped }
    }

    /// Commands of this weight were removed. Returns the weight that the client gets back now: all
    /// that is left once the batch is empty, as the weights of expanded templates may differ.
    pub fn give_up(&mut self, weight: u64) -> u64 {
        let given = if self.commands.is_empty() { self.weight } else { weight.min(self.weight) };
        self.weight -= given;
        given
    }
}

/// What of a batch is not planned, as nobody wants it.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Pruned {
    /// The first results of instructions, and data.
    pub removed: Vec<TensorId>,
    /// Iterations, by their first name and step.
    pub skipped: Vec<(TensorId, u32)>,
}

/// What a command that may be unwanted makes first.
fn first_made(command: &ClientCommand) -> Option<TensorId> {
    match command {
        ClientCommand::Run(instruction) => Some(instruction.output),
        ClientCommand::Create(create) => Some(create.output),
        _ => None,
    }
}

record!(struct Pruned { removed, skipped });

impl Pruned {
    /// More of it is not planned.
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

/// What became of a queue that was pruned.
#[derive(Default)]
pub(crate) struct Pruning {
    /// The weight that the client gets back.
    pub given: u64,
    /// The shared blocks that nothing will read.
    pub blocks: Vec<u128>,
    /// What was removed, by batch.
    pub removed: Vec<(u64, Pruned)>,
}

/// Removes a request from a queue. Returns the weight that its client gets back; `None` if it is
/// not there.
pub(crate) fn cancel(queue: &mut VecDeque<Queued>, request: RequestId) -> Option<u64> {
    let asks = |command: &ClientCommand| command.request() == Some(request);
    let (batch, index) = queue
        .iter_mut()
        .find_map(|batch| batch.commands.iter().position(asks).map(|index| (batch, index)))?;
    batch.commands.remove(index);
    let given = batch.give_up(1);
    queue.retain(|batch| !batch.commands.is_empty());
    Some(given)
}

/// Removes unwanted work: instructions all of whose results are freed before a needed command
/// reads them. Batches that are planned anew stay as they were planned.
pub(crate) fn prune(queue: &mut VecDeque<Queued>, templates: &Templates) -> Pruning {
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
    let mut pruning = Pruning::default();
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
        pruning.given += batch.give_up(weight);
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

    fn queue(batches: Vec<Vec<ClientCommand>>) -> VecDeque<Queued> {
        let queued = |commands: Vec<ClientCommand>| {
            let weight = commands.len() as u64;
            Queued::new(Duration::ZERO, commands, weight)
        };
        batches.into_iter().map(queued).collect()
    }

    fn left(queue: &VecDeque<Queued>) -> Vec<ClientCommand> {
        queue.iter().flat_map(|batch| batch.commands.clone()).collect()
    }

    #[test]
    fn a_chain_that_is_let_go_of_is_not_planned() {
        let chain = vec![add(1, 0), add(2, 1), free(1), add(3, 2), free(2)];
        let mut waiting = queue(vec![chain, vec![free(3), fetch(0)]]);
        let pruning = prune(&mut waiting, &Templates::default());
        assert_eq!(pruning.given, 3);
        assert_eq!(pruning.removed[0].1.removed, [1, 2, 3].map(TensorId));
        assert_eq!(left(&waiting), [free(1), free(2), free(3), fetch(0)]);
    }

    #[test]
    fn what_somebody_wants_stays() {
        let commands = vec![add(1, 0), add(2, 1), free(1), fetch(2), free(2), add(3, 0)];
        let mut waiting = queue(vec![commands.clone()]);
        assert_eq!(prune(&mut waiting, &Templates::default()).given, 0);
        assert_eq!(left(&waiting), commands);
    }

    #[test]
    fn a_question_that_nobody_waits_for_is_taken_out() {
        let mut waiting = queue(vec![vec![add(1, 0), fetch(1), free(1)]]);
        assert_eq!(cancel(&mut waiting, RequestId(7)), None);
        assert_eq!(cancel(&mut waiting, RequestId(1)), Some(1));
        assert_eq!(prune(&mut waiting, &Templates::default()).given, 1);
        assert_eq!(left(&waiting), [free(1)]);
    }
}
