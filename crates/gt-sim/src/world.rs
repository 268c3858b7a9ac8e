//! Dispatcher, workers, links and the clock.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_engine_native::NativeEngine;
use gt_ir::message::{Hello, Message, PROTOCOL_VERSION, Role, schema};
use gt_ir::{Fabric, Joint, Piece, WorkerId};
use gt_worker::{Out, Work, Worker};

use crate::chance::Chance;
use crate::fabric::{Hub, JoiningEngine};

/// How long messages take, in microseconds: each at least `least`, at most `most`.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    pub least: u64,
    pub most: u64,
}

/// A message under way. Ordered by arrival, then by departure.
type Arrival = (Duration, u64);

struct Flight {
    from: PeerId,
    to: PeerId,
    message: Message,
}

/// The dispatcher's end of every link.
const DISPATCHER: PeerId = PeerId::NOBODY;

/// Messages with commands, and their length on the wire.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Traffic {
    pub messages: u64,
    pub commands: u64,
    pub bytes: u64,
}

impl Traffic {
    fn count(&mut self, message: &Message) {
        if let Message::Stream(commands) = message {
            self.messages += 1;
            self.commands += commands.len() as u64;
            self.bytes += commands.iter().map(|command| command.wire_bytes() as u64).sum::<u64>();
        }
    }
}

/// A whole cluster in one place.
pub struct World {
    now: Duration,
    chance: Chance,
    delays: Delays,
    dispatcher: Dispatcher,
    workers: BTreeMap<PeerId, Box<dyn Work>>,
    /// The links of workers, by the ids that the dispatcher gave them.
    worker_peers: BTreeMap<WorkerId, PeerId>,
    /// Where the workers' engines join each other, if they do.
    hub: Option<Arc<Hub>>,
    /// What has arrived at workers that wait in a call of their engines for the others.
    waiting: BTreeMap<PeerId, Vec<(u64, Flight)>>,
    /// Bytes of tensors that workers have sent each other.
    pub pieces_bytes: u64,
    /// Streams of commands sent by clients, and to workers.
    pub from_clients: Traffic,
    pub to_workers: Traffic,
    /// How long the dispatcher has computed, by a real clock: for benchmarks alone.
    pub dispatching: Duration,
    /// What clients have received and not taken yet.
    mailboxes: BTreeMap<PeerId, Vec<Message>>,
    flights: BTreeMap<Arrival, Flight>,
    departures: u64,
    /// When the last message on a link arrives: later ones must not overtake it.
    latest: BTreeMap<(PeerId, PeerId), Duration>,
    next_peer: u64,
    /// How many messages have arrived.
    pub delivered: u64,
}

impl World {
    /// A cluster with `workers` workers on one thread each.
    pub fn new(seed: u64, workers: usize, delays: Delays, limits: Limits) -> World {
        World::with_hub(seed, workers, delays, limits, None)
    }

    /// As [`World::new`], with engines that join each other in a hub, if one is given.
    pub fn with_hub(
        seed: u64,
        workers: usize,
        delays: Delays,
        limits: Limits,
        hub: Option<Arc<Hub>>,
    ) -> World {
        let mut world = World {
            now: Duration::ZERO,
            chance: Chance::new(seed),
            delays,
            dispatcher: Dispatcher::new(String::new(), limits, None),
            workers: BTreeMap::new(),
            worker_peers: BTreeMap::new(),
            hub,
            waiting: BTreeMap::new(),
            pieces_bytes: 0,
            from_clients: Traffic::default(),
            to_workers: Traffic::default(),
            dispatching: Duration::ZERO,
            mailboxes: BTreeMap::new(),
            flights: BTreeMap::new(),
            departures: 0,
            latest: BTreeMap::new(),
            next_peer: 1,
            delivered: 0,
        };
        (0..workers).for_each(|_| {
            world.add_worker();
        });
        world
    }

    /// A worker appears.
    pub fn add_worker(&mut self) -> PeerId {
        let peer = self.new_peer();
        let name = format!("worker-{}", peer.0);
        let core: Box<dyn Work> = match &self.hub {
            Some(hub) => Box::new(Worker::new(name.clone(), JoiningEngine::new(Arc::clone(hub)))),
            None => Box::new(Worker::new(name.clone(), NativeEngine::new(1))),
        };
        let fabric = self.hub.is_some().then(|| Hub::fabric(peer.0));
        self.workers.insert(peer, core);
        self.send(peer, DISPATCHER, hello(Role::Worker, name, fabric));
        peer
    }

