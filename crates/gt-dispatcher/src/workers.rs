//! Per-worker state, and the assignment of sessions to home workers; [`network`]: which of them are
//! near each other.

mod network;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use gt_ir::message::{LinkRate, WorkerHello, is_same_token};
use gt_ir::{Fabric, WorkerId};
use rustc_hash::{FxHashMap, FxHasher};

use crate::drain::Drain;
use crate::journal::{JournalRecord, StoredWorker};
use crate::peer::PeerId;
use crate::planner::{Host, Network, Slots};

/// A worker that has completed the handshake.
pub(crate) struct RegisteredWorker {
    pub peer: PeerId,
    pub id: WorkerId,
    /// The token by which it is recognised after a restart of the server.
    token: u128,
    /// The number that configurations name it by.
    pub number: u32,
    pub name: String,
    pub machine: String,
    /// The name of its machine, and the rack of that; empty if unknown.
    pub host: String,
    pub rack: String,
    /// What it has measured of its links to other workers.
    links: BTreeMap<WorkerId, LinkRate>,
    /// The address at which other workers reach it.
    pub endpoint: String,
    /// How its engine reaches others, if it can.
    fabric: Option<Fabric>,
    /// The work ([`gt_ir::Operation::work`]) that its engine does in a second.
    rate: u64,
    /// Whether its engine computes the same bits each time.
    pub is_exact: bool,
    /// A hash of what its results depend on beside their commands: see [`Workers::arithmetic`].
    arithmetic: u64,
    /// The weight of the commands that it has not reported done.
    pub in_flight: u64,
    /// Since when it has had commands in flight.
    pub busy_since: Option<Duration>,
    /// The total time that it had commands in flight before that.
    pub busy: Duration,
    /// The number of sessions whose home slot it hosts.
    pub sessions: u32,
    /// Whether it announced that it stops: its end is not a death.
    pub is_stopped: bool,
    /// Whether its snapshots of sessions outlive its process.
    pub is_durable: bool,
    /// What is handed over before it ends, if it is to end.
    pub drain: Option<Box<Drain>>,
}

impl RegisteredWorker {
    /// Returns its record for the journal.
    pub fn record(&self) -> JournalRecord {
        let RegisteredWorker { id, number, name, token, .. } = self;
        JournalRecord::Worker { id: *id, number: *number, name: name.clone(), token: *token }
    }

    /// Counts commands of this weight that are sent to it.
    pub fn add_in_flight(&mut self, now: Duration, weight: u64) {
        self.in_flight += weight;
        self.busy_since.get_or_insert(now);
    }

    /// Counts commands of this weight that it has completed.
    pub fn done(&mut self, now: Duration, weight: u64) {
        self.in_flight = self.in_flight.saturating_sub(weight);
        if self.in_flight == 0
            && let Some(since) = self.busy_since.take()
        {
            self.busy += now.saturating_sub(since);
        }
    }

    /// Returns whether it is to end, and keeps what it has in the folder of its state.
    pub fn is_saving(&self) -> bool {
        self.drain.is_some() && self.is_durable
    }

    /// Returns its id and number.
    pub fn host(&self) -> Host {
        Host { worker: self.id, number: self.number, arithmetic: self.arithmetic }
    }
}

/// Returns the one whose token a peer proves to know. All are compared, so that the time does not
/// depend on which one it is.
fn of_token<K>(given: Option<u128>, all: impl Iterator<Item = (K, u128)>) -> Option<K> {
    let given = given?;
    let is_it = |token: u128| token != 0 && is_same_token(given, token);
    all.fold(None, |found, (of, token)| if is_it(token) { Some(of) } else { found })
}

/// All workers, in the order of their ids.
#[derive(Default)]
pub(crate) struct Workers {
    workers: Vec<RegisteredWorker>,
    ids: FxHashMap<PeerId, WorkerId>,
    next: u32,
    /// Lost workers that may reconnect with their snapshots: they have these on disk, or were
    /// connected before the server was restarted.
    expected: BTreeMap<WorkerId, StoredWorker>,
    /// When it last began to expect workers: those of a journal, or a lost one that keeps snapshots
    /// on disk.
    expecting_since: Option<Duration>,
    /// The number of workers announced by the operator, until that many are connected; then 0.
    announced: usize,
    /// The disconnected workers that were drained, with tensors in the folders of their state.
    pub drained: BTreeSet<WorkerId>,
    network: Network,
    /// What workers reported that their results depend on, by its hash.
    arithmetics: BTreeMap<u64, String>,
}

