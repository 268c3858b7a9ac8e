//! Suspicion: the commands of a session that may have killed workers.
//!
//! Batches that were in flight to a worker when it died are tried alone, one command at a time, so
//! that the command that kills the next worker is known exactly. A death may have an outside cause,
//! as where machines are rebooted in turn, so the command is tried again; after the third death, or
//! the second if there is no spare worker, it is given up, and its results are failures.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gt_ir::message::Failure;
use gt_ir::{ClientCommand, RequestId, TensorId};

/// How many workers a command may kill when it is tried alone before it is given up.
const DEATHS: usize = 3;
/// How many workers in a row may be lost while a session's values are being restored before the
/// session is no longer restored.
const STRIKES: u32 = 3;
/// How many commands of a session are given up before the session ends.
const GIVEN_UP: usize = 3;

/// Identifies a command in its session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum CommandKey {
    Output(TensorId),
    Free(TensorId),
    Request(RequestId),
    /// An iteration, by its first name and step.
    Iteration(TensorId, u32),
}

impl CommandKey {
    /// Returns the key of a command that results in commands for workers.
    pub fn of(command: &ClientCommand) -> Option<CommandKey> {
        match command {
            ClientCommand::Free(id) => Some(CommandKey::Free(*id)),
            ClientCommand::Invoke(invocation) => {
                Some(CommandKey::Iteration(invocation.bases[0], invocation.part.first))
            }
            other => other
                .made()
                .map(CommandKey::Output)
                .or_else(|| other.request().map(CommandKey::Request)),
        }
    }
}

/// A command that is tried alone.
pub(crate) struct TriedCommand {
    pub key: CommandKey,
    /// The client's batch that contains it.
    pub batch: u64,
    /// The failure that users see if workers die of it; [`Suspicion::worker_died`] adds the
    /// workers.
    pub failure: Failure,
}

/// The workers that a command killed while it was tried.
struct CommandDeaths {
    workers: Vec<String>,
    batch: u64,
    failure: Failure,
}

/// The consequence of a worker's death for a session that had commands in flight to it.
#[derive(PartialEq, Debug)]
pub(crate) enum TrialVerdict {
    /// The commands in flight are tried.
    Try,
    /// A command killed workers: it is not tried again.
    GiveUp(Arc<Failure>),
    /// The session ends, as its commands killed workers.
    End(Arc<Failure>),
}

/// The commands of a session that may have killed workers.
#[derive(Default)]
pub(crate) struct Suspicion {
    /// The batches that are tried.
    batches: Range<u64>,
    /// The command that is being tried, if nothing else of the session is in flight.
    tried: Option<TriedCommand>,
    /// The commands that killed workers while they were tried.
    deaths: BTreeMap<CommandKey, CommandDeaths>,
    /// The commands that are given up, with the batches that contain them.
    given_up: BTreeMap<CommandKey, (u64, Arc<Failure>)>,
    /// How many commands were given up in all.
    count: usize,
    /// How many workers were lost in a row while the session's values were being restored.
    strikes: u32,
}

impl Suspicion {
    /// Returns whether any batches are to be tried.
    pub fn is_open(&self) -> bool {
        !self.batches.is_empty()
    }

    /// Returns the number of the first batch after those that are tried.
    pub fn end(&self) -> u64 {
        self.batches.end
    }

    /// Returns whether a batch is to be tried alone.
    pub fn covers(&self, batch: u64) -> bool {
        self.batches.contains(&batch)
    }

    /// Returns whether a batch is planned one command at a time: it is tried, or a command of it is
    /// given up.
    pub fn is_planned_singly(&self, batch: u64) -> bool {
        self.covers(batch) || self.given_up.values().any(|(of, _)| *of == batch)
    }

    /// Returns whether an iteration of a batch is planned one operation at a time: it has killed a
    /// worker, or an operation of the batch is given up.
    pub fn is_expanded(&self, batch: u64, key: CommandKey) -> bool {
        self.deaths.contains_key(&key) || self.given_up.values().any(|(of, _)| *of == batch)
    }

