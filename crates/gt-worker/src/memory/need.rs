//! The bytes that commands will need.

use gt_ir::instruction::Results;
use gt_ir::operation::{Body, Family};
use gt_ir::ops::commit::is_commit;
use gt_ir::ops::shape::{EXPAND, PERMUTE, RESHAPE};
use gt_ir::ops::slice::SLICE;
use gt_ir::template::{Argument, Name, Step};
use gt_ir::{Content, Instruction, Meta, Operation, TensorId, WorkerCommand};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::engine::Engine;
use crate::store::{Store, Stored};

/// The bytes of an instruction's results.
pub(crate) fn bytes_of(results: &Results) -> u64 {
    results.iter().map(|meta| meta.bytes() as u64).sum()
}

/// Returns whether an operation is elementwise, so that it may overwrite an operand of the same
/// size that is not used again.
fn is_elementwise(operation: &Operation) -> bool {
    matches!(operation.family, Family::Unary | Family::Binary | Family::Ternary)
        && matches!(operation.body, Body::Primitive)
        && operation.further.is_none()
}

/// Returns the number of tensors that a command makes.
#[inline]
pub(crate) fn made_by(command: &WorkerCommand) -> usize {
    match command {
        WorkerCommand::Run(instruction) => instruction.results.len(),
        WorkerCommand::Create(_) => 1,
        WorkerCommand::Exchange(exchange) => usize::from(exchange.output.is_some()),
        _ => 0,
    }
}

/// Returns the additional bytes that a command needs, if they exceed `room`, or its tensors'
/// records do not fit; `rest` are the commands that follow.
#[inline]
pub(crate) fn of_command<E: Engine>(
    engine: &E,
    command: &WorkerCommand,
    rest: &[WorkerCommand],
    store: &Store<E::Tensor>,
    room: Option<u64>,
) -> Option<u64> {
    let need = match command {
        WorkerCommand::Run(instruction) => return need_of(engine, instruction, rest, store, room),
        // Its memory is the library's.
        WorkerCommand::Create(create) if matches!(create.content, Content::Published(_)) => 0,
        WorkerCommand::Create(create) => create.content.meta().bytes() as u64,
        WorkerCommand::Exchange(exchange) => exchange.output?.1.bytes() as u64,
        // A tensor that repeats elements is copied to be read.
        WorkerCommand::Fetch { tensor, .. } if store.shared.repeats(*tensor) => {
            store.meta(*tensor)?.bytes() as u64
        }
        _ => return None,
    };
    room.is_none_or(|room| need > room).then_some(need)
}

/// Returns the bytes that an instruction needs, if they exceed `room`, or its tensors' records do
/// not fit.
#[inline]
pub(crate) fn need_of<E: Engine>(
    engine: &E,
    instruction: &Instruction,
    rest: &[WorkerCommand],
    store: &Store<E::Tensor>,
    room: Option<u64>,
) -> Option<u64> {
    let need = bytes_of(&instruction.results);
    // A commit makes a number only: a step that has reached a limit can still end.
    if room.is_some_and(|room| need <= room) || is_commit(instruction.operation) {
        return None;
    }
    // An instruction with failed operands needs no memory.
    if store.first_failure(instruction.reads()).is_some() {
        return None;
    }
    let needs_none = is_view(engine, instruction, store) || reuses(instruction, need, rest, store);
    let need = if needs_none { 0 } else { distinct(engine, instruction, store).unwrap_or(need) };
    room.is_none_or(|room| need > room).then_some(need)
}

/// The bytes that the result of an elementwise instruction takes.
fn distinct<E: Engine>(
    engine: &E,
    instruction: &Instruction,
    store: &Store<E::Tensor>,
) -> Option<u64> {
    let [result] = instruction.results.as_slice() else { return None };
    if !is_elementwise(instruction.operation) {
        return None;
    }
    let tensor = |id: TensorId| match store.get(id) {
        Some(Stored::Ready { tensor, .. }) => Some(tensor),
        _ => None,
    };
    let operands: Option<Vec<&E::Tensor>> = instruction.reads().map(tensor).collect();
    Some(engine.bytes_of_distinct(&operands?, *result))
}

/// Whether an instruction makes a view of its operand, which needs no memory.
fn is_view<E: Engine>(engine: &E, instruction: &Instruction, store: &Store<E::Tensor>) -> bool {
    if !engine.makes_views() {
        return false;
    }
    let of = |operation: &Operation| instruction.operation.id == operation.id;
    let shape = instruction.results[0].shape;
    let is_viewed = |id: TensorId| match store.get(id) {
        Some(Stored::Ready { tensor, .. }) => engine.makes_view_of(tensor, &shape),
        _ => false,
    };
    let is_kept = || instruction.reads().all(is_viewed);
    of(&SLICE) || of(&PERMUTE) || of(&EXPAND) || (of(&RESHAPE) && is_kept())
}

