//! The simulated cluster: dispatcher, workers, links and the virtual clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gt_dispatcher::rules::Rules;
use gt_dispatcher::{Dispatcher, Limits, PeerId, ToPeer};
use gt_engine_native::NativeEngine;
use gt_ir::message::{Hello, Role, WorkerHello, WorkerToServer};
use gt_ir::{TensorData, WorkerId};
use gt_worker::{Options, Work, Worker};

use crate::accounts::Traffic;
use crate::fabric::{Hub, JoiningEngine};
use crate::faults::{Fault, NoticeDelay};
use crate::killers::MortalEngine;
use crate::links::{Delays, End, Flight, LinkEvents, Load};
use crate::power::WorkerFolder;
use crate::restart::DurableWorld;
use crate::slow::SlowEngine;
use crate::timed::{self, DeviceClock, TimedEngine};

/// The most steps until nothing more happens.
const MOST_STEPS: u64 = 1_000_000;
/// How often each session may have a deadline of which nothing comes before nothing ever will: as often
/// as it is looked whether it still waits for memory until others give up waiting for it.
const TRIES: usize = 60;

/// A simulated cluster.
pub struct World {
    pub(crate) now: Duration,
    /// When the dispatcher last acted on a deadline.
    ticked: Duration,
    pub(crate) links: LinkEvents,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) workers: BTreeMap<PeerId, Box<dyn Work>>,
    /// The links of workers, by the ids that the dispatcher has assigned.
    pub(crate) worker_peers: BTreeMap<WorkerId, PeerId>,
    /// All workers that ever started, in order.
    pub(crate) came: Vec<PeerId>,
    /// The clients that faults can name.
    pub(crate) clients: BTreeMap<usize, PeerId>,
    /// The reports to the dispatcher in case that messages between workers do not arrive, by link.
    pub(crate) sent: BTreeMap<(PeerId, PeerId), Vec<WorkerToServer>>,
    /// The links that their senders have noticed to be broken.
    pub(crate) failed: BTreeSet<(PeerId, PeerId)>,
    /// The rendezvous of the workers' engines, if they have a fabric.
    pub(crate) hub: Option<Arc<Hub>>,
    /// What has arrived at workers that are blocked in a collective call.
    pub(crate) waiting: BTreeMap<PeerId, Vec<(u64, Flight)>>,
    /// Collective calls that were given up as deadlocked.
    pub deadlocks: Vec<String>,
    /// What a restarted dispatcher resumes from, if anything.
    pub(crate) kept: Option<Box<DurableWorld>>,
    /// The names that workers requested.
    pub(crate) names: BTreeMap<PeerId, String>,
    /// The faults to come, by number of messages delivered; the next is last.
    pub(crate) planned: Vec<(u64, Fault)>,
    /// The bytes of all pieces sent.
    pub pieces_bytes: u64,
    /// The pairs of workers between which they went.
    pub pieces_pairs: BTreeSet<(PeerId, PeerId)>,
    /// Commands sent by clients.
    pub from_clients: Traffic,
    /// Commands sent to workers.
    pub to_workers: Traffic,
    /// The real time spent in the dispatcher, for benchmarks.
    pub dispatching: Duration,
    /// Messages that clients have received and not handled.
    pub(crate) mailboxes: BTreeMap<PeerId, Vec<ToPeer>>,
    /// The clients that were notified that tensors are, or may be, lost.
    pub(crate) unkept: BTreeSet<PeerId>,
    /// The weight that clients have sent and that was not returned yet.
    pub(crate) credit: BTreeMap<PeerId, u64>,
    /// The options of workers that start.
    pub options: Options,
    /// Whether nothing can be written to disk.
    pub is_disk_full: bool,
    /// Set when an operation has killed the process that computes it.
    pub(crate) died: Option<Arc<AtomicBool>>,
    /// Spilled tensors.
    pub files: BTreeMap<(PeerId, u64), TensorData>,
    /// The folders of workers' state, if they have any.
    pub(crate) has_states: bool,
    pub(crate) states: BTreeMap<PeerId, WorkerFolder>,
    /// Workers that do not know yet whether the dispatcher needs their state.
    pub(crate) unread: BTreeSet<PeerId>,
    /// The first worker that used the folder of each worker.
    pub(crate) owners: BTreeMap<PeerId, PeerId>,
    /// The clocks of workers' devices, if operations take virtual time.
    pub(crate) clocks: BTreeMap<PeerId, DeviceClock>,
    /// The next turns of these workers.
    pub(crate) turns: BTreeMap<PeerId, Duration>,
    next_peer: u64,
    /// The number of workers that were drained.
    pub drained: u64,
    /// The number of delivered messages.
    pub delivered: u64,
}

