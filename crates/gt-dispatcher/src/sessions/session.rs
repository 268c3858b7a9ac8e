//! Per-client state: tensors, templates, queue and credit.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use gt_ir::entitlement::{Entitlement, Usage};
use gt_ir::message::{ClientHello, ClientToServer, ServerToClient, ServerToWorker};
use gt_ir::{ClientCommand, Incarnation, SessionId, SlotId, codec};

use crate::dispatcher::{AwaitedPeers, DeadlineWarning, SlotShortage};
use crate::flow::Flow;
use crate::journal::JournalRecord;
use crate::lineage::{Lineage, log};
use crate::numbers::SessionNumbers;
use crate::peer::{PeerId, PeerOutbox};
use crate::planner::{Catalogue, PlanCache, Slots};
use crate::queue::{SlotCount, UnplannedBatch};
use crate::templates::ClientTemplates;
use crate::unread::UnreadValues;

/// The session of one client.
pub(crate) struct ClientSession {
    pub peer: PeerId,
    pub number: SessionId,
    /// Its lanes on workers: others each time that the session is restored.
    pub incarnation: Incarnation,
    /// Its name in the log: the user's, or else the client's.
    pub label: String,
    /// The hello with which it began.
    pub hello: Box<ClientHello>,
    /// How many of the client's messages were received, up to and including the last batch.
    pub received: u64,
    /// When it began.
    pub since: Duration,
    /// How many instructions it has received.
    pub instructions: u64,
    /// The session's weights, priority and quotas on each worker.
    pub entitlement: Entitlement,
    pub catalogue: Catalogue,
    pub templates: ClientTemplates,
    pub plans: PlanCache,
    /// Batches not planned yet.
    pub queue: VecDeque<UnplannedBatch>,
    pub flow: Flow,
    pub unread: UnreadValues,
    /// The weight that the client has sent and not got back.
    pub open: u64,
    /// Whether the client waits for credit, and so has sent every command that it has issued.
    pub awaits_credit: bool,
    /// Since when it has had queued batches but no worker.
    pub waiting_since: Option<Duration>,
    /// When it last sent a command, or had one completed.
    pub active: Duration,
    /// The time limits that its client was warned of.
    pub warned: Vec<DeadlineWarning>,
    /// Whether its user was notified that there are workers beyond its slots.
    pub spare_reported: bool,
    /// The device time that it has used, in nanoseconds.
    pub device: u64,
    /// The bytes that it holds in each slot, by number: in memory, and spilled.
    bytes: Vec<(u64, u64)>,
    /// The slots that wait for memory.
    pub shortages: BTreeMap<SlotId, SlotShortage>,
    /// The lineage from which it is restored, if the server keeps lineages.
    pub lineage: Option<Box<Lineage>>,
    /// The peers that it waits for before it begins or resumes.
    pub awaited: Option<Box<AwaitedPeers>>,
    /// Whether templates were expanded in its queue, which puts them ahead of what is planned.
    pub is_expanded: bool,
}

impl ClientSession {
    /// Returns the credit for completed weight to the client.
    pub fn return_credit(&mut self, outbox: &mut PeerOutbox, weight: u64) {
        if weight > 0 {
            debug_assert!(weight <= self.open, "gives back {weight} of {}", self.open);
            self.open = self.open.saturating_sub(weight);
            outbox.push(self.peer, ServerToClient::Credit(weight));
        }
    }

    /// Notes that it sends a command, or had one completed.
    pub fn note_activity(&mut self, now: Duration) {
        self.active = now;
        self.warned.retain(|warned| !warned.is_of_idleness());
    }

    /// Records a worker's report of what the session uses in a slot.
    pub fn record_usage(&mut self, slot: SlotId, usage: Usage) {
        self.device = self.device.saturating_add(usage.device);
        let slot = slot.0 as usize;
        if slot >= self.bytes.len() {
            self.bytes.resize(slot + 1, (0, 0));
        }
        self.bytes[slot] = (usage.bytes, usage.spilled);
    }

    /// Returns the bytes that it holds on all workers: in memory, and spilled.
    pub fn bytes(&self) -> (u64, u64) {
        let add = |all: (u64, u64), own: &(u64, u64)| (all.0 + own.0, all.1 + own.1);
        self.bytes.iter().fold((0, 0), add)
    }