/// Returns whether an instruction can write its result, of `bytes` bytes, over one of its operands.
fn reuses<T>(
    instruction: &Instruction,
    bytes: u64,
    rest: &[WorkerCommand],
    store: &Store<T>,
) -> bool {
    let dies = |id: TensorId| {
        let is_free =
            |command: &WorkerCommand| matches!(command, WorkerCommand::Free(freed) if *freed == id);
        dying(rest).iter().any(is_free)
    };
    let has_room = |id: TensorId| {
        let is_as_long = store.meta(id).is_some_and(|meta| meta.bytes() as u64 == bytes);
        is_as_long && dies(id) && !store.shared.has(id)
    };
    is_elementwise(instruction.operation) && instruction.reads().any(has_room)
}

/// The old values of tensors that a step changes and that are freed after it, each with the last step
/// that reads it for its value.
fn freed_with_step(steps: &[Step]) -> FxHashMap<Name, usize> {
    let Some(last) = steps.iter().rposition(|step| step.commit().is_some()) else {
        return FxHashMap::default();
    };
    let commits = steps[..=last].iter().filter_map(Step::commit);
    let mut olds: FxHashMap<Name, usize> =
        commits.flat_map(|commit| commit.pairs).map(|(_, old)| (old, usize::MAX)).collect();
    for (index, step) in steps.iter().enumerate() {
        if step.commit().is_none() {
            for name in step.reads() {
                olds.entry(name).and_modify(|at| *at = index);
            }
        }
    }
    let is_freed =
        |name: &Name| steps.iter().any(|step| matches!(step, Step::Free(freed) if freed == name));
    olds.retain(|name, at| *at < last && is_freed(name));
    olds
}

/// The memory that steps need beside their inputs.
#[derive(Clone, Copy)]
pub(crate) struct Peak {
    /// The most bytes.
    pub bytes: u64,
    /// The number of tensors that they make.
    pub tensors: usize,
}

/// Computes the memory that steps need beside their inputs, some of which they free. With
/// `makes_views`, expanded tensors need no memory.
pub(crate) fn peak(
    steps: &[Step],
    given: &[(Name, Meta)],
    dying: &FxHashSet<Name>,
    makes_views: bool,
) -> Peak {
    // In a plan a commit reads nothing: old values are freed after their last other use.
    let freed_at = freed_with_step(steps);
    let given = given.iter().filter(|(name, _)| dying.contains(name));
    let mut live: FxHashMap<Name, u64> =
        given.map(|(name, meta)| (*name, meta.bytes() as u64)).collect();
    let before: u64 = live.values().sum();
    let (mut now, mut most) = (before, before);
    for (index, step) in steps.iter().enumerate() {
        match step {
            Step::Run(run) => {
                let is_expanded = makes_views && run.operation.id == EXPAND.id;
                let bytes = if is_expanded { 0 } else { bytes_of(&run.results) };
                let is_next = |name: Name| {
                    let rest = steps[index + 1..].iter();
                    let mut frees = rest.take_while(|step| matches!(step, Step::Free(_)));
                    frees.any(|step| matches!(step, Step::Free(freed) if *freed == name))
                        || freed_at.get(&name) == Some(&index)
                };
                let operands = run.operands.iter().filter_map(Argument::tensor);
                let reused = operands
                    .into_iter()
                    .find(|name| live.get(name) == Some(&bytes) && is_next(*name))
                    .filter(|_| is_elementwise(run.operation));
                if let Some(reused) = reused {
                    live.remove(&reused);
                    now -= bytes;
                }
                now += bytes;
                for (name, meta) in step.makes() {
                    live.insert(name, if is_expanded { 0 } else { meta.bytes() as u64 });
                }
            }
            Step::Free(name) => now -= live.remove(name).unwrap_or(0),
            Step::Exchange(_) | Step::Data { .. } => {}
        }
        most = most.max(now);
    }
    let tensors = steps.iter().map(|step| step.makes().len()).sum();
    Peak { bytes: most - before, tensors }
}

/// Up to four frees that follow an instruction directly.
pub(crate) fn dying(rest: &[WorkerCommand]) -> &[WorkerCommand] {
    let frees = rest.iter().take(4);
    let count = frees.take_while(|next| matches!(next, WorkerCommand::Free(_))).count();
    &rest[..count]
}
