//! The session of one client.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use gt_ir::entitlement::Entitlement;
use gt_ir::message::{
    Attach, ClientHello, ClientToServer, Failure, ServerToClient, ServerToWorker,
};
use gt_ir::status::{LastError, NamedSession};
use gt_ir::{ClientCommand, Incarnation, SessionId, SlotId, StreamNumbers, WorkerId, codec};

use super::account::SessionAccount;
use super::inspected::InspectedSession;
use super::lines::SourceLines;
use super::phase::Phase;
use crate::flow::Flow;
use crate::journal::JournalRecord;
use crate::library::BorrowedTensors;
use crate::lineage::{Lineage, log};
use crate::named::{KeptNames, SessionName};
use crate::paused::PausedBy;
use crate::peer::{PeerId, PeerOutbox, short};
use crate::planner::{Catalogue, PlanCache, Slots};
use crate::queue::{SlotCount, UnplannedBatch};
use crate::recent::RecentTensors;
use crate::templates::ClientTemplates;
use crate::unread::UnreadValues;

/// The session of one client.
pub(crate) struct ClientSession {
    pub identity: Identity,
    pub queue: SessionQueue,
    pub planning: Planning,
    /// The weight that is in flight to its lanes, and for which its client waits.
    pub flow: Flow,
    pub unread: UnreadValues,
    /// The lineage from which it is restored, if the server keeps lineages.
    pub lineage: Option<Box<Lineage>>,
    pub account: SessionAccount,
    pub lines: SourceLines,
    /// The last error that was sent to its client, and when.
    pub last_error: Option<Box<(Duration, Failure)>>,
    pub phase: Phase,
    /// Its details, while watchers ask for them.
    pub inspected: Option<Box<InspectedSession>>,
}

/// Whose a session is, and how it is named.
pub(crate) struct Identity {
    pub peer: PeerId,
    pub number: SessionId,
    /// Its lanes on workers: others each time that the session is restored.
    pub incarnation: Incarnation,
    /// Its name for people: `train.py ada@box #3`.
    pub label: String,
    /// The hello with which it began.
    pub hello: Box<ClientHello>,
    /// When it began.
    pub since: Duration,
    /// The name by which its user attaches to it; without one it ends with its client.
    pub name: Option<SessionName>,
    /// When its client attached to it, or left.
    pub held_since: Duration,
    /// Whether it has no client.
    pub is_detached: bool,
    /// Who has paused it, if it is paused: nothing of it is planned.
    pub paused: Option<PausedBy>,
    /// The session's weights, priority and quotas on each worker.
    pub entitlement: Entitlement,
}

/// What the client has sent that is not planned yet.
#[derive(Default)]
pub(crate) struct SessionQueue {
    pub batches: VecDeque<UnplannedBatch>,
    /// How many of the client's messages were received, up to and including the last batch.
    pub received: u64,
    /// The numbers that a client may use whose stream follows all that was received.
    pub numbers: StreamNumbers,
    /// Whether templates were expanded in its batches, which puts them ahead of what is planned.
    pub is_expanded: bool,
    /// Since when there have been batches but no worker.
    pub workerless_since: Option<Duration>,
}

/// The state of a session's stream up to the last planned command.
#[derive(Default)]
pub(crate) struct Planning {
    pub catalogue: Catalogue,
    pub templates: ClientTemplates,
    pub plans: PlanCache,
    pub recent: RecentTensors,
    pub kept: KeptNames,
    pub borrowed: BorrowedTensors,
}

impl Identity {
    /// Returns the identity of a new session.
    pub fn new(
        now: Duration,
        peer: PeerId,
        (number, incarnation): (SessionId, Incarnation),
        hello: ClientHello,
        entitlement: Entitlement,
    ) -> Identity {
        let name = hello.attach.as_ref().map(|attach| {
            let Attach { name, token, .. } = &**attach;
            SessionName { name: name.clone(), token: *token }
        });
        let mut identity = Identity {
            peer,
            number,
            incarnation,
            label: String::new(),
            hello: Box::new(hello),
            since: now,
            name: None,
            held_since: now,
            is_detached: false,
            paused: None,
            entitlement,
        };
        identity.rename(name);
        identity
    }

    /// Gives it a name, or takes its name.
    pub fn rename(&mut self, name: Option<SessionName>) {
        let mut origin = self.hello.origin.cleaned();
        if let Some(name) = &name {
            origin.program.clone_from(&name.name);
        }
        self.label = origin.label(&self.entitlement.user, self.number);
        self.name = name;
    }