    /// Returns the bytes that it holds in a slot, in memory or spilled.
    pub fn bytes_in(&self, slot: SlotId) -> u64 {
        self.bytes.get(slot.0 as usize).map_or(0, |(memory, elsewhere)| memory + elsewhere)
    }

    /// Logs a client's batch in the lineage; returns its number there. Batches of momentary
    /// commands only are not logged, and requests that are answered already are removed from the
    /// batch.
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
            let message = ClientToServer::Stream(std::mem::take(batch));
            let frames = codec::encode(&message);
            if let ClientToServer::Stream(commands) = message {
                *batch = commands;
            }
            frames
        });
        let number = lineage.log.add(frames, shared, weight, requests);
        lineage.log.remove_answered(self.received, batch);
        Some(number)
    }

    /// Returns its slots, also before its workers are back.
    pub fn slots(&self) -> &Slots {
        let awaited = self.awaited.as_ref().filter(|awaited| !awaited.is_new);
        awaited.map_or(&self.catalogue.slots, |awaited| &awaited.slots)
    }

    /// Returns the records of the session with which a journal begins.
    pub fn records(&self) -> Vec<JournalRecord> {
        let (session, hello) = (self.number, self.hello.clone());
        let mut all = vec![JournalRecord::Session { session, hello }];
        if let Some(lineage) = &self.lineage {
            all.extend(lineage.records(session, self.received, self.slots()));
        }
        all
    }

    /// Returns whether its tensors are restored if they are lost.
    pub fn is_recoverable(&self) -> bool {
        self.lineage.as_ref().is_some_and(|lineage| lineage.base.is_ok())
    }

    /// Returns why its tensors would be lost with a worker; empty if they would not.
    pub fn unprotected_reason(&self) -> String {
        match &self.lineage {
            None => "the server keeps no lineage of sessions".into(),
            Some(lineage) => lineage.base.as_ref().err().cloned().unwrap_or_default(),
        }
    }

    /// Returns since when it waits for any worker. A session that awaits particular peers waits for
    /// them instead, unless no worker is connected (`is_none`).
    pub fn workerless_since(&self, is_none: bool) -> Option<Duration> {
        self.waiting_since.filter(|_| self.awaited.is_none() || is_none)
    }

    /// Returns whether it has a batch, and room for it: in its lanes' windows, and for values.
    pub fn is_ready(&self, window: u64) -> bool {
        let home = self.catalogue.slots.home();
        !self.queue.is_empty()
            && self.has_worker()
            && self.unread.has_room()
            && self.lineage.as_ref().is_none_or(|it| it.has_room() && !it.is_waiting)
            && home.is_some_and(|home| self.flow.has_room(home, window))
    }

    /// Returns whether its next batch is to be tried alone.
    pub fn is_tried_next(&self) -> bool {
        let lineage = self.lineage.as_ref();
        let next = self.queue.front();
        lineage.zip(next).is_some_and(|(lineage, next)| lineage.suspicion.covers(next.batch))
    }

    /// Returns whether batches wait to be planned.
    pub fn has_queued(&self) -> bool {
        let lineage = self.lineage.as_ref();
        !self.queue.is_empty() || lineage.is_some_and(|lineage| lineage.log.is_replaying())
    }

    /// Limits plans to this number of slots while batches are replayed, and lifts the limit
    /// afterwards.
    pub fn limit_slots(&mut self, count: Option<SlotCount>) {
        let slots = &mut self.catalogue.slots;
        match count {
            Some(SlotCount::Known(count)) => slots.limit_plans(Some(count)),
            Some(SlotCount::Unchanged) => {}
            None if slots.is_limited() => slots.limit_plans(None),
            None => {}
        }
    }

    /// Forgets what it holds: its lanes start anew.
    pub fn forget_bytes(&mut self) {
        self.bytes.clear();
    }

    /// Returns the message that admits it on a worker; `None` if its entitlement is the default.
    pub fn admission(&self) -> Option<ServerToWorker> {
        let (incarnation, entitlement) = (self.incarnation, self.entitlement.clone());
        (entitlement != Entitlement::default())
            .then_some(ServerToWorker::Admit { incarnation, entitlement })
    }

    /// Returns whether what is planned is recorded, or will be by a queued command.
    pub fn is_explained(&self) -> bool {
        let begins =
            |command: &ClientCommand| matches!(command, ClientCommand::Explain { begin: true, .. });
        let mut queued = self.queue.iter().flat_map(|batch| &batch.commands);
        self.catalogue.recorder.is_some() || queued.any(begins)
    }

    /// Returns whether its home slot is on a worker.
    pub fn has_worker(&self) -> bool {
        self.catalogue.slots.home_worker().is_some()
    }
}

