//! Reads the records of a journal into the state that they describe.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use gt_ir::message::ClientHello;
use gt_ir::status::{MINUTES, MinuteStatus};
use gt_ir::{SessionId, WorkerId};

use super::{BaseRecord, JournalRecord, StoredTensors};
use crate::library::StoredPublications;
use crate::named::SessionName;
use crate::numbers::LastNumbers;
use crate::paused::PausedBy;
use crate::planner::{Slots, TensorTable};
use crate::queue::{Pruned, SlotCount};

/// The sessions and workers of a server, as its journal records them.
#[derive(Default)]
pub struct History {
    pub(crate) last: LastNumbers,
    pub(crate) workers_next: u32,
    pub(crate) workers: BTreeMap<WorkerId, StoredWorker>,
    sessions: BTreeMap<SessionId, SessionHistory>,
    pub(crate) publications: StoredPublications,
    /// The weights of users that operators have set, and the users that they have paused.
    pub(crate) weights: BTreeMap<String, u32>,
    pub(crate) paused: BTreeSet<String>,
    /// The minutes of the last hour, each with when it began, in seconds since 1970.
    pub(crate) minutes: VecDeque<(u64, MinuteStatus)>,
}

/// A worker that may reconnect.
#[derive(Clone)]
pub(crate) struct StoredWorker {
    pub number: u32,
    pub name: String,
    pub token: u128,
}

/// The records from which a session is restored.
pub struct SessionHistory {
    pub number: SessionId,
    pub hello: Box<ClientHello>,
    pub(crate) name: Option<SessionName>,
    /// Whether it has no client that may return.
    pub is_detached: bool,
    /// Who has paused it, if it is paused.
    pub(crate) paused: Option<PausedBy>,
    /// Its weight among those of its user, if it was given one.
    pub(crate) weight: Option<u32>,
    /// The number of the client's messages that were received.
    pub received: u64,
    /// The last snapshot, `None` if there is none yet; or why the session cannot be restored.
    pub(crate) base: Result<Option<Box<BaseRecord>>, String>,
    /// The tensors of the last snapshot.
    pub(crate) tensors: TensorTable,
    batches: BTreeMap<u64, Vec<Bytes>>,
    pruned: BTreeMap<u64, Pruned>,
    /// The session's slots, and by batch the number of slots that plans use from that batch on.
    pub(crate) slots: Slots,
    counts: BTreeMap<u64, usize>,
}

/// A batch of a session's log.
pub(crate) struct StoredBatch {
    pub number: u64,
    pub frames: Vec<Bytes>,
    pub pruned: Pruned,
    pub slots: Option<SlotCount>,
}

impl History {
    /// Adds the next record.
    pub fn add(&mut self, record: JournalRecord) {
        use JournalRecord as R;
        match record {
            R::Numbers { session, incarnation, workers } => {
                (self.last, self.workers_next) = (LastNumbers { session, incarnation }, workers);
            }
            R::Worker { id, number, name, token } => {
                self.workers_next = self.workers_next.max(id.0 + 1);
                self.workers.insert(id, StoredWorker { number, name, token });
            }
            R::WorkerLost { id } => drop(self.workers.remove(&id)),
            R::Session { session, hello } => {
                self.last.session = self.last.session.max(session);
                let badge = hello.badge.as_ref();
                let is_paused = badge.is_some_and(|badge| self.paused.contains(&badge.user));
                let paused = is_paused.then_some(PausedBy::Operator);
                let history = SessionHistory {
                    number: session,
                    hello,
                    name: None,
                    is_detached: false,
                    paused,
                    weight: None,
                    received: 0,
                    base: Ok(None),
                    tensors: TensorTable::default(),
                    batches: BTreeMap::new(),
                    pruned: BTreeMap::new(),
                    slots: Slots::default(),
                    counts: BTreeMap::new(),
                };
                self.sessions.insert(session, history);
            }
            R::Batch { session, number, received, frames } => {
                self.of(session, |history| history.batch(number, received, frames));
            }
            R::Pruned { session, number, pruned } => self.of(session, |history| {
                history.pruned.entry(number).or_default().add(pruned);
            }),
            R::Slots { session, from, slots } => self.of(session, |history| {
                history.counts.insert(from, slots.count());
                history.slots = slots;
            }),
            R::Base(base) => self.of(base.session, |history| history.rebase(base)),
            R::Unkept { session, from, reason } => self.of(session, |history| {
                history.base = Err(reason);
                history.forget_before(from);
            }),
            R::SessionEnd { session } => {
                self.sessions.remove(&session);
                self.publications.ended.remove(&session);
            }
            R::Orders { weights, weighed, users, sessions, by_users } => {
                (self.weights, self.paused) =
                    (weights.into_iter().collect(), users.into_iter().collect());
                let weighed: BTreeMap<_, _> = weighed.into_iter().collect();
                for (number, history) in &mut self.sessions {
                    history.weight = weighed.get(number).copied();
                    history.paused = match sessions.contains(number) {
                        true => Some(PausedBy::Operator),
                        false => by_users.contains(number).then_some(PausedBy::User),
                    };
                }
            }
            R::Minute { at, minute } => {
                // Each is written once; an hour has 60.
                if self.minutes.len() == MINUTES {
                    self.minutes.pop_front();
                }
                self.minutes.push_back((at, minute));
            }
            R::Publication(publication) => self.publications.add(*publication),
            R::Version { user, name, version, origin } => {
                self.publications.versions.note((&user, &name, version), origin);
            }
            R::PublicationEnd { publication, origin } => self.publications.end(publication, origin),
            R::Holder { session, hello, name, is_detached } => self.of(session, |history| {
                history.hold(hello, name, is_detached);
            }),
        }
    }