    /// Returns whether commands that were tried have killed workers.
    pub fn has_killed(&self) -> bool {
        !self.deaths.is_empty()
    }

    /// Returns why a command is given up, if it is.
    pub fn failure(&self, key: CommandKey) -> Option<Arc<Failure>> {
        self.given_up.get(&key).map(|(_, failure)| Arc::clone(failure))
    }

    /// Registers the command that is sent next as tried; `None` if other commands are in flight
    /// with it.
    pub fn begin(&mut self, tried: Option<TriedCommand>) {
        self.tried = tried;
    }

    /// Registers the death of a worker to which these batches were in flight; `alone` if no
    /// commands of other sessions were.
    pub fn worker_died(
        &mut self,
        batches: Option<Range<u64>>,
        worker: &str,
        alone: bool,
    ) -> TrialVerdict {
        let tried = self.tried.take();
        let Some(Range { start, end }) = batches else { return TrialVerdict::Try };
        self.batches = match self.is_open() {
            true => self.batches.start.min(start)..self.batches.end.max(end),
            false => start..end,
        };
        let Some(TriedCommand { key, batch, failure }) = tried.filter(|_| alone) else {
            return TrialVerdict::Try;
        };
        let none = CommandDeaths { workers: Vec::new(), batch, failure };
        let deaths = self.deaths.entry(key).or_insert(none);
        deaths.workers.push(worker.to_string());
        if deaths.workers.len() < DEATHS { TrialVerdict::Try } else { self.give_up(key) }
    }

    /// Returns whether one more death makes a command given up.
    pub fn has_last_chance(&self) -> bool {
        self.last_chance().is_some()
    }

    fn last_chance(&self) -> Option<CommandKey> {
        let is_it = |(key, deaths): &(&CommandKey, &CommandDeaths)| {
            deaths.workers.len() == DEATHS - 1 && !self.given_up.contains_key(key)
        };
        self.deaths.iter().find(is_it).map(|(key, _)| *key)
    }

    /// Gives up the command that has one death left.
    pub fn give_up_last_chance(&mut self) -> TrialVerdict {
        self.last_chance().map_or(TrialVerdict::Try, |key| self.give_up(key))
    }

    fn give_up(&mut self, key: CommandKey) -> TrialVerdict {
        let Some(CommandDeaths { workers, batch, failure }) = self.deaths.get(&key) else {
            return TrialVerdict::Try;
        };
        let names: Vec<String> = workers.iter().map(|name| format!("'{name}'")).collect();
        let (names, reason) = (names.join(", "), &failure.reason);
        let reason = format!(
            "it ended the workers that ran it and nothing else, {names}: it is not run again ({reason})"
        );
        let worker = workers.last().cloned().unwrap_or_default();
        let failure = Arc::new(Failure { reason, worker, ..failure.clone() });
        self.count += 1;
        if self.count == GIVEN_UP || matches!(key, CommandKey::Free(_)) {
            return TrialVerdict::End(failure);
        }
        self.given_up.insert(key, (*batch, Arc::clone(&failure)));
        TrialVerdict::GiveUp(failure)
    }

    /// Registers the loss of a worker that was restoring the session's values.
    ///
    /// # Errors
    /// Several were lost in a row.
    pub fn strike(&mut self) -> Result<(), String> {
        if self.strikes == STRIKES {
            return Err(format!(
                "it was tried {STRIKES} times since the last snapshot, and each time the worker that restored them was lost"
            ));
        }
        self.strikes += 1;
        Ok(())
    }

    /// Clears the suspicion: all batches that were to be tried are done, and no worker has died of
    /// them.
    pub fn acquit(&mut self) {
        self.strikes = 0;
        self.batches = 0..0;
        self.tried = None;
        self.deaths.clear();
    }