/// All sessions, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Sessions {
    by_peer: BTreeMap<PeerId, ClientSession>,
    pub numbers: SessionNumbers,
    /// The device time that ended sessions have used, in nanoseconds, by team and user.
    past: BTreeMap<(String, String), u64>,
}

impl Sessions {
    /// Opens a session for a client, with its number and the incarnation of its lanes.
    pub fn add(
        &mut self,
        now: Duration,
        peer: PeerId,
        (number, incarnation): (SessionId, Incarnation),
        hello: ClientHello,
        entitlement: Entitlement,
    ) -> &mut ClientSession {
        let name = if entitlement.user.is_empty() { &hello.name } else { &entitlement.user };
        let label = format!("{name}#{number}");
        self.by_peer.entry(peer).or_insert_with(|| ClientSession {
            peer,
            number,
            incarnation,
            label,
            hello: Box::new(hello),
            received: 0,
            since: now,
            instructions: 0,
            entitlement,
            catalogue: Catalogue::default(),
            templates: ClientTemplates::default(),
            plans: PlanCache::default(),
            queue: VecDeque::new(),
            flow: Flow::default(),
            unread: UnreadValues::new(u64::MAX),
            open: 0,
            awaits_credit: false,
            waiting_since: None,
            active: now,
            warned: Vec::new(),
            spare_reported: false,
            device: 0,
            bytes: Vec::new(),
            shortages: BTreeMap::new(),
            lineage: None,
            awaited: None,
            is_expanded: false,
        })
    }

    /// Removes an ended session, whose device time stays counted.
    pub fn remove(&mut self, peer: PeerId) -> Option<ClientSession> {
        let session = self.by_peer.remove(&peer)?;
        self.numbers.remember(session.incarnation, session.number);
        let Entitlement { team, user, .. } = &session.entitlement;
        *self.past.entry((team.clone(), user.clone())).or_default() += session.device;
        Some(session)
    }

    /// Returns the device time that ended sessions have used, in nanoseconds, by team and user.
    pub fn past(&self) -> &BTreeMap<(String, String), u64> {
        &self.past
    }

    pub fn get(&self, peer: PeerId) -> Option<&ClientSession> {
        self.by_peer.get(&peer)
    }

    pub fn get_mut(&mut self, peer: PeerId) -> Option<&mut ClientSession> {
        self.by_peer.get_mut(&peer)
    }

    /// Returns the session with a number.
    pub fn by_number(&self, number: SessionId) -> Option<&ClientSession> {
        self.by_peer.values().find(|session| session.number == number)
    }

    pub fn by_number_mut(&mut self, number: SessionId) -> Option<&mut ClientSession> {
        self.by_peer.values_mut().find(|session| session.number == number)
    }

    /// Returns the session whose lanes have an incarnation.
    pub fn by_incarnation(&self, incarnation: Incarnation) -> Option<&ClientSession> {
        self.by_peer.values().find(|session| session.incarnation == incarnation)
    }

    pub fn by_incarnation_mut(&mut self, incarnation: Incarnation) -> Option<&mut ClientSession> {
        self.by_peer.values_mut().find(|session| session.incarnation == incarnation)
    }

    /// Returns the session of lanes, also of past ones; [`SessionId::NONE`] if it is not known.
    pub fn session_of(&self, incarnation: Incarnation) -> SessionId {
        match self.by_incarnation(incarnation) {
            Some(session) => session.number,
            None => self.numbers.past_session(incarnation),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &ClientSession> {
        self.by_peer.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ClientSession> {
        self.by_peer.values_mut()
    }

    /// Returns a session's part of a worker's time if all sessions have work, by the weights.
    pub fn share(&self, of: &ClientSession) -> f64 {
        of.entitlement.share(self.by_peer.values().map(|session| &session.entitlement))
    }

    pub fn len(&self) -> usize {
        self.by_peer.len()
    }

    pub fn peers(&self) -> Vec<PeerId> {
        self.by_peer.keys().copied().collect()
    }
}
