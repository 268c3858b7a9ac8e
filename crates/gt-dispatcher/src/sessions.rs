//! Per-client state: tensors, templates, queue and credit.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use gt_ir::entitlement::{Entitlement, Usage};
use gt_ir::message::{Hello, Message};
use gt_ir::{ClientCommand, SlotId, codec};

use crate::dispatcher::{Awaited, Outbox, PeerId, Shortage, Warned};
use crate::flow::Flow;
use crate::journal::JournalRecord;
use crate::lineage::{Lineage, log};
use crate::planner::{Catalogue, Plans, Slots};
use crate::queue::{Queued, SlotCount};
use crate::templates::Templates;
use crate::unread::Unread;

/// The session of one client.
pub(crate) struct Session {
    pub peer: PeerId,
    /// Unique; never reused.
    pub number: u32,
    /// The number of its lanes on workers: another one each time that they are made again.
    pub run: u32,
    /// Its name in the log: the user's, or else the client's.
    pub label: String,
    /// The hello that it began with.
    pub hello: Box<Hello>,
    /// How many of the client's messages were received with the last batch.
    pub received: u64,
    /// When it began.
    pub since: Duration,
    /// How many instructions it has received.
    pub instructions: u64,
    /// What it is entitled to on each worker.
    pub entitlement: Entitlement,
    pub catalogue: Catalogue,
    pub templates: Templates,
    pub plans: Plans,
    /// Batches not planned yet.
    pub queue: VecDeque<Queued>,
    pub flow: Flow,
    pub unread: Unread,
    /// The weight that the client has sent and not got back.
    pub open: u64,
    /// Whether the client waits for credit, and so has sent all that it has issued.
    pub waits: bool,
    /// Since when it has had queued batches but no worker.
    pub waiting_since: Option<Duration>,
    /// When it last sent something, or had something done.
    pub active: Duration,
    /// The limits that it was warned of.
    pub warned: Vec<Warned>,
    /// Whether its user was told that there are workers beyond its slots.
    pub knows_spare: bool,
    /// The device time that it has used, in nanoseconds.
    pub device: u64,
    /// The bytes that it holds in memory, and elsewhere, in each slot, by number.
    bytes: Vec<(u64, u64)>,
    /// What its slots wait for memory for.
    pub shortages: BTreeMap<SlotId, Shortage>,
    /// What it is made again from, if it is.
    pub lineage: Option<Box<Lineage>>,
    /// What it waits for, if the server was started again.
    pub awaited: Option<Box<Awaited>>,
    /// Whether templates were expanded in its queue: they are ahead of what is planned.
    pub is_expanded: bool,
}

impl Session {
    /// Returns the credit for completed weight to the client.
    pub fn give_back(&mut self, outbox: &mut Outbox, weight: u64) {
        if weight > 0 {
            debug_assert!(weight <= self.open, "gives back {weight} of {}", self.open);
            self.open = self.open.saturating_sub(weight);
            outbox.push(self.peer, Message::Done(weight));
        }
    }

    /// It sends something, or has something done.
    pub fn is_active(&mut self, now: Duration) {
        self.active = now;
        self.warned.retain(|warned| !warned.is_of_idleness());
    }

    /// A slot's worker says what was used.
    pub fn use_up(&mut self, slot: SlotId, usage: Usage) {
        self.device = self.device.saturating_add(usage.device);
        let slot = slot.0 as usize;
        if slot >= self.bytes.len() {
            self.bytes.resize(slot + 1, (0, 0));
        }
        self.bytes[slot] = (usage.bytes, usage.spilled);
    }

    /// The bytes that it holds on all workers: in memory, and elsewhere.
    pub fn bytes(&self) -> (u64, u64) {
        let add = |all: (u64, u64), own: &(u64, u64)| (all.0 + own.0, all.1 + own.1);
        self.bytes.iter().fold((0, 0), add)
    }