    /// Forgets batches before this one: they are in a snapshot, and not replayed.
    pub fn forget_before(&mut self, batch: u64) {
        self.strikes = 0;
        self.given_up.retain(|_, (of, _)| *of >= batch);
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::SourceId;

    use super::*;

    fn tried(output: u64) -> Option<TriedCommand> {
        let failure = Failure::new("tanh of float32 (4,)", "16 bytes", "", SourceId(3));
        Some(TriedCommand { key: CommandKey::Output(TensorId(output)), batch: 5, failure })
    }

    #[test]
    fn only_batches_in_flight_when_a_worker_dies_are_tried() {
        let mut suspicion = Suspicion::default();
        assert_eq!(suspicion.worker_died(None, "w", false), TrialVerdict::Try);
        assert!(!suspicion.is_open());
        assert_eq!(suspicion.worker_died(Some(5..7), "w", false), TrialVerdict::Try);
        assert_eq!(suspicion.worker_died(Some(4..5), "w", false), TrialVerdict::Try);
        assert!(
            [3, 4, 5, 6, 7].map(|batch| suspicion.covers(batch))
                == [false, true, true, true, false]
        );
        suspicion.acquit();
        assert!(!suspicion.is_open());
    }

    #[test]
    fn a_command_is_given_up_after_three_deaths_while_tried_alone() {
        let mut suspicion = Suspicion::default();
        let hit = |suspicion: &mut Suspicion, output, alone| {
            suspicion.begin(tried(output));
            suspicion.worker_died(Some(5..6), "w", alone)
        };
        for (output, alone) in [(1, true), (2, true), (2, false), (1, true), (2, true)] {
            assert_eq!(hit(&mut suspicion, output, alone), TrialVerdict::Try, "{output} {alone}");
        }
        // A death before the command is sent again is not due to it.
        assert_eq!(suspicion.worker_died(Some(5..6), "w", true), TrialVerdict::Try);
        let TrialVerdict::GiveUp(failure) = hit(&mut suspicion, 2, true) else {
            panic!("the third")
        };
        assert!(failure.reason.contains("'w', 'w', 'w'") && failure.reason.contains("16 bytes"));
        assert!(suspicion.failure(CommandKey::Output(TensorId(2))).is_some());
        assert!(suspicion.failure(CommandKey::Output(TensorId(1))).is_none());
        suspicion.acquit();
        assert!(suspicion.is_planned_singly(5), "it may be planned again after another death");
        suspicion.forget_before(6);
        assert!(!suspicion.is_planned_singly(5));
    }

    #[test]
    fn two_deaths_suffice_without_a_spare_worker() {
        let mut suspicion = Suspicion::default();
        for _ in 0..2 {
            assert!(!suspicion.has_last_chance());
            suspicion.begin(tried(4));
            assert_eq!(suspicion.worker_died(Some(5..6), "w", true), TrialVerdict::Try);
        }
        assert!(suspicion.has_last_chance());
        assert!(matches!(suspicion.give_up_last_chance(), TrialVerdict::GiveUp(_)));
        assert!(
            !suspicion.has_last_chance()
                && suspicion.failure(CommandKey::Output(TensorId(4))).is_some()
        );
    }

    #[test]
    fn restoring_is_given_up_after_several_lost_workers() {
        let mut suspicion = Suspicion::default();
        (0..STRIKES).for_each(|_| assert!(suspicion.strike().is_ok()));
        let struck = suspicion.strike();
        assert!(struck.is_err_and(|reason| reason.contains("each time the worker that restored")));
        suspicion.forget_before(0);
        assert!(suspicion.strike().is_ok());
    }

    #[test]
    fn a_session_ends_when_several_of_its_commands_are_given_up() {
        let mut suspicion = Suspicion::default();
        for output in 0..3 {
            for _ in 0..DEATHS {
                suspicion.begin(tried(output));
                let verdict = suspicion.worker_died(Some(5..6), "w", true);
                assert_eq!(
                    matches!(verdict, TrialVerdict::End(_)),
                    output == 2 && suspicion.count == 3
                );
            }
        }
    }
}
