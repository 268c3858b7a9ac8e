//! Dead-code analysis of queued commands.
//!
//! A tensor that is freed before its instruction has begun need not be computed, unless a needed
//! command reads it. One backward pass over the commands finds out: a freed tensor is dead in all
//! earlier commands up to the last needed one that reads it, and an instruction is not needed if
//! all its results are dead.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::command::{ClientCommand, WorkerCommand};
use crate::instruction::{Instruction, TensorId};

/// A command's effects on tensors.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    pub makes: SmallVec<[TensorId; 2]>,
    pub reads: SmallVec<[TensorId; 4]>,
    pub frees: SmallVec<[TensorId; 2]>,
    /// Existing tensors that it may assign another value.
    pub changes: SmallVec<[TensorId; 2]>,
    /// Whether it must be executed even if its results are dead.
    pub is_needed: bool,
    /// Whether it reads all existing tensors.
    pub reads_all: bool,
}

impl Effects {
    fn of_instruction(instruction: &Instruction) -> Effects {
        let changes = instruction.commit().map(|commit| commit.news().collect());
        Effects {
            makes: instruction.outputs().map(|(id, _)| id).collect(),
            reads: instruction.reads().collect(),
            changes: changes.unwrap_or_default(),
            ..Effects::default()
        }
    }

    /// Returns the effects of a client's command; `None` for an invocation, whose effects depend on
    /// its template.
    pub fn of_client(command: &ClientCommand) -> Option<Effects> {
        Some(match command {
            ClientCommand::Run(instruction) => Effects::of_instruction(instruction),
            ClientCommand::Create(create) => {
                Effects { makes: SmallVec::from_slice(&[create.output]), ..Effects::default() }
            }
            ClientCommand::Free(id) => {
                Effects { frees: SmallVec::from_slice(&[*id]), ..Effects::default() }
            }
            ClientCommand::Fetch { tensor, .. } | ClientCommand::Locate { tensor, .. } => {
                let reads = SmallVec::from_slice(&[*tensor]);
                Effects { reads, is_needed: true, ..Effects::default() }
            }
            ClientCommand::Save(save) => {
                let reads = save.tensors.iter().copied().collect();
                Effects { reads, is_needed: true, ..Effects::default() }
            }
            ClientCommand::Keep(kept) => {
                let reads = kept.tensors.iter().map(|tensor| tensor.id).collect();
                Effects { reads, is_needed: true, ..Effects::default() }
            }
            ClientCommand::Invoke(_) => return None,
            _ => Effects { is_needed: true, ..Effects::default() },
        })
    }

    /// Returns the effects of a worker's command; `None` for an invocation.
    pub fn of_worker(command: &WorkerCommand) -> Option<Effects> {
        Some(match command {
            WorkerCommand::Run(instruction) => Effects::of_instruction(instruction),
            WorkerCommand::Create(create) => {
                Effects { makes: SmallVec::from_slice(&[create.output]), ..Effects::default() }
            }
            WorkerCommand::Free(id) => {
                Effects { frees: SmallVec::from_slice(&[*id]), ..Effects::default() }
            }
            WorkerCommand::Fetch { tensor, .. } => {
                let reads = SmallVec::from_slice(&[*tensor]);
                Effects { reads, is_needed: true, ..Effects::default() }
            }
            // Other slots depend on it.
            WorkerCommand::Exchange(exchange) => {
                let reads = exchange.input.into_iter().collect();
                let makes = exchange.output.iter().map(|(id, _)| *id).collect();
                Effects { reads, makes, is_needed: true, ..Effects::default() }
            }
            WorkerCommand::Save(part) => {
                let reads = part.blocks.iter().map(|block| block.tensor).collect();
                Effects { reads, is_needed: true, ..Effects::default() }
            }
            WorkerCommand::Snapshot(_) => {
                Effects { is_needed: true, reads_all: true, ..Effects::default() }
            }
            WorkerCommand::Invoke(_) => return None,
            _ => Effects { is_needed: true, ..Effects::default() },
        })
    }
}

/// The state of the analysis at some point of the stream.
#[derive(Default)]
pub struct Liveness {
    /// Freed later, and not read by a needed command before that.
    dead: FxHashSet<TensorId>,
    /// Freed later, and not read by a needed command or made before that.
    unread: FxHashSet<TensorId>,
}

/// Whether a command must be executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Needed,
    /// All its results are dead.
    Unwanted,
}