    /// Gives it to another client.
    pub fn hand_over(&mut self, now: Duration, hello: ClientHello) {
        (self.hello, self.held_since, self.is_detached) = (Box::new(hello), now, false);
        self.entitlement.is_away = false;
        let name = self.name.take();
        self.rename(name);
    }

    /// Returns the program of its client, for people.
    pub fn holder(&self) -> String {
        let of = self.hello.origin.cleaned().holder(&self.entitlement.user);
        match self.hello.process {
            Some(process) => format!("{of} (process {})", process.pid),
            None => of,
        }
    }

    /// Returns the record of its name and its client.
    pub fn record(&self) -> JournalRecord {
        let (session, hello) = (self.number, self.hello.clone());
        let (name, is_detached) = (self.name.clone(), self.is_detached);
        JournalRecord::Holder { session, hello, name, is_detached }
    }

    /// Returns the message that sets the session's entitlement on a worker.
    pub fn admit(&self) -> ServerToWorker {
        let (incarnation, entitlement) = (self.incarnation, self.entitlement.clone());
        ServerToWorker::Admit { incarnation, entitlement }
    }

    /// Returns the message that admits the session on a worker; `None` if its entitlement is the
    /// default.
    pub fn admission(&self) -> Option<ServerToWorker> {
        (self.entitlement != Entitlement::default()).then(|| self.admit())
    }
}

impl ClientSession {
    /// Returns the publications that it reads.
    pub fn reads(&self) -> BTreeSet<SessionId> {
        let catalogue = &self.planning.catalogue;
        self.planning.borrowed.publications(|id| catalogue.get(id).is_ok())
    }

    /// Returns whether it is not known yet what it reads of publications: it is restored.
    pub fn is_restoring_reads(&self) -> bool {
        let lineage = self.lineage.as_ref();
        self.phase.is_rewound()
            || self.phase.awaited().is_some()
            || lineage.is_some_and(|lineage| lineage.log.is_replaying())
    }

    /// Opens a session.
    pub fn new(identity: Identity) -> ClientSession {
        let account = SessionAccount::new(identity.since);
        ClientSession {
            identity,
            queue: SessionQueue::default(),
            planning: Planning::default(),
            flow: Flow::default(),
            unread: UnreadValues::new(u64::MAX),
            lineage: None,
            account,
            lines: SourceLines::default(),
            last_error: None,
            phase: Phase::New,
            inspected: None,
        }
    }

    /// Returns the credit for completed weight to the client.
    pub fn return_credit(&mut self, outbox: &mut PeerOutbox, weight: u64) {
        if weight > 0 {
            self.flow.return_credit(weight);
            outbox.push(self.identity.peer, ServerToClient::Credit(weight));
        }
    }

    /// Records an error that is sent to its client.
    pub fn note_error(&mut self, now: Duration, failure: &Failure) {
        self.last_error = Some(Box::new((now, failure.clone())));
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
        lineage.log.remove_answered(self.queue.received, batch);
        Some(number)
    }

    /// Describes the last error that was sent to its client.
    pub fn last_error(&self) -> Option<LastError> {
        let (at, failure) = &**self.last_error.as_ref()?;
        let line = self.lines.shown(failure.line);
        Some(LastError {
            at: *at,
            operation: short(&failure.operation),
            reason: short(&failure.reason),
            worker: failure.worker.clone(),
            line,
        })
    }

    /// Describes it for people, if it has a name.
    pub fn named(&self) -> Option<NamedSession> {
        let Identity { name, is_detached, held_since, .. } = &self.identity;
        name.as_ref().map(|of| NamedSession {
            name: of.name.clone(),
            is_private: of.token.is_some(),
            is_detached: *is_detached,
            since: *held_since,
            kept: self.planning.kept.len() as u64,
        })
    }

    /// Returns its slots, also before its workers are back.
    pub fn slots(&self) -> &Slots {
        match &self.phase {
            Phase::Resuming(awaited) => &awaited.slots,
            _ => &self.planning.catalogue.slots,
        }
    }