impl World {
    /// A cluster with `workers` workers on one thread each.
    pub fn new(seed: u64, workers: usize, delays: Delays, limits: Limits) -> World {
        World::with_hub(seed, workers, delays, limits, None)
    }

    /// Like [`World::new`], with engines that have a fabric if a hub is given.
    pub fn with_hub(
        seed: u64,
        workers: usize,
        delays: Delays,
        limits: Limits,
        hub: Option<Arc<Hub>>,
    ) -> World {
        let mut world = World {
            now: Duration::ZERO,
            ticked: Duration::ZERO,
            links: LinkEvents::new(seed, delays),
            dispatcher: Dispatcher::new(String::new(), limits, None),
            workers: BTreeMap::new(),
            worker_peers: BTreeMap::new(),
            came: Vec::new(),
            clients: BTreeMap::new(),
            sent: BTreeMap::new(),
            failed: BTreeSet::new(),
            hub,
            waiting: BTreeMap::new(),
            deadlocks: Vec::new(),
            kept: None,
            names: BTreeMap::new(),
            planned: Vec::new(),
            pieces_bytes: 0,
            pieces_pairs: BTreeSet::new(),
            from_clients: Traffic::default(),
            to_workers: Traffic::default(),
            dispatching: Duration::ZERO,
            mailboxes: BTreeMap::new(),
            unkept: BTreeSet::new(),
            credit: BTreeMap::new(),
            // A schedule must not depend on how fast this machine is.
            options: Options { is_timed: false, ..Options::default() },
            is_disk_full: false,
            died: None,
            files: BTreeMap::new(),
            has_states: false,
            states: BTreeMap::new(),
            unread: BTreeSet::new(),
            owners: BTreeMap::new(),
            clocks: BTreeMap::new(),
            turns: BTreeMap::new(),
            next_peer: 1,
            drained: 0,
            delivered: 0,
        };
        (0..workers).for_each(|_| {
            world.add_worker();
        });
        world
    }

    /// Starts a worker.
    pub fn add_worker(&mut self) -> PeerId {
        let name = format!("worker-{}", self.next_peer);
        self.start_worker(name)
    }

    /// Starts a worker with a name.
    pub fn start_worker(&mut self, name: String) -> PeerId {
        let peer = self.new_peer(Role::Worker);
        self.begin_worker(peer, name);
        peer
    }

    pub(crate) fn begin_worker(&mut self, peer: PeerId, name: String) {
        let mut core: Box<dyn Work> = if self.options.is_timed {
            let clock = self.clocks.entry(peer).or_default().clone();
            Box::new(Worker::new(name.clone(), TimedEngine::new(clock)).with_options(self.options))
        } else {
            self.make_worker(name.clone())
        };
        if self.has_states {
            core.keep_records();
            self.states.entry(peer).or_default();
        }
        self.workers.insert(peer, core);
        self.names.insert(peer, name.clone());
        self.came.push(peer);
        let hello = self.worker_hello(peer, name);
        self.send_to_server(peer, hello);
    }

    pub(crate) fn make_worker(&self, name: String) -> Box<dyn Work> {
        let options = self.options;
        match (&self.hub, &self.died) {
            (None, Some(died)) => {
                let engine = MortalEngine::new(Arc::clone(died));
                Box::new(Worker::new(name, engine).with_options(options))
            }
            (Some(hub), _) => {
                let engine = JoiningEngine::new(Arc::clone(hub));
                Box::new(Worker::new(name, engine).with_options(options))
            }
            (None, None) if options.pauses => {
                Box::new(Worker::new(name, SlowEngine::new()).with_options(options))
            }
            (None, None) => Box::new(Worker::new(name, NativeEngine::new(1)).with_options(options)),
        }
    }

    pub(crate) fn worker_hello(&self, peer: PeerId, name: String) -> Hello {
        let fabric = self.hub.is_some().then(|| Box::new(Hub::fabric(peer.number)));
        let number = peer.number;
        Hello::Worker(WorkerHello {
            fabric,
            // A small quantum, so that iterations are split.
            rate: if self.options.is_timed { timed::RATE } else { 1 << 16 },
            is_durable: self.has_states,
            // Other workers are notified of those that return.
            endpoint: if self.has_states { format!("worker {number}") } else { String::new() },
            token: self.token(peer),
            ..WorkerHello::new(name)
        })
    }

    /// Sets the operator's policy.
    pub fn set_rules(&mut self, rules: Rules) {
        self.dispatcher.set_rules(self.now, rules);
    }

    pub(crate) fn new_peer(&mut self, role: Role) -> PeerId {
        self.next_peer += 1;
        PeerId { role, number: self.next_peer - 1 }
    }

    /// Kills a worker; messages in flight to and from it are lost.
    pub fn kill_worker(&mut self, worker: PeerId) {
        self.workers.remove(&worker);
        self.waiting.remove(&worker);
        self.cut(worker, "killed");
    }