    /// A client appears.
    pub fn add_client(&mut self) -> PeerId {
        let peer = self.new_peer();
        self.mailboxes.insert(peer, Vec::new());
        self.send(peer, DISPATCHER, hello(Role::Client, format!("client-{}", peer.0), None));
        peer
    }

    fn new_peer(&mut self) -> PeerId {
        self.next_peer += 1;
        PeerId(self.next_peer - 1)
    }

    /// Puts a message on a client's link.
    pub fn send_from_client(&mut self, client: PeerId, message: Message) {
        self.send(client, DISPATCHER, message);
    }

    fn send(&mut self, from: PeerId, to: PeerId, message: Message) {
        let spread = self.delays.most - self.delays.least + 1;
        let delay = Duration::from_micros(self.delays.least + self.chance.below(spread));
        let link = self.latest.entry((from, to)).or_default();
        let arrival = (self.now + delay).max(*link);
        *link = arrival;
        self.departures += 1;
        if to == DISPATCHER && self.mailboxes.contains_key(&from) {
            self.from_clients.count(&message);
        } else if self.workers.contains_key(&to) {
            self.to_workers.count(&message);
        }
        self.flights.insert((arrival, self.departures), Flight { from, to, message });
    }

    /// A worker dies: what is under way to and from it is lost.
    pub fn kill_worker(&mut self, worker: PeerId) {
        self.workers.remove(&worker);
        self.waiting.remove(&worker);
        self.worker_peers.retain(|_, peer| *peer != worker);
        self.cut(worker, "killed");
    }

    /// A client vanishes without a word.
    pub fn kill_client(&mut self, client: PeerId) {
        self.mailboxes.remove(&client);
        self.cut(client, "killed");
    }

    fn cut(&mut self, peer: PeerId, reason: &str) {
        self.flights.retain(|_, flight| flight.from != peer && flight.to != peer);
        self.waiting.values_mut().for_each(|late| late.retain(|(_, late)| late.from != peer));
        self.dispatcher.disconnect(self.now, peer, reason);
        self.send_outbox();
        self.let_meet(false);
    }

    /// Delivers the next message; without one, lets time pass to the next deadline. `false` if
    /// nothing will ever happen again.
    pub fn step(&mut self) -> bool {
        let Some((&arrival, _)) = self.flights.iter().next() else {
            if !self.waiting.is_empty() {
                self.let_meet(true);
                return true;
            }
            let Some(deadline) = self.dispatcher.next_deadline() else { return false };
            self.now = self.now.max(deadline);
            self.dispatcher.tick(self.now);
            self.send_outbox();
            return !self.flights.is_empty();
        };
        let flight = self.flights.remove(&arrival).expect("it was there a line ago");
        self.now = self.now.max(arrival.0);
        if let Some(late) = self.waiting.get_mut(&flight.to) {
            late.push((arrival.1, flight));
            return true;
        }
        self.delivered += 1;
        if flight.to == DISPATCHER {
            let role =
                if self.workers.contains_key(&flight.from) { Role::Worker } else { Role::Client };
            let start = Instant::now();
            self.dispatcher.handle(self.now, flight.from, role, flight.message);
            self.dispatcher.tick(self.now);
            self.dispatching += start.elapsed();
            self.send_outbox();
        } else if let Some(worker) = self.workers.get_mut(&flight.to) {
            let mut out = Vec::new();
            match flight.message {
                Message::Stream(mut commands) => worker.handle(&mut commands, &mut out),
                Message::Piece(piece) => worker.receive(piece, &mut out),
                Message::Observe { on, sent } => worker.observe(on, sent),
                Message::WorkerLost { worker: lost, name } => worker.lose(lost, &name, &mut out),
                _ => {}
            }
            self.send_out(flight.to, out);
            self.let_meet(false);
        } else if let Some(mailbox) = self.mailboxes.get_mut(&flight.to) {
            mailbox.push(flight.message);
        }
        true
    }