impl Workers {
    /// Adds a worker, under another name if its own is taken. Its number is its name, if that is a
    /// free number, or else the first free one.
    pub fn add(&mut self, peer: PeerId, hello: WorkerHello) -> &RegisteredWorker {
        let WorkerHello {
            mut name,
            machine,
            host,
            rack,
            endpoint,
            fabric,
            rate,
            is_exact,
            arithmetic: reported,
            is_durable,
            token: given,
            ..
        } = hello;
        let (token, known) = (given.unwrap_or(0), self.expected_id(given));
        let back = known.and_then(|id| Some((id, self.expected.remove(&id)?)));
        let taken = |name: &str| self.workers.iter().any(|worker| worker.name == name);
        if taken(&name) {
            // Errors and statistics name workers, so names must be unique.
            let others = (2..).map(|count| format!("{name}.{count}"));
            name = others.into_iter().find(|other| !taken(other)).expect("one is free");
        }
        let id = known.unwrap_or(WorkerId(self.next));
        self.next = self.next.max(id.0 + 1);
        let expected = |number: &u32| self.expected.values().any(|other| other.number == *number);
        let free = |number: &u32| {
            !expected(number) && self.workers.iter().all(|worker| worker.number != *number)
        };
        self.drained.remove(&id);
        let own = back.map(|(_, worker)| worker.number).or_else(|| name.parse().ok());
        let own = own.filter(free).or_else(|| (0..).find(free));
        let number = own.expect("there are fewer than 2^32 workers");
        let mut hasher = FxHasher::default();
        reported.hash(&mut hasher);
        let arithmetic = hasher.finish();
        self.arithmetics.insert(arithmetic, reported);
        self.ids.insert(peer, id);
        let place = self.workers.partition_point(|worker| worker.id < id);
        self.workers.insert(
            place,
            RegisteredWorker {
                peer,
                id,
                token,
                number,
                name,
                machine,
                host,
                rack,
                links: BTreeMap::new(),
                endpoint,
                fabric: fabric.map(|fabric| *fabric),
                rate,
                is_exact,
                arithmetic,
                in_flight: 0,
                busy_since: None,
                busy: Duration::ZERO,
                sessions: 0,
                is_stopped: false,
                is_durable,
                drain: None,
            },
        );
        self.update_network();
        &self.workers[place]
    }

    /// Describes what the results of workers of this arithmetic depend on.
    pub fn arithmetic(&self, number: u64) -> &str {
        self.arithmetics.get(&number).map_or("another arithmetic", String::as_str)
    }

    fn expected_id(&self, given: Option<u128>) -> Option<WorkerId> {
        of_token(given, self.expected.iter().map(|(id, worker)| (*id, worker.token)))
    }

    /// Returns whether the worker of a hello was connected before, and is expected to reconnect.
    pub fn expects(&self, hello: &WorkerHello) -> bool {
        self.expected_id(hello.token).is_some()
    }

    /// Returns the connection that the worker of a hello had before, if its loss has not been
    /// noticed yet.
    pub fn earlier(&self, hello: &WorkerHello) -> Option<PeerId> {
        let all = self.workers.iter().map(|worker| (worker.peer, worker.token));
        of_token(hello.token, all)
    }

    /// Expects a lost worker to reconnect with its snapshots.
    pub fn expect_back(&mut self, now: Duration, lost: &RegisteredWorker) {
        self.expecting_since = Some(now);
        let RegisteredWorker { id, number, name, token, .. } = lost;
        let stored = StoredWorker { number: *number, name: name.clone(), token: *token };
        self.expected.insert(*id, stored);
    }

    /// Returns whether a worker is connected, or may reconnect.
    pub fn may_rejoin(&self, id: WorkerId) -> bool {
        self.by_id(id).is_some() || self.expected.contains_key(&id)
    }

    /// Returns whether a worker is connected, and is not to end.
    pub fn stays(&self, id: WorkerId) -> bool {
        self.by_id(id).is_some_and(|worker| worker.drain.is_none())
    }

    /// Expects these workers to reconnect, and get their ids; others get ids from `next` on.
    pub fn expect(&mut self, now: Duration, workers: BTreeMap<WorkerId, StoredWorker>, next: u32) {
        self.expecting_since = Some(now);
        self.next = self.next.max(next);
        self.expected = workers;
    }

    /// Stops to expect workers, but those that were drained if these are to be kept. Returns those
    /// that have not reconnected.
    pub fn forget_expected(&mut self, keep_drained: bool) -> Vec<WorkerId> {
        if !keep_drained {
            self.drained.clear();
        }
        let gone: Vec<WorkerId> =
            self.expected.keys().filter(|id| !self.drained.contains(id)).copied().collect();
        self.expected.retain(|id, _| self.drained.contains(id));
        self.expecting_since = self.expecting_since.filter(|_| !self.expected.is_empty());
        gone
    }

