//! The clients' sessions: their tensors, their queues and their credit.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use gt_ir::message::Message;

use crate::dispatcher::{Outbox, PeerId};
use crate::flow::Flow;
use crate::planner::{Catalogue, Plans};
use crate::queue::Queued;
use crate::templates::Templates;

/// One client.
pub(crate) struct Session {
    pub peer: PeerId,
    /// Its number, which is never used again.
    pub number: u32,
    /// As the log shows it.
    pub label: String,
    /// When it began, and how many instructions have come since.
    pub since: Duration,
    pub instructions: u64,
    /// Equal to another's where both can share memory.
    pub machine: String,
    pub catalogue: Catalogue,
    pub templates: Templates,
    pub plans: Plans,
    /// Batches that are not planned yet.
    pub queue: VecDeque<Queued>,
    pub flow: Flow,
    /// The weight of what it has sent and has not got back yet.
    pub open: u64,
    /// Since when it waits for a worker to appear.
    pub waiting_since: Option<Duration>,
}

impl Session {
    /// Gives the client back the weight of what is done.
    pub fn give_back(&mut self, outbox: &mut Outbox, weight: u64) {
        if weight > 0 {
            self.open = self.open.saturating_sub(weight);
            outbox.push(self.peer, Message::Done(weight));
        }
    }

    /// Whether there is a worker for it.
    pub fn has_worker(&self) -> bool {
        self.home_is_there().is_some()
    }

    fn home_is_there(&self) -> Option<()> {
        let slots = &self.catalogue.slots;
        slots.host(slots.home()?).map(|_| ())
    }
}

/// All sessions, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Sessions {
    by_peer: BTreeMap<PeerId, Session>,
    last: u32,
}

impl Sessions {
    /// Takes a client in.
    pub fn add(
        &mut self,
        now: Duration,
        peer: PeerId,
        name: &str,
        machine: String,
    ) -> &mut Session {
        self.last += 1;
        let number = self.last;
        self.by_peer.entry(peer).or_insert_with(|| Session {
            peer,
            number,
            label: format!("{name}#{number}"),
            since: now,
            instructions: 0,
            machine,
            catalogue: Catalogue::default(),
            templates: Templates::default(),
            plans: Plans::default(),
            queue: VecDeque::new(),
            flow: Flow::default(),
            open: 0,
            waiting_since: None,
        })
    }

    pub fn remove(&mut self, peer: PeerId) -> Option<Session> {
        self.by_peer.remove(&peer)
    }

    pub fn get(&self, peer: PeerId) -> Option<&Session> {
        self.by_peer.get(&peer)
    }

    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut Session> {
        self.by_peer.get_mut(&peer)
    }

    /// The session of a number.
    pub fn numbered(&self, number: u32) -> Option<&Session> {
        self.by_peer.values().find(|session| session.number == number)
    }

    pub fn numbered_mut(&mut self, number: u32) -> Option<&mut Session> {
        self.by_peer.values_mut().find(|session| session.number == number)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_peer.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_peer.values_mut()
    }

    pub fn len(&self) -> usize {
        self.by_peer.len()
    }

    pub fn peers(&self) -> Vec<PeerId> {
        self.by_peer.keys().copied().collect()
    }
}