    /// The bytes that it holds in a slot, wherever they are.
    pub fn bytes_in(&self, slot: SlotId) -> u64 {
        self.bytes.get(slot.0 as usize).map_or(0, |(memory, elsewhere)| memory + elsewhere)
    }

    /// Notes a batch of the client in its lineage; returns its number there. What asks about
    /// the moment only is not noted, and what is answered already is taken out of it.
    pub fn log(
        &mut self,
        batch: &mut Vec<ClientCommand>,
        frames: Option<Vec<Bytes>>,
        weight: u64,
    ) -> Option<u64> {
        let lineage = self.lineage.as_mut()?;
        if batch.iter().all(ClientCommand::is_momentary) {
            return None;
        }
        let (requests, shared) = (log::requests(batch), log::shared_bytes(batch));
        let frames = frames.unwrap_or_else(|| {
            let message = Message::Stream(std::mem::take(batch));
            let frames = codec::encode(&message);
            if let Message::Stream(commands) = message {
                *batch = commands;
            }
            frames
        });
        let number = lineage.log.add(frames, shared, weight, requests);
        lineage.log.take_answered(self.received, batch);
        Some(number)
    }

    /// Its slots, also before its workers are back.
    pub fn slots(&self) -> &Slots {
        let awaited = self.awaited.as_ref().filter(|awaited| !awaited.is_new);
        awaited.map_or(&self.catalogue.slots, |awaited| &awaited.slots)
    }

    /// The records that a journal of it begins with.
    pub fn records(&self) -> Vec<JournalRecord> {
        let (session, hello) = (self.number, self.hello.clone());
        let mut all = vec![JournalRecord::Session { session, hello }];
        if let Some(lineage) = &self.lineage {
            all.extend(lineage.records(session, self.received, self.slots()));
        }
        all
    }

    /// Whether its tensors are made again if they are lost.
    pub fn is_kept(&self) -> bool {
        self.lineage.as_ref().is_some_and(|lineage| lineage.base.is_ok())
    }

    /// Why its tensors would be lost with a worker; empty if they would not.
    pub fn unkept(&self) -> String {
        match &self.lineage {
            None => "nothing is kept of sessions here".into(),
            Some(lineage) => lineage.base.as_ref().err().cloned().unwrap_or_default(),
        }
    }

    /// Since when it waits for a worker, whichever. One that waits for its own says so itself, unless
    /// there `is_none` at all.
    pub fn waits_for_any(&self, is_none: bool) -> Option<Duration> {
        self.waiting_since.filter(|_| self.awaited.is_none() || is_none)
    }

    /// Whether it has a batch, and room for it: in its lanes' windows, and for values.
    pub fn is_ready(&self, window: u64) -> bool {
        let home = self.catalogue.slots.home();
        !self.queue.is_empty()
            && self.has_worker()
            && self.unread.has_room()
            && self.lineage.as_ref().is_none_or(|it| it.has_room() && !it.is_waiting)
            && home.is_some_and(|home| self.flow.has_room(home, window))
    }

    /// Whether its next batch is to be tried alone.
    pub fn is_tried_next(&self) -> bool {
        let lineage = self.lineage.as_ref();
        let next = self.queue.front();
        lineage.zip(next).is_some_and(|(lineage, next)| lineage.suspicion.covers(next.batch))
    }

    /// Whether batches wait to be planned.
    pub fn has_queued(&self) -> bool {
        let lineage = self.lineage.as_ref();
        !self.queue.is_empty() || lineage.is_some_and(|lineage| lineage.log.is_replayed())
    }

    /// Lets plans use so many slots while batches are planned anew, and all afterwards.
    pub fn show_slots(&mut self, count: Option<SlotCount>) {
        let slots = &mut self.catalogue.slots;
        match count {
            Some(SlotCount::Known(count)) => slots.show(Some(count)),
            Some(SlotCount::Unchanged) => {}
            None if slots.is_limited() => slots.show(None),
            None => {}
        }
    }