    /// Returns when it last began to expect workers; `None` if it expects none any more.
    pub fn expecting_since(&self) -> Option<Duration> {
        self.expecting_since
    }

    /// Sets the number of workers that are starting.
    pub fn announce(&mut self, count: usize) {
        self.announced = count;
    }

    /// Returns whether fewer workers are connected than were announced.
    pub fn lack_announced(&self) -> bool {
        self.workers.len() < self.announced
    }

    /// Ends the announcement, if that many are connected.
    pub fn end_announcement(&mut self) {
        if !self.lack_announced() {
            self.announced = 0;
        }
    }

    /// Returns the workers that may reconnect.
    pub fn expected(&self) -> impl Iterator<Item = WorkerId> {
        self.expected.keys().copied()
    }

    /// Returns the next id of a new worker.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// Returns the name of a worker that is connected or may reconnect.
    pub fn known_name(&self, id: WorkerId) -> Option<&str> {
        let expected = self.expected.get(&id).map(|worker| worker.name.as_str());
        self.by_id(id).map(|worker| worker.name.as_str()).or(expected)
    }

    /// Returns the same for messages: quoted, or the number of a worker that is unknown.
    pub fn name_of(&self, id: WorkerId) -> String {
        self.known_name(id).map_or_else(|| id.0.to_string(), |name| format!("'{name}'"))
    }

    /// Returns the slots of a session by number, each with the name of its worker; empty for none.
    pub fn workers_by_slot(&self, slots: &Slots) -> Vec<(u32, String)> {
        let name = |slot| slots.host(slot).and_then(|host| Some(self.by_id(host)?.name.clone()));
        let numbers = slots.numbers().into_iter();
        numbers.map(|(number, slot)| (number, name(slot).unwrap_or_default())).collect()
    }

    /// Returns the records of all workers that are connected or may reconnect.
    pub fn records(&self) -> impl Iterator<Item = JournalRecord> {
        let expected = self.expected.iter().map(|(id, worker)| {
            let StoredWorker { number, name, token } = worker.clone();
            JournalRecord::Worker { id: *id, number, name, token }
        });
        self.workers.iter().map(RegisteredWorker::record).chain(expected)
    }

    pub fn remove(&mut self, peer: PeerId) -> Option<RegisteredWorker> {
        let id = self.ids.remove(&peer)?;
        let index = self.index(id)?;
        let removed = self.workers.remove(index);
        for worker in &mut self.workers {
            worker.links.remove(&id);
        }
        self.update_network();
        Some(removed)
    }

    pub fn get(&self, peer: PeerId) -> Option<&RegisteredWorker> {
        Some(&self.workers[self.index(*self.ids.get(&peer)?)?])
    }

    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut RegisteredWorker> {
        self.by_id_mut(*self.ids.get(&peer)?)
    }

    /// Returns the worker with this id.
    pub fn by_id(&self, id: WorkerId) -> Option<&RegisteredWorker> {
        Some(&self.workers[self.index(id)?])
    }

    pub fn by_id_mut(&mut self, id: WorkerId) -> Option<&mut RegisteredWorker> {
        let index = self.index(id)?;
        Some(&mut self.workers[index])
    }

    /// Returns the index of a worker; workers are in the order of their ids.
    fn index(&self, id: WorkerId) -> Option<usize> {
        self.workers.binary_search_by_key(&id, |worker| worker.id).ok()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut RegisteredWorker> {
        self.workers.iter_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = &RegisteredWorker> {
        self.workers.iter()
    }

    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Returns the work that the slowest engine does in a second.
    pub fn rate(&self) -> u64 {
        self.workers.iter().map(|worker| worker.rate).min().unwrap_or(u64::MAX)
    }

    /// Assigns a session's home to one of these workers: the one with the fewest homes, then the
    /// lowest number.
    pub fn assign(&mut self, among: &[Host]) -> Option<WorkerId> {
        let workers = self.workers.iter_mut().filter(|worker| among.contains(&worker.host()));
        let worker = workers.min_by_key(|worker| (worker.sessions, worker.number))?;
        worker.sessions += 1;
        Some(worker.id)
    }

    /// Counts a session's home on a worker that hosts its home slot for another reason.
    pub fn count_home(&mut self, id: WorkerId) {
        if let Some(worker) = self.by_id_mut(id) {
            worker.sessions += 1;
        }
    }

    /// Removes a session's home from a worker's count.
    pub fn release(&mut self, id: WorkerId) {
        if let Some(worker) = self.by_id_mut(id) {
            worker.sessions = worker.sessions.saturating_sub(1);
        }
    }
}