    fn of(&mut self, session: SessionId, change: impl FnOnce(&mut SessionHistory)) {
        if let Some(history) = self.sessions.get_mut(&session) {
            change(history);
        }
    }

    /// Takes the sessions, in the order of their numbers.
    pub fn take_sessions(&mut self) -> Vec<SessionHistory> {
        std::mem::take(&mut self.sessions).into_values().collect()
    }
}

impl SessionHistory {
    fn batch(&mut self, number: u64, received: u64, frames: Vec<Bytes>) {
        self.received = self.received.max(received);
        self.batches.insert(number, frames);
    }

    fn hold(&mut self, hello: Box<ClientHello>, name: Option<SessionName>, is_detached: bool) {
        if hello.resume != self.hello.resume {
            // Another client, whose messages are counted anew.
            self.received = 0;
        }
        (self.hello, self.name, self.is_detached) = (hello, name, is_detached);
    }

    fn forget_before(&mut self, number: u64) {
        self.batches = self.batches.split_off(&number);
        self.pruned = self.pruned.split_off(&number);
    }

    fn rebase(&mut self, mut base: Box<BaseRecord>) {
        let is_known = self.base.is_ok();
        match std::mem::take(&mut base.tensors) {
            StoredTensors::All(pages) => {
                self.tensors = TensorTable::default();
                self.tensors.apply(pages);
            }
            StoredTensors::Changes(pages) if is_known => self.tensors.apply(pages),
            StoredTensors::Changes(_) => {
                self.base = Err("a snapshot is missing in the journal".into());
                return;
            }
        }
        self.received = self.received.max(base.received);
        self.forget_before(base.planned);
        // The last count before the base is valid until the next one.
        let last = self.counts.range(..=base.planned).next_back().map(|(_, count)| *count);
        self.counts = self.counts.split_off(&base.planned);
        self.counts.extend(last.map(|count| (base.planned, count)));
        self.base = Ok(Some(base));
    }

    /// Returns whether it continues without its client.
    pub fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Returns the number of the first batch since the base.
    ///
    /// # Errors
    /// Why the session cannot be restored.
    fn first(&self) -> Result<u64, String> {
        let base = self.base.as_ref().map_err(String::clone)?;
        Ok(base.as_ref().map_or(0, |base| base.planned))
    }