impl Liveness {
    /// Analyzes the command that precedes those analyzed so far.
    pub fn before(&mut self, effects: &Effects) -> Verdict {
        if effects.reads_all {
            self.dead.clear();
            self.unread.clear();
        }
        let mut results = effects.makes.iter().chain(&effects.changes).peekable();
        let is_wanted = effects.is_needed
            || results.peek().is_none()
            || results.any(|id| !self.dead.contains(id));
        for id in &effects.makes {
            self.dead.remove(id);
            self.unread.remove(id);
        }
        // An iteration's frees come after its reads, so they are handled first here.
        self.dead.extend(&effects.frees);
        self.unread.extend(&effects.frees);
        if !is_wanted {
            return Verdict::Unwanted;
        }
        for id in &effects.reads {
            self.dead.remove(id);
            self.unread.remove(id);
        }
        Verdict::Needed
    }

    /// Returns the tensors that no needed command uses or makes before their free: they may be
    /// freed immediately.
    pub fn free_at_once(self) -> FxHashSet<TensorId> {
        self.unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effects(makes: &[u64], reads: &[u64], frees: &[u64]) -> Effects {
        Effects {
            makes: makes.iter().copied().map(TensorId).collect(),
            reads: reads.iter().copied().map(TensorId).collect(),
            frees: frees.iter().copied().map(TensorId).collect(),
            ..Effects::default()
        }
    }

    fn verdicts(commands: &[Effects]) -> (Vec<bool>, Vec<u64>) {
        let mut liveness = Liveness::default();
        let mut wanted: Vec<bool> = commands
            .iter()
            .rev()
            .map(|command| liveness.before(command) == Verdict::Needed)
            .collect();
        wanted.reverse();
        let mut free: Vec<u64> = liveness.free_at_once().into_iter().map(|id| id.0).collect();
        free.sort_unstable();
        (wanted, free)
    }

    #[test]
    fn a_chain_that_is_let_go_of_is_unwanted_whole() {
        let chain = [
            effects(&[1], &[0], &[]),
            effects(&[2], &[1], &[]),
            effects(&[], &[], &[1]),
            effects(&[3], &[2], &[]),
            effects(&[], &[], &[2]),
            effects(&[], &[], &[3]),
        ];
        assert_eq!(verdicts(&chain), (vec![false, false, true, false, true, true], vec![]));
        // A fetch needs the second.
        let mut asked = chain.to_vec();
        asked.insert(2, Effects { is_needed: true, ..effects(&[], &[2], &[]) });
        assert_eq!(verdicts(&asked).0, [true, true, true, true, false, true, true]);
    }

    #[test]
    fn what_an_iteration_reads_and_frees_lives_until_then() {
        let wanted = [effects(&[5], &[4], &[4]), effects(&[6], &[5], &[5])];
        assert_eq!(verdicts(&wanted), (vec![true, true], vec![]));
        let mut unwanted = wanted.to_vec();
        unwanted.push(effects(&[], &[], &[6]));
        // A tensor made earlier can be freed immediately.
        assert_eq!(verdicts(&unwanted), (vec![false, false, true], vec![4]));
    }

    #[test]
    fn a_snapshot_has_all_that_there_is_before_it() {
        let snapshot = Effects { is_needed: true, reads_all: true, ..Effects::default() };
        let (before, after) = (effects(&[1], &[], &[]), effects(&[2], &[1], &[]));
        let commands = [before, snapshot, after, effects(&[], &[], &[1, 2])];
        assert_eq!(verdicts(&commands), (vec![true, true, false, true], vec![]));
    }

    #[test]
    fn a_step_ends_as_long_as_a_tensor_that_it_has_changed_is_wanted() {
        // 2 and 4 are new values of 1 and 3; 5 is the commit's own result.
        let changes = SmallVec::from_slice(&[TensorId(2), TensorId(4)]);
        let commit = Effects { changes, ..effects(&[5], &[2, 1, 4, 3], &[]) };
        let mut commands = vec![
            effects(&[2], &[1], &[]),
            effects(&[4], &[3], &[]),
            commit,
            effects(&[], &[], &[1, 3, 5]),
        ];
        assert_eq!(verdicts(&commands).0, [true; 4]);
        commands.push(effects(&[], &[], &[2]));
        assert_eq!(verdicts(&commands).0, [true; 5]);
        commands.push(effects(&[], &[], &[4]));
        assert_eq!(verdicts(&commands), (vec![false, false, false, true, true, true], vec![1, 3]));
    }

    #[test]
    fn what_others_count_on_is_done() {
        let exchange = Effects { is_needed: true, ..effects(&[2], &[1], &[]) };
        let commands = [effects(&[1], &[], &[]), exchange, effects(&[], &[], &[1, 2])];
        assert_eq!(verdicts(&commands).0, [true, true, true]);
    }
}