    pub(crate) fn cut(&mut self, peer: PeerId, reason: &str) {
        self.links.drop_flights(peer);
        self.waiting
            .values_mut()
            .for_each(|late| late.retain(|(_, late)| late.from != End::Peer(peer)));
        self.dispatcher.disconnect(self.now, peer, reason);
        self.send_outbox();
        self.let_meet(false);
    }

    /// Delivers the next message, or else advances the time to the next deadline. Returns `false`
    /// if nothing will ever happen again.
    pub fn step(&mut self) -> bool {
        self.inject();
        if self.is_deadline_next() {
            return true;
        }
        let Some((arrival, flight)) = self.links.pop() else { return self.pass_time() };
        self.now = self.now.max(arrival.0);
        let Flight { from, to, load } = flight;
        match load {
            Load::NoticeDelay => self.notice(from, to),
            Load::Start(before, name) => self.start_again(before, name),
            load => match to {
                End::Peer(peer) if self.waiting.contains_key(&peer) => {
                    let late = self.waiting.entry(peer).or_default();
                    late.push((arrival.1, Flight { from, to, load }));
                }
                _ => self.arrive(from, to, load),
            },
        }
        true
    }

    fn arrive(&mut self, from: End, to: End, load: Load) {
        match (to, load) {
            (_, Load::Message(message)) => {
                self.delivered += 1;
                self.deliver(from, to, message);
            }
            (End::Peer(worker), Load::Turn) if self.is_due(worker) => self.compute(worker),
            _ => {}
        }
    }

    /// Has the dispatcher act on a deadline that precedes the next arrival.
    fn is_deadline_next(&mut self) -> bool {
        let Some(deadline) = self.dispatcher.next_deadline() else { return false };
        let is_first = self.links.next().is_some_and(|arrival| deadline < arrival);
        if !is_first || deadline <= self.ticked {
            return false;
        }
        self.now = self.now.max(deadline);
        self.ticked = self.now;
        self.dispatcher.tick(self.now);
        self.send_outbox();
        true
    }

    /// With nothing in flight: gives up blocked collective calls, or else advances to a deadline.
    fn pass_time(&mut self) -> bool {
        if !self.waiting.is_empty() {
            let due = self.workers.iter().filter_map(|(peer, worker)| {
                let slots = worker.due()?.members.iter().map(|member| member.worker.0);
                Some(format!("{} for {:?}", peer.number, slots.collect::<Vec<_>>()))
            });
            let waits = format!("{} at {:?}", due.collect::<Vec<_>>().join(", "), self.now);
            self.deadlocks.push(waits);
            self.let_meet(true);
            return true;
        }
        if self.flush_states() || self.flush_journal() {
            return true;
        }
        // A deadline of a session without requests sends nothing and recurs: later deadlines may
        // act.
        for _ in 0..TRIES * (1 + self.dispatcher.population().0) {
            let Some(deadline) = self.dispatcher.next_deadline() else { return false };
            self.now = self.now.max(deadline);
            self.dispatcher.tick(self.now);
            self.send_outbox();
            if !self.links.is_empty() {
                return true;
            }
        }
        false
    }

    /// Runs a worker's turn.
    fn compute(&mut self, peer: PeerId) {
        let begin = self.set_clock(peer);
        let Some(worker) = self.workers.get_mut(&peer) else { return };
        let mut out = Vec::new();
        let goes_on = worker.step(&mut out);
        self.now = self.clocks.get(&peer).map_or(begin, DeviceClock::now);
        if self.died.as_ref().is_some_and(|died| died.swap(false, Ordering::Relaxed)) {
            // Its unsent messages are lost; a new worker replaces it.
            self.crash(peer, NoticeDelay::Soon);
            let after = Duration::from_micros(self.links.chance.below(300_000));
            let load = Load::Start(peer, self.names[&peer].clone());
            let (from, to) = (peer.into(), End::Server);
            self.links.put(self.now + after, Flight { from, to, load });
            return;
        }
        self.send_out(peer, out);
        if goes_on {
            let worker = self.workers.get(&peer).filter(|_| self.options.is_timed);
            let held = worker.and_then(|worker| worker.held_for()).unwrap_or_default();
            self.schedule_turn(self.now + held, peer);
        }
        self.now = begin;
        self.let_meet(false);
    }

    /// Steps until nothing more happens.
    ///
    /// # Panics
    /// It does not come to rest.
    pub fn settle(&mut self) {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < MOST_STEPS, "something recurs without end: it is {:?}", self.now);
        }
    }

    /// Removes and returns the messages that a client has received.
    pub fn receive(&mut self, client: PeerId) -> Vec<ToPeer> {
        self.mailboxes.get_mut(&client).map(std::mem::take).unwrap_or_default()
    }

    pub fn now(&self) -> Duration {
        self.now
    }
}