    /// Takes the batches since the base.
    ///
    /// # Errors
    /// One is missing, or the session cannot be restored.
    pub(crate) fn take_batches(&mut self) -> Result<Vec<StoredBatch>, String> {
        let first = self.first()?;
        let before = self.counts.range(..=first).next_back().map(|(_, count)| *count);
        let mut slots = before.map(SlotCount::Known);
        let mut all = Vec::with_capacity(self.batches.len());
        for (expected, (number, frames)) in (first..).zip(std::mem::take(&mut self.batches)) {
            if number != expected {
                return Err(format!("batch {expected} is missing in the journal"));
            }
            slots = self.counts.get(&number).copied().map(SlotCount::Known).or(slots);
            let pruned = self.pruned.remove(&number).unwrap_or_default();
            all.push(StoredBatch { number, frames, pruned, slots });
            // Without a record of another count, the batch is planned with the slots that the one
            // before it left.
            slots = slots.map(|_| SlotCount::Unchanged);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gt_ir::{SessionOrigin, TensorId};

    use super::*;
    use crate::journal::SnapshotState;
    use crate::planner::Host;

    fn batch(number: u64) -> JournalRecord {
        let frames = vec![Bytes::from(vec![number as u8])];
        JournalRecord::Batch { session: SessionId(3), number, received: number + 10, frames }
    }

    fn slots(count: u32) -> Slots {
        let mut slots = Slots::default();
        let host = |number| Host { worker: WorkerId(number), number, arithmetic: 0 };
        (0..count).for_each(|number| slots.add(host(number), |_| true));
        slots
    }

    fn base(snapshot: u64, planned: u64) -> JournalRecord {
        let (state, copies, blocks) = (Arc::new(SnapshotState::default()), Vec::new(), Vec::new());
        let tensors = StoredTensors::default();
        let base = BaseRecord {
            session: SessionId(3),
            snapshot,
            received: 0,
            planned,
            state,
            tensors,
            copies,
            blocks,
        };
        JournalRecord::Base(Box::new(base))
    }

    /// Returns the history of session 3 after these records, which are encoded and decoded.
    fn history(records: Vec<JournalRecord>) -> SessionHistory {
        let mut history = History::default();
        let hello = Box::new(ClientHello::new(SessionOrigin::new("ada")));
        let begin = JournalRecord::Session { session: SessionId(3), hello };
        for record in std::iter::once(begin).chain(records) {
            history.add(JournalRecord::decode(&record.encode()).expect("encoded above"));
        }
        history.take_sessions().pop().expect("its first record begins it")
    }

    #[test]
    fn a_base_replaces_the_records_before_it() {
        let pruned = Pruned { removed: vec![TensorId(7)], skipped: Vec::new() };
        let mut history = history(vec![
            JournalRecord::Slots { session: SessionId(3), from: 0, slots: slots(2) },
            batch(0),
            batch(1),
            batch(2),
            JournalRecord::Pruned { session: SessionId(3), number: 2, pruned: pruned.clone() },
            base(1, 2),
            JournalRecord::Slots { session: SessionId(3), from: 3, slots: slots(4) },
            batch(3),
        ]);
        assert_eq!((history.received, history.slots.count()), (13, 4));
        let batches = history.take_batches().unwrap();
        let numbers: Vec<_> = batches.iter().map(|batch| (batch.number, batch.slots)).collect();
        let known = |count| Some(SlotCount::Known(count));
        assert_eq!(numbers, [(2, known(2)), (3, known(4))]);
        assert_eq!(batches[0].pruned, pruned);
    }

    #[test]
    fn the_last_weight_of_a_session_counts() {
        let orders = |weighed: &[(u32, u32)]| JournalRecord::Orders {
            weights: Vec::new(),
            weighed: weighed.iter().map(|(session, of)| (SessionId(*session), *of)).collect(),
            users: Vec::new(),
            sessions: Vec::new(),
            by_users: Vec::new(),
        };
        assert_eq!(history(vec![orders(&[(3, 7), (4, 2)])]).weight, Some(7));
        assert_eq!(history(vec![orders(&[(3, 7)]), orders(&[(3, 5)])]).weight, Some(5));
        assert_eq!(history(vec![orders(&[(3, 7)]), orders(&[(4, 2)])]).weight, None);
    }

    #[test]
    fn a_gap_is_an_error_and_ended_sessions_are_dropped() {
        let missing = history(vec![batch(0), batch(2)]).take_batches().err();
        assert_eq!(missing.as_deref(), Some("batch 1 is missing in the journal"));
        let unkept =
            JournalRecord::Unkept { session: SessionId(3), from: 1, reason: "no room".into() };
        let unkept = history(vec![batch(0), unkept, batch(1)]).take_batches().err();
        assert_eq!(unkept.as_deref(), Some("no room"));
        let mut all = History::default();
        let hello = Box::new(ClientHello::new(SessionOrigin::new("ada")));
        all.add(JournalRecord::Session { session: SessionId(4), hello });
        all.add(JournalRecord::SessionEnd { session: SessionId(4) });
        assert!(all.take_sessions().is_empty() && all.last.session == SessionId(4));
    }
}
