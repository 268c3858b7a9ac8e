//! What of a session workers may have died of.
//!
//! Batches that were in flight to a worker when it died are tried alone, one command at a time. What a
//! worker dies of then is known exactly. Such a death may have come from outside, as where machines go
//! down in turn, so the command is tried again; after the third death, or the second where there are no
//! workers to spare, it is given up, and its results are failures.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use gt_ir::message::Failure;
use gt_ir::{ClientCommand, RequestId, TensorId};

/// How many workers die of a command that is tried alone before it is given up.
const DEATHS: usize = 3;
/// How many workers in a row are lost while a session's values are restored before nothing is kept of
/// it.
const STRIKES: u32 = 3;
/// How many commands of a session are given up before the session ends.
const GIVEN_UP: usize = 3;

/// Names a command in its session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Key {
    Made(TensorId),
    Freed(TensorId),
    Asked(RequestId),
    /// An iteration, by its first name and step.
    Iteration(TensorId, u32),
}

impl Key {
    /// That of a command which workers get anything of.
    pub fn of(command: &ClientCommand) -> Option<Key> {
        match command {
            ClientCommand::Free(id) => Some(Key::Freed(*id)),
            ClientCommand::Invoke(invocation) => {
                Some(Key::Iteration(invocation.bases[0], invocation.part.first))
            }
            other => other.made().map(Key::Made).or_else(|| other.request().map(Key::Asked)),
        }
    }
}

/// A command that is tried alone.
pub(crate) struct Tried {
    pub key: Key,
    /// The client's batch that it is of.
    pub batch: u64,
    /// What is told of it if workers die of it; [`Suspicion::hit`] adds which.
    pub failure: Failure,
}

/// The workers that died of a command while it was tried.
struct Deaths {
    workers: Vec<String>,
    batch: u64,
    failure: Failure,
}

/// What follows from a worker's death for a session that was hit.
#[derive(PartialEq, Debug)]
pub(crate) enum Verdict {
    /// What was in flight is tried.
    Try,
    /// Workers died of a command: it is not tried again.
    GiveUp(Arc<Failure>),
    /// The session ends, as workers died of its commands.
    End(Arc<Failure>),
}

/// What of a session workers may have died of.
#[derive(Default)]
pub(crate) struct Suspicion {
    /// The batches that are tried.
    batches: Range<u64>,
    /// The command that is being tried, if nothing else of the session is in flight.
    tried: Option<Tried>,
    /// The commands that workers died of while they were tried.
    deaths: BTreeMap<Key, Deaths>,
    /// The commands that are given up, with the batches that they are of.
    given_up: BTreeMap<Key, (u64, Arc<Failure>)>,
    /// How many were in all.
    count: usize,
    /// How many workers were lost in a row while the session's values were restored.
    strikes: u32,
}

impl Suspicion {
    /// Whether any batches are to be tried.
    pub fn is_open(&self) -> bool {
        !self.batches.is_empty()
    }

    /// The first batch after those that are tried.
    pub fn end(&self) -> u64 {
        self.batches.end
    }

    /// Whether a batch is to be tried alone.
    pub fn covers(&self, batch: u64) -> bool {
        self.batches.contains(&batch)
    }

    /// Whether a batch is planned one command at a time: it is tried, or a command of it is given up.
    pub fn is_single(&self, batch: u64) -> bool {
        self.covers(batch) || self.given_up.values().any(|(of, _)| *of == batch)
    }

    /// Whether an iteration of a batch is planned one operation at a time: a worker has died of it, or
    /// an operation of the batch is given up.
    pub fn is_expanded(&self, batch: u64, key: Key) -> bool {
        self.deaths.contains_key(&key) || self.given_up.values().any(|(of, _)| *of == batch)
    }

    /// Whether workers have died of commands that were tried.
    pub fn has_killed(&self) -> bool {
        !self.deaths.is_empty()
    }

    /// Why a command is given up, if it is.
    pub fn failure(&self, key: Key) -> Option<Arc<Failure>> {
        self.given_up.get(&key).map(|(_, failure)| Arc::clone(failure))
    }

    /// A command is sent that is tried; none if others are in flight beside it.
    pub fn begin(&mut self, tried: Option<Tried>) {
        self.tried = tried;
    }

    /// A worker has died to which these batches were in flight, and nothing of other sessions if it
    /// was `alone`.
    pub fn hit(&mut self, batches: Option<Range<u64>>, worker: &str, alone: bool) -> Verdict {
        let tried = self.tried.take();
        let Some(Range { start, end }) = batches else { return Verdict::Try };
        self.batches = match self.is_open() {
            true => self.batches.start.min(start)..self.batches.end.max(end),
            false => start..end,
        };
        let Some(Tried { key, batch, failure }) = tried.filter(|_| alone) else {
            return Verdict::Try;
        };
        let none = Deaths { workers: Vec::new(), batch, failure };
        let deaths = self.deaths.entry(key).or_insert(none);
        deaths.workers.push(worker.to_string());
        if deaths.workers.len() < DEATHS { Verdict::Try } else { self.give_up(key) }
    }

    /// Whether another worker that dies of a command would be the last.
    pub fn is_doubted(&self) -> bool {
        self.doubted().is_some()
    }

    fn doubted(&self) -> Option<Key> {
        let is_it = |(key, deaths): &(&Key, &Deaths)| {
            deaths.workers.len() == DEATHS - 1 && !self.given_up.contains_key(key)
        };
        self.deaths.iter().find(is_it).map(|(key, _)| *key)
    }