    fn send_out(&mut self, worker: PeerId, out: Vec<Out>) {
        for out in out {
            match out {
                Out::Dispatcher(message) => self.send(worker, DISPATCHER, message),
                Out::Worker(to, piece) => {
                    // A worker that is dead takes nothing any more.
                    if let Some(&to) = self.worker_peers.get(&to) {
                        self.pieces_bytes += piece_bytes(&piece);
                        self.send(worker, to, Message::Piece(piece));
                    }
                }
            }
        }
    }

    /// Lets workers whose engines wait for each other meet, once all of a group are there, or one
    /// of them is dead. `given_up`: nobody else will come.
    fn let_meet(&mut self, given_up: bool) {
        while let Some((members, is_complete)) = self.next_meeting(given_up) {
            if let Some(hub) = &self.hub {
                hub.set_hopeless(!is_complete);
            }
            let mut called: Vec<(PeerId, Box<dyn Work>)> = Vec::new();
            for peer in members {
                called.extend(self.workers.remove_entry(&peer));
            }
            let outs: Vec<(PeerId, Vec<Out>)> = thread::scope(|scope| {
                let calls: Vec<_> = called
                    .iter_mut()
                    .map(|(peer, worker)| {
                        scope.spawn(|| {
                            let mut out = Vec::new();
                            worker.join(&mut out);
                            (*peer, out)
                        })
                    })
                    .collect();
                calls.into_iter().map(|call| call.join().expect("calls do not panic")).collect()
            });
            self.workers.extend(called);
            for (peer, out) in outs {
                self.send_out(peer, out);
                for (departure, flight) in self.waiting.remove(&peer).unwrap_or_default() {
                    self.flights.insert((self.now, departure), flight);
                }
            }
        }
    }

    /// The workers of a group that are to call their engines now, and whether these are all.
    /// Those that have to wait for others take no messages from now on.
    fn next_meeting(&mut self, given_up: bool) -> Option<(Vec<PeerId>, bool)> {
        let due: Vec<(PeerId, &Joint)> =
            self.workers.iter().filter_map(|(peer, worker)| Some((*peer, worker.due()?))).collect();
        for (_, joint) in &due {
            let there = due.iter().filter(|(_, other)| other == joint).map(|(peer, _)| *peer);
            let there: Vec<PeerId> = there.collect();
            let is_dead = |member| !self.worker_peers.contains_key(member);
            let is_complete = there.len() == joint.members.len();
            if is_complete || given_up || joint.members.iter().any(|member| is_dead(&member.worker))
            {
                return Some((there, is_complete));
            }
        }
        let waiting: Vec<PeerId> = due.into_iter().map(|(peer, _)| peer).collect();
        waiting.into_iter().for_each(|peer| {
            self.waiting.entry(peer).or_default();
        });
        None
    }

    /// Runs until nothing more happens.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    fn send_outbox(&mut self) {
        let mut out = Vec::new();
        self.dispatcher.take_outbox(&mut out);
        for (peer, message) in out {
            if let Message::Welcome(welcome) = &message
                && self.workers.contains_key(&peer)
            {
                self.worker_peers.insert(WorkerId(welcome.session), peer);
            }
            self.send(DISPATCHER, peer, message);
        }
    }

    /// What a client has received since it was last asked.
    pub fn receive(&mut self, client: PeerId) -> Vec<Message> {
        self.mailboxes.get_mut(&client).map(std::mem::take).unwrap_or_default()
    }

    /// The tensors that all workers hold together.
    pub fn tensors_held(&self) -> u64 {
        self.workers.values().map(|worker| worker.stats().tensors).sum()
    }

    pub fn now(&self) -> Duration {
        self.now
    }
}

fn piece_bytes(piece: &Piece) -> u64 {
    piece.result.as_ref().map_or(0, |content| content.meta().bytes() as u64)
}

fn hello(role: Role, name: String, fabric: Option<Fabric>) -> Message {
    let (version, schema) = (PROTOCOL_VERSION, schema());
    let (machine, endpoint) = (String::new(), String::new());
    Message::Hello(Hello { version, schema, role, name, machine, endpoint, fabric })
}