    /// Returns the records of the session with which a journal begins.
    pub fn records(&self) -> Vec<JournalRecord> {
        let (session, hello) = (self.identity.number, self.identity.hello.clone());
        let mut all = vec![JournalRecord::Session { session, hello }];
        all.extend(self.identity.name.is_some().then(|| self.identity.record()));
        if let Some(lineage) = &self.lineage {
            all.extend(lineage.records(session, self.queue.received, self.slots()));
        }
        all
    }

    /// Returns the record that its slots, or their hosts, have changed; `None` without a lineage.
    pub fn slots_record(&self) -> Option<JournalRecord> {
        let from = self.lineage.as_ref()?.log.first_unplanned();
        let (session, slots) = (self.identity.number, self.planning.catalogue.slots.clone());
        Some(JournalRecord::Slots { session, from, slots })
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
        self.queue.workerless_since.filter(|_| self.phase.awaited().is_none() || is_none)
    }

    /// Returns whether it has tensors in any of these slots.
    pub fn has_tensors_in(&self, slots: &[SlotId]) -> bool {
        let empty = self.planning.catalogue.empty_slots();
        slots.iter().any(|slot| !empty.contains(slot))
    }

    /// Returns whether it has a batch, and room for it: in its lanes' windows, and for values.
    pub fn is_ready(&self, window: u64) -> bool {
        let home = self.planning.catalogue.slots.home();
        !self.queue.batches.is_empty()
            && self.identity.paused.is_none()
            && self.has_worker()
            && self.unread.has_room()
            && !self.phase.is_rewound()
            && self.lineage.as_ref().is_none_or(|lineage| lineage.has_room())
            && home.is_some_and(|home| self.flow.has_room(home, window))
    }

    /// Returns whether its next batch is to be tried alone.
    pub fn is_tried_next(&self) -> bool {
        let lineage = self.lineage.as_ref();
        let next = self.queue.batches.front();
        lineage.zip(next).is_some_and(|(lineage, next)| lineage.suspicion.covers(next.batch))
    }

    /// Returns whether batches wait to be planned.
    pub fn has_queued(&self) -> bool {
        let lineage = self.lineage.as_ref();
        !self.queue.batches.is_empty() || lineage.is_some_and(|lineage| lineage.log.is_replaying())
    }

    /// Limits plans to this number of slots while batches are replayed, and lifts the limit
    /// afterwards.
    pub fn limit_slots(&mut self, count: Option<SlotCount>) {
        let slots = &mut self.planning.catalogue.slots;
        match count {
            Some(SlotCount::Known(count)) => slots.limit_plans(Some(count)),
            Some(SlotCount::Unchanged) => {}
            None if slots.is_limited() => slots.limit_plans(None),
            None => {}
        }
    }

    /// Returns whether its lanes wait for the values of its last snapshot.
    pub fn is_restoring(&self) -> bool {
        let is_handed = |lineage: &Lineage| !lineage.handovers.is_empty();
        self.phase.is_rewound() || self.lineage.as_deref().is_some_and(is_handed)
    }

    /// Returns whether a recovery has ended: the values of the snapshot are on its workers, and the
    /// batches since are computed.
    pub fn is_restored(&self) -> bool {
        let Some(lineage) = self.lineage.as_deref() else { return true };
        let first = lineage.rewound_to;
        let is_planned = self.queue.batches.front().is_none_or(|next| next.batch >= first);
        !self.is_restoring()
            && !lineage.log.is_replaying()
            && is_planned
            && self.flow.is_past(first)
    }

    /// Returns whether what is planned is recorded, or will be by a queued command.
    pub fn is_explained(&self) -> bool {
        let begins =
            |command: &ClientCommand| matches!(command, ClientCommand::Explain { begin: true, .. });
        let mut queued = self.queue.batches.iter().flat_map(|batch| &batch.commands);
        self.planning.catalogue.recorder.is_some() || queued.any(begins)
    }

    /// Returns whether it has commands in flight to a worker, of whose lanes `first` is looked at
    /// first.
    pub fn is_active_on(&self, worker: WorkerId, first: SlotId) -> bool {
        let is_busy = |slot: SlotId| self.flow.in_flight(slot).0 > 0;
        let slots = &self.planning.catalogue.slots;
        is_busy(first) || slots.all().any(|slot| slots.host(slot) == Some(worker) && is_busy(slot))
    }

    /// Returns whether its home slot is on a worker.
    pub fn has_worker(&self) -> bool {
        self.planning.catalogue.slots.home_worker().is_some()
    }
}
