//! The links of a world: the messages in flight, and which links are slow, silent or broken.
//!
//! A link behaves like TCP: messages arrive in order, and none is lost unless the link breaks. Then
//! messages in flight are lost, later ones are dropped, and each end notices independently, soon or
//! after too long a silence. Messages of different links overtake each other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_dispatcher::{FromPeer, PeerId, ToPeer};
use gt_worker::WorkerInput;

use crate::chance::Chance;

/// The bounds of messages' latencies, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    pub least: u64,
    pub most: u64,
}

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum End {
    Server,
    Peer(PeerId),
}

impl From<PeerId> for End {
    fn from(peer: PeerId) -> End {
        End::Peer(peer)
    }
}

/// A message on a link, by its receiver.
pub(crate) enum Mail {
    Server(FromPeer),
    Peer(ToPeer),
    /// From another worker, or a result of the worker's own file operations.
    Worker(WorkerInput),
}

/// The key of something in flight: its time of arrival, then the order of departure.
pub(crate) type Arrival = (Duration, u64);

pub(crate) struct Flight {
    pub from: End,
    pub to: End,
    pub load: Load,
}

pub(crate) enum Load {
    Message(Mail),
    /// A worker runs a turn.
    Turn,
    /// The receiver notices that its link with the sender is broken.
    NoticeDelay,
    /// A worker with this name starts, after one that has died.
    Start(PeerId, String),
}

pub(crate) struct LinkEvents {
    pub chance: Chance,
    delays: Delays,
    flights: BTreeMap<Arrival, Flight>,
    departures: u64,
    /// When the last message on a link arrives, which later ones must not overtake.
    latest: BTreeMap<(End, End), Duration>,
    broken: BTreeSet<(End, End)>,
}

impl LinkEvents {
    pub fn new(seed: u64, delays: Delays) -> LinkEvents {
        LinkEvents {
            chance: Chance::new(seed),
            delays,
            flights: BTreeMap::new(),
            departures: 0,
            latest: BTreeMap::new(),
            broken: BTreeSet::new(),
        }
    }

    /// Puts a message onto a link.
    pub fn send(&mut self, now: Duration, from: impl Into<End>, to: impl Into<End>, message: Mail) {
        let (from, to) = (from.into(), to.into());
        if self.broken.contains(&(from, to)) {
            return;
        }
        let spread = self.delays.most - self.delays.least + 1;
        let delay = Duration::from_micros(self.delays.least + self.chance.below(spread));
        let link = self.latest.entry((from, to)).or_default();
        let arrival = (now + delay).max(*link);
        *link = arrival;
        self.put(arrival, Flight { from, to, load: Load::Message(message) });
    }

    /// Schedules a turn of a worker at a random time from now on.
    pub fn turn(&mut self, now: Duration, worker: PeerId) {
        let delay = Duration::from_micros(1 + self.chance.below(self.delays.most));
        self.put_turn(now + delay, worker);
    }

    /// Schedules a turn of a worker at this time.
    pub fn put_turn(&mut self, at: Duration, worker: PeerId) {
        let end = worker.into();
        self.put(at, Flight { from: end, to: end, load: Load::Turn });
    }

    /// Schedules an arrival.
    pub fn put(&mut self, at: Duration, flight: Flight) {
        self.departures += 1;
        self.flights.insert((at, self.departures), flight);
    }

    /// Puts back an arrival that could not be handled.
    pub fn put_back(&mut self, now: Duration, departure: u64, flight: Flight) {
        self.flights.insert((now, departure), flight);
    }

    /// Removes and returns the next arrival.
    pub fn pop(&mut self) -> Option<(Arrival, Flight)> {
        self.flights.pop_first()
    }

    /// Returns the time of the next arrival.
    pub fn next(&self) -> Option<Duration> {
        self.flights.first_key_value().map(|((at, _), _)| *at)
    }

    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    pub fn is_broken(&self, from: impl Into<End>, to: impl Into<End>) -> bool {
        self.broken.contains(&(from.into(), to.into()))
    }

    /// Drops everything in flight to and from a lost peer.
    pub fn drop_flights(&mut self, peer: PeerId) {
        let end = End::from(peer);
        self.flights.retain(|_, flight| flight.from != end && flight.to != end);
    }

    /// Drops everything in flight, except what `keeps` accepts.
    pub fn retain(&mut self, keeps: impl Fn(&Flight) -> bool) {
        self.flights.retain(|_, flight| keeps(flight));
    }

    /// Breaks a link: messages in flight on it are lost.
    pub fn cut(&mut self, from: impl Into<End>, to: impl Into<End>) {
        let (from, to) = (from.into(), to.into());
        self.broken.insert((from, to));
        self.flights.retain(|_, flight| {
            !matches!(flight.load, Load::Message(_)) || (flight.from, flight.to) != (from, to)
        });
    }

    /// Delays all messages on a link until a time, in order and without loss.
    pub fn hold(&mut self, from: impl Into<End>, to: impl Into<End>, until: Duration) {
        let (from, to) = (from.into(), to.into());
        let latest = self.latest.entry((from, to)).or_default();
        *latest = until.max(*latest);
        let is_on = |flight: &Flight| {
            matches!(flight.load, Load::Message(_)) && (flight.from, flight.to) == (from, to)
        };
        let early: Vec<Arrival> = self.flights.range(..(until, 0)).map(|(at, _)| *at).collect();
        for at in early {
            if self.flights.get(&at).is_some_and(is_on)
                && let Some(flight) = self.flights.remove(&at)
            {
                self.flights.insert((until, at.1), flight);
            }
        }
    }
}
