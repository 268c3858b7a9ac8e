//! Dispatcher, workers, links and the clock.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_engine_native::NativeEngine;
use gt_ir::message::{Hello, Message, PROTOCOL_VERSION, Role, schema};
use gt_ir::{Piece, WorkerId};
use gt_worker::{Out, Work, Worker};

use crate::chance::Chance;

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
        let mut world = World {
            now: Duration::ZERO,
            chance: Chance::new(seed),
            delays,
            dispatcher: Dispatcher::new(String::new(), limits, None),
            workers: BTreeMap::new(),
            worker_peers: BTreeMap::new(),
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
        let core = Worker::new(name.clone(), NativeEngine::new(1));
        self.workers.insert(peer, Box::new(core));
        self.send(peer, DISPATCHER, hello(Role::Worker, name));
        peer
    }

    /// A client appears.
    pub fn add_client(&mut self) -> PeerId {
        let peer = self.new_peer();
        self.mailboxes.insert(peer, Vec::new());
        self.send(peer, DISPATCHER, hello(Role::Client, format!("client-{}", peer.0)));
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
        self.dispatcher.disconnect(self.now, peer, reason);
        self.send_outbox();
    }

    /// Delivers the next message; without one, lets time pass to the next deadline. `false` if
    /// nothing will ever happen again.
    pub fn step(&mut self) -> bool {
        let Some((&arrival, _)) = self.flights.iter().next() else {
            let Some(deadline) = self.dispatcher.next_deadline() else { return false };
            self.now = self.now.max(deadline);
            self.dispatcher.tick(self.now);
            self.send_outbox();
            return !self.flights.is_empty();
        };
        let flight = self.flights.remove(&arrival).expect("it was there a line ago");
        self.now = self.now.max(arrival.0);
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
                Message::WorkerLost { worker: lost, name } => worker.lose(lost, &name, &mut out),
                _ => {}
            }
            for out in out {
                match out {
                    Out::Dispatcher(message) => self.send(flight.to, DISPATCHER, message),
                    Out::Worker(to, piece) => {
                        // A worker that is dead takes nothing any more.
                        if let Some(&to) = self.worker_peers.get(&to) {
                            self.pieces_bytes += piece_bytes(&piece);
                            self.send(flight.to, to, Message::Piece(piece));
                        }
                    }
                }
            }
        } else if let Some(mailbox) = self.mailboxes.get_mut(&flight.to) {
            mailbox.push(flight.message);
        }
        true
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

fn hello(role: Role, name: String) -> Message {
    let (version, schema) = (PROTOCOL_VERSION, schema());
    let (machine, endpoint) = (String::new(), String::new());
    Message::Hello(Hello { version, schema, role, name, machine, endpoint })
}