    /// It holds nothing: its lanes are made again.
    pub fn forget_bytes(&mut self) {
        self.bytes.clear();
    }

    /// What workers are told of its entitlement: nothing, if that is everybody's.
    pub fn admission(&self) -> Option<Message> {
        let (session, entitlement) = (self.run, self.entitlement.clone());
        (entitlement != Entitlement::default()).then_some(Message::Admit { session, entitlement })
    }

    /// Whether what is planned is recorded, or will be by a queued command.
    pub fn is_explained(&self) -> bool {
        let begins =
            |command: &ClientCommand| matches!(command, ClientCommand::Explain { begin: true, .. });
        let mut queued = self.queue.iter().flat_map(|batch| &batch.commands);
        self.catalogue.recorder.is_some() || queued.any(begins)
    }

    /// Whether its home slot is on a worker.
    pub fn has_worker(&self) -> bool {
        self.catalogue.slots.home_worker().is_some()
    }
}

/// All sessions, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Sessions {
    by_peer: BTreeMap<PeerId, Session>,
    last: u32,
    /// The device time that sessions which have ended have used, in nanoseconds, by team and user.
    past: BTreeMap<(String, String), u64>,
}

impl Sessions {
    /// Opens a session for a client, with numbers for itself and for its lanes.
    pub fn add(
        &mut self,
        now: Duration,
        peer: PeerId,
        [number, run]: [u32; 2],
        hello: Hello,
        entitlement: Entitlement,
    ) -> &mut Session {
        let name = if entitlement.user.is_empty() { &hello.name } else { &entitlement.user };
        let label = format!("{name}#{number}");
        self.by_peer.entry(peer).or_insert_with(|| Session {
            peer,
            number,
            run,
            label,
            hello: Box::new(hello),
            received: 0,
            since: now,
            instructions: 0,
            entitlement,
            catalogue: Catalogue::default(),
            templates: Templates::default(),
            plans: Plans::default(),
            queue: VecDeque::new(),
            flow: Flow::default(),
            unread: Unread::new(u64::MAX),
            open: 0,
            waits: false,
            waiting_since: None,
            active: now,
            warned: Vec::new(),
            knows_spare: false,
            device: 0,
            bytes: Vec::new(),
            shortages: BTreeMap::new(),
            lineage: None,
            awaited: None,
            is_expanded: false,
        })
    }

    pub fn remove(&mut self, peer: PeerId) -> Option<Session> {
        let session = self.by_peer.remove(&peer)?;
        let Entitlement { team, user, .. } = &session.entitlement;
        *self.past.entry((team.clone(), user.clone())).or_default() += session.device;
        Some(session)
    }

    /// The device time that a user's sessions which have ended have used, by team and user.
    pub fn past(&self) -> &BTreeMap<(String, String), u64> {
        &self.past
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

    /// The session whose lanes have a number.
    pub fn running(&self, run: u32) -> Option<&Session> {
        self.by_peer.values().find(|session| session.run == run)
    }

    pub fn running_mut(&mut self, run: u32) -> Option<&mut Session> {
        self.by_peer.values_mut().find(|session| session.run == run)
    }

    /// The session of a number, or whose lanes have it.
    pub fn either(&self, number: u32) -> Option<&Session> {
        self.numbered(number).or_else(|| self.running(number))
    }

    /// A number for a session, or for lanes that are made again.
    pub fn next_number(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// The last number given.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Numbers up to this one were given before the server was started again.
    pub fn skip_to(&mut self, last: u32) {
        self.last = self.last.max(last);
    }

    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_peer.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_peer.values_mut()
    }

    /// A session's part of a worker's time if all have work, by the weights.
    pub fn share(&self, of: &Session) -> f64 {
        of.entitlement.share(self.by_peer.values().map(|session| &session.entitlement))
    }

    pub fn len(&self) -> usize {
        self.by_peer.len()
    }

    pub fn peers(&self) -> Vec<PeerId> {
        self.by_peer.keys().copied().collect()
    }
}