    /// Gives up a command that has one death left.
    pub fn give_up_doubted(&mut self) -> Verdict {
        self.doubted().map_or(Verdict::Try, |key| self.give_up(key))
    }

    fn give_up(&mut self, key: Key) -> Verdict {
        let Some(Deaths { workers, batch, failure }) = self.deaths.get(&key) else {
            return Verdict::Try;
        };
        let names: Vec<String> = workers.iter().map(|name| format!("'{name}'")).collect();
        let (names, reason) = (names.join(", "), &failure.reason);
        let reason = format!(
            "it ended the workers that ran it and nothing else, {names}: it is not run again ({reason})"
        );
        let worker = workers.last().cloned().unwrap_or_default();
        let failure = Arc::new(Failure { reason, worker, ..failure.clone() });
        self.count += 1;
        if self.count == GIVEN_UP || matches!(key, Key::Freed(_)) {
            return Verdict::End(failure);
        }
        self.given_up.insert(key, (*batch, Arc::clone(&failure)));
        Verdict::GiveUp(failure)
    }

    /// A worker is lost that was restoring the session's values.
    ///
    /// # Errors
    /// That was so several times in a row.
    pub fn strike(&mut self) -> Result<(), String> {
        if self.strikes == STRIKES {
            return Err(format!(
                "it was tried {STRIKES} times since the last snapshot, and each time the worker was lost that restored them"
            ));
        }
        self.strikes += 1;
        Ok(())
    }

    /// All batches that were to be tried are done, and no worker has died of them.
    pub fn acquit(&mut self) {
        self.strikes = 0;
        self.batches = 0..0;
        self.tried = None;
        self.deaths.clear();
    }

    /// Batches before this one are in a snapshot, and not planned again.
    pub fn forget_before(&mut self, batch: u64) {
        self.strikes = 0;
        self.given_up.retain(|_, (of, _)| *of >= batch);
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::SourceId;

    use super::*;

    fn tried(output: u64) -> Option<Tried> {
        let failure = Failure::new("tanh of float32 (4,)", "16 bytes", "", SourceId(3));
        Some(Tried { key: Key::Made(TensorId(output)), batch: 5, failure })
    }

    #[test]
    fn only_what_is_in_flight_when_a_worker_dies_is_tried() {
        let mut suspicion = Suspicion::default();
        assert_eq!(suspicion.hit(None, "w", false), Verdict::Try);
        assert!(!suspicion.is_open());
        assert_eq!(suspicion.hit(Some(5..7), "w", false), Verdict::Try);
        assert_eq!(suspicion.hit(Some(4..5), "w", false), Verdict::Try);
        assert!(
            [3, 4, 5, 6, 7].map(|batch| suspicion.covers(batch))
                == [false, true, true, true, false]
        );
        suspicion.acquit();
        assert!(!suspicion.is_open());
    }

    #[test]
    fn a_command_is_given_up_after_three_deaths_of_it_alone() {
        let mut suspicion = Suspicion::default();
        let hit = |suspicion: &mut Suspicion, output, alone| {
            suspicion.begin(tried(output));
            suspicion.hit(Some(5..6), "w", alone)
        };
        for (output, alone) in [(1, true), (2, true), (2, false), (1, true), (2, true)] {
            assert_eq!(hit(&mut suspicion, output, alone), Verdict::Try, "{output} {alone}");
        }
        // One that came before it was sent again was not of it.
        assert_eq!(suspicion.hit(Some(5..6), "w", true), Verdict::Try);
        let Verdict::GiveUp(failure) = hit(&mut suspicion, 2, true) else { panic!("the third") };
        assert!(failure.reason.contains("'w', 'w', 'w'") && failure.reason.contains("16 bytes"));
        assert!(suspicion.failure(Key::Made(TensorId(2))).is_some());
        assert!(suspicion.failure(Key::Made(TensorId(1))).is_none());
        suspicion.acquit();
        assert!(suspicion.is_single(5), "it may be planned again after another death");
        suspicion.forget_before(6);
        assert!(!suspicion.is_single(5));
    }

    #[test]
    fn two_deaths_are_enough_where_there_is_no_worker_to_spare() {
        let mut suspicion = Suspicion::default();
        for _ in 0..2 {
            assert!(!suspicion.is_doubted());
            suspicion.begin(tried(4));
            assert_eq!(suspicion.hit(Some(5..6), "w", true), Verdict::Try);
        }
        assert!(suspicion.is_doubted());
        assert!(matches!(suspicion.give_up_doubted(), Verdict::GiveUp(_)));
        assert!(!suspicion.is_doubted() && suspicion.failure(Key::Made(TensorId(4))).is_some());
    }

    #[test]
    fn values_are_restored_a_few_times() {
        let mut suspicion = Suspicion::default();
        (0..STRIKES).for_each(|_| assert!(suspicion.strike().is_ok()));
        let struck = suspicion.strike();
        assert!(struck.is_err_and(|reason| reason.contains("each time the worker was lost")));
        suspicion.forget_before(0);
        assert!(suspicion.strike().is_ok());
    }

    #[test]
    fn a_session_ends_whose_commands_end_workers_time_and_again() {
        let mut suspicion = Suspicion::default();
        for output in 0..3 {
            for _ in 0..DEATHS {
                suspicion.begin(tried(output));
                let verdict = suspicion.hit(Some(5..6), "w", true);
                assert_eq!(matches!(verdict, Verdict::End(_)), output == 2 && suspicion.count == 3);
            }
        }
    }
}
