//! Publications: where their values are, who reads them, and when they end.

use std::collections::BTreeSet;
use std::time::Duration;

use gt_ir::message::{Answer, Failure, Reply, ServerToClient, ServerToWorker};
use gt_ir::publication::PUBLISHED;
use gt_ir::snapshot::{Backup, Unkept};
use gt_ir::{RequestId, SessionId, SlotId, SourceId, WorkerId};

use super::Dispatcher;
use crate::journal::JournalRecord;
use crate::library::{Publication, PublicationStage, PublishedSlot};
use crate::observability::log::LineKind;
use crate::peer::PeerId;
use crate::sessions::ClientSession;

/// How long a publication that was withdrawn stays for those that read it.
const WITHDRAWN_FOR: Duration = Duration::from_secs(600);

impl Dispatcher {
    /// Handles a worker's report on a slot of a publication: its values are stored there, or could
    /// not be.
    pub(super) fn publication_reported(
        &mut self,
        now: Duration,
        from: PeerId,
        (id, slot): (SessionId, SlotId),
        result: Result<u64, Unkept>,
    ) {
        let Some(from) = self.peers.workers.get(from).map(|worker| worker.id) else { return };
        let Some(publication) = self.library.get_mut(id) else {
            // It has ended meanwhile.
            return self.drop_values(id);
        };
        let Some(of) = publication.slot_mut(slot) else { return };
        match (result, of.storing) {
            (Ok(_), Some((host, copy))) if from == copy.unwrap_or(host) => {
                of.storing = None;
                of.holders = [Some(host), copy].into_iter().flatten().collect();
                if publication.is_stored() && publication.stage == PublicationStage::Storing {
                    self.complete_publication(now, id);
                }
            }
            (Ok(_), _) => {
                if !of.holders.contains(&from) {
                    of.holders.push(from);
                }
                self.library.needed.remove(&(id, slot, from));
                self.journal_publication(id);
            }
            // A worker has no direct way to the other: the values come through here.
            (Err(Unkept::Unreachable(_)), None) => {
                let message =
                    ServerToWorker::HandOver { session: id, slot, snapshot: PUBLISHED, to: None };
                if let Some(holder) = self.peers.workers.by_id(from) {
                    self.outbox.push(holder.peer, message);
                }
            }
            (Err(reason), Some(_)) => {
                self.end_publication(now, id, &format!("it could not be stored: {reason}"));
            }
            (Err(_), None) => {
                of.holders.retain(|holder| *holder != from);
                self.copy_publications(now);
            }
        }
    }

    /// Makes a publication visible, all of whose values are stored, once it is in the journal.
    fn complete_publication(&mut self, now: Duration, id: SessionId) {
        let Some(publication) = self.library.get(id) else { return };
        if self.journal.is_on {
            return self
                .journal
                .add(|| JournalRecord::Publication(Box::new(publication.complete())));
        }
        self.publication_written(now, id);
    }

    /// Makes a publication visible.
    pub(super) fn publication_written(&mut self, now: Duration, id: SessionId) {
        let is_due =
            |of: &&mut Publication| of.stage == PublicationStage::Storing && of.is_stored();
        let Some(publication) = self.library.get_mut(id).filter(is_due) else { return };
        publication.stage = PublicationStage::Visible;
        let (name, origin) = (publication.version_name(), publication.origin.0);
        let details = format_args!("bytes={} to={}", publication.bytes(), publication.audience);
        self.observability.write(now, LineKind::Send, &name, "Published", 0, details);
        self.answer_finds(id, &Ok(()));
        if let Some(session) = self.peers.sessions.by_number(origin) {
            // Its snapshot may wait for this.
            let peer = session.identity.peer;
            self.end_snapshot(peer);
        }
    }

    /// Makes the publications visible that the journal, which cannot be written, does not have.
    pub(super) fn publish_unwritten(&mut self, now: Duration) {
        let all: Vec<SessionId> = self.library.iter().map(|of| of.id).collect();
        all.into_iter().for_each(|id| self.publication_written(now, id));
    }

    /// Answers the requests that wait for a publication.
    fn answer_finds(&mut self, id: SessionId, result: &Result<(), String>) {
        let waiting = self.library.waiting.extract_if(.., |it| it.publication == id);
        for find in waiting.collect::<Vec<_>>() {
            let Some(publication) = self.library.get(id) else { continue };
            let found = || Reply::Found(Box::new(publication.found()));
            let failed =
                |reason: &String| Failure::new("shared", reason.clone(), "", SourceId::default());
            let result = result.as_ref().map(|()| found()).map_err(failed);
            if result.is_ok()
                && let Some(session) = self.peers.sessions.get_mut(find.client)
            {
                session.planning.borrowed.find(id);
            }
            self.outbox.push(find.client, Answer { request: find.request, result });
        }
    }

    /// Journals a publication that can be read.
    fn journal_publication(&mut self, id: SessionId) {
        let Some(publication) = self.library.get(id) else { return };
        if publication.stage != PublicationStage::Storing {
            let record = || JournalRecord::Publication(Box::new(publication.clone()));
            self.journal.add(record);
        }
    }

    /// Returns the records with which a journal that begins now has the publications.
    pub(super) fn publication_records(&self) -> Vec<JournalRecord> {
        // The numbers so far are not assigned again.
        let last =
            self.library.last().map(|publication| JournalRecord::PublicationEnd { publication });
        let stored = self.library.iter().filter(|of| of.is_stored()).map(|publication| {
            JournalRecord::Publication(Box::new(match publication.stage {
                PublicationStage::Storing => publication.complete(),
                PublicationStage::Visible | PublicationStage::Withdrawn => publication.clone(),
            }))
        });
        last.into_iter().chain(stored).collect()
    }

    /// Returns whether a session's publications are still being stored: until then its log has the
    /// request.
    pub(super) fn is_publishing(&self, session: SessionId) -> bool {
        let is_it =
            |of: &Publication| of.origin.0 == session && of.stage == PublicationStage::Storing;
        !self.library.is_empty() && self.library.iter().any(is_it)
    }

    /// Handles a worker that needs the values of a slot of a publication.
    pub(super) fn values_needed(
        &mut self,
        now: Duration,
        from: PeerId,
        id: SessionId,
        slot: SlotId,
    ) {
        let Some(worker) = self.peers.workers.get(from).map(|worker| worker.id) else { return };
        if self.library.get(id).and_then(|of| of.slot(slot)).is_none() {
            let ended = ServerToWorker::Retain { session: id, snapshot: None, next: 0 };
            return self.outbox.push(from, ended);
        }
        self.library.needed.entry((id, slot, worker)).or_insert(now);
        self.send_values(now, id, slot, worker);
    }

    /// Has a worker that holds the values of a slot, if one is connected, send them to another one.
    fn send_values(&mut self, now: Duration, id: SessionId, slot: SlotId, to: WorkerId) {
        let Some(of) = self.library.get(id).and_then(|of| of.slot(slot)) else { return };
        let others = of.holders.iter().filter(|holder| **holder != to);
        let Some(holder) = others.clone().find_map(|id| self.peers.workers.by_id(*id)) else {
            if others.count() == 0 {
                self.end_publication(now, id, "the workers that had its values were lost");
            }
            return;
        };
        let (session, snapshot, to) = (id, PUBLISHED, Some(to));
        let message = ServerToWorker::HandOver { session, slot, snapshot, to };
        self.outbox.push(holder.peer, message);
    }

    /// Ends the publications whose values workers have awaited for too long, as those that have them
    /// on disk were not started again.
    pub(super) fn end_unmet(&mut self, now: Duration) {
        let limit = self.limits.worker_wait;
        let late = self.library.needed.iter().filter(|(_, since)| now >= **since + limit);
        let late: Vec<(SessionId, SlotId, WorkerId)> = late.map(|(of, _)| *of).collect();
        for (id, slot, worker) in late {
            let Some(of) = self.library.get(id).and_then(|of| of.slot(slot)) else { continue };
            let is_connected = |id: &WorkerId| self.peers.workers.by_id(*id).is_some();
            if !of.holders.iter().any(is_connected) {
                let names: Vec<String> =
                    of.holders.iter().map(|id| self.peers.workers.name_of(*id)).collect();
                let reason = format!(
                    "the workers {}, which have its values in their --state, were not started again within {} s",
                    names.join(", "),
                    limit.as_secs_f64()
                );
                self.end_publication(now, id, &reason);
            } else {
                self.library.needed.insert((id, slot, worker), now);
                self.send_values(now, id, slot, worker);
            }
        }
    }

    /// Returns the publications that have values on this worker and on none that stays.
    pub(super) fn leaving_publications(&self, worker: WorkerId) -> Vec<String> {
        let stays = |id: &WorkerId| *id != worker && self.peers.workers.stays(*id);
        let leaves = |of: &PublishedSlot| match of.storing {
            Some(_) => of.is_on(worker),
            None => of.holders.contains(&worker) && !of.holders.iter().any(stays),
        };
        let leaving = self.library.iter().filter(|it| it.slots.iter().any(leaves));
        leaving.map(Publication::version_name).collect()
    }

    /// Forwards values of a publication to the workers that need them and that the holder cannot
    /// reach.
    pub(super) fn forward_values(&mut self, backup: &Backup) {
        let of = (backup.owner.session, backup.owner.slot);
        for (id, slot, worker) in self.library.needed.keys() {
            if (*id, *slot) == of
                && let Some(worker) = self.peers.workers.by_id(*worker)
            {
                let backup = ServerToWorker::Backup(Box::new(backup.clone()));
                self.outbox.push(worker.peer, backup);
            }
        }
    }

    /// Withdraws publications of a client's user: they can be found no more, and end when none
    /// reads them.
    pub(super) fn withdraw(&mut self, now: Duration, peer: PeerId, request: RequestId, name: &str) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let own = self.library.own(&session.identity.entitlement.user, name);
        let failed = |reason| Failure::new("unpublish", reason, "", SourceId::default());
        let versions = own.as_ref().map_or(0, Vec::len) as u32;
        for id in own.iter().flatten() {
            if self.library.get(*id).is_some_and(|of| of.stage == PublicationStage::Storing) {
                self.end_publication(now, *id, "its owner has withdrawn it");
            } else {
                self.library.withdraw(now, *id);
                self.journal_publication(*id);
            }
        }
        let result = own.map(|_| Reply::Withdrawn { versions }).map_err(failed);
        self.outbox.push(peer, Answer { request, result });
        self.end_withdrawn(now);
    }

    /// Ends the publications that were withdrawn and that none reads, or for long enough.
    pub(super) fn end_withdrawn(&mut self, now: Duration) {
        let withdrawn = self.library.withdrawn();
        if withdrawn.is_empty() {
            return;
        }
        let read: BTreeSet<SessionId> =
            self.peers.sessions.iter().flat_map(ClientSession::reads).collect();
        for (id, since) in withdrawn {
            if !read.contains(&id) || now >= since + WITHDRAWN_FOR {
                self.end_publication(now, id, "its owner has withdrawn it");
            }
        }
    }

    /// Returns when [`Dispatcher::end_withdrawn`] or [`Dispatcher::end_unmet`] is due at the latest.
    pub(super) fn next_publication_end(&self) -> Option<Duration> {
        let withdrawn = self.library.withdrawn().into_iter();
        let withdrawn = withdrawn.map(|(_, since)| since + WITHDRAWN_FOR);
        let needed = self.library.needed.values().map(|since| *since + self.limits.worker_wait);
        withdrawn.chain(needed).min()
    }

    /// Ends a publication: what sessions read of it fails.
    fn end_publication(&mut self, now: Duration, id: SessionId, reason: &str) {
        let Some(publication) = self.library.get(id) else { return };
        let (name, origin) = (publication.version_name(), publication.origin.0);
        let is_visible = publication.stage != PublicationStage::Storing;
        let was_withdrawn = publication.stage == PublicationStage::Withdrawn;
        self.answer_finds(id, &Err(format!("'{name}' was not published: {reason}")));
        self.library.remove(id);
        let details = format_args!("{reason}");
        self.observability.write(now, LineKind::Send, &name, "PublicationEnd", 0, details);
        if is_visible {
            self.journal.add(|| JournalRecord::PublicationEnd { publication: id });
        }
        if !was_withdrawn && let Some(session) = self.peers.sessions.by_number(origin) {
            let text = match is_visible {
                true => format!("the publication '{name}' has ended: {reason}"),
                false => format!("'{name}' was not published: {reason}"),
            };
            self.outbox.push(session.identity.peer, ServerToClient::Notice { text });
        }
        self.drop_values(id);
        if let Some(session) = self.peers.sessions.by_number(origin) {
            let peer = session.identity.peer;
            self.end_snapshot(peer);
        }
    }

    /// Has all workers drop the values of a publication.
    fn drop_values(&mut self, id: SessionId) {
        for worker in self.peers.workers.iter() {
            let ended = ServerToWorker::Retain { session: id, snapshot: None, next: 0 };
            self.outbox.push(worker.peer, ended);
        }
    }

    /// Handles the end of a session: what it had not completely published is given up.
    pub(super) fn session_ended(&mut self, now: Duration, session: SessionId, peer: PeerId) {
        if self.library.is_empty() {
            return;
        }
        self.library.waiting.retain(|find| find.client != peer);
        let is_unfinished =
            |of: &&Publication| of.origin.0 == session && of.stage == PublicationStage::Storing;
        let unfinished: Vec<SessionId> =
            self.library.iter().filter(is_unfinished).map(|of| of.id).collect();
        for id in unfinished {
            self.end_publication(now, id, "its session ended before it was stored");
        }
        self.library.forget_session(session);
        self.end_withdrawn(now);
    }

    /// Handles the loss of a worker: what it held of publications is copied from others.
    pub(super) fn lose_values(&mut self, now: Duration, lost: WorkerId) {
        if self.library.is_empty() {
            return;
        }
        self.library.needed.retain(|(.., worker), _| *worker != lost);
        let may_return = self.peers.workers.may_rejoin(lost);
        let mut gone = Vec::new();
        for publication in self.library.iter_mut() {
            for of in &mut publication.slots {
                if !may_return {
                    of.holders.retain(|holder| *holder != lost);
                }
                let is_lost = match of.storing {
                    // Its session is restored, and publishes it once more, or fails.
                    Some((host, copy)) => host != lost && copy == Some(lost),
                    None => of.holders.is_empty(),
                };
                if is_lost {
                    gone.push(publication.id);
                }
            }
        }
        gone.dedup();
        for id in gone {
            self.end_publication(now, id, "a worker that had its values was lost");
        }
        self.copy_publications(now);
    }

    /// Has values that only one connected worker holds copied to another one, and those that workers
    /// wait for sent again.
    pub(super) fn copy_publications(&mut self, now: Duration) {
        if self.library.is_empty() {
            return;
        }
        let is_connected = |id: &&WorkerId| self.peers.workers.by_id(**id).is_some();
        let mut wanted: Vec<(SessionId, SlotId, WorkerId)> =
            self.library.needed.keys().copied().collect();
        for publication in self.library.iter().filter(|of| of.stage == PublicationStage::Visible) {
            for PublishedSlot { slot, holders, .. } in &publication.slots {
                let mut here = holders.iter().filter(is_connected);
                if let (Some(only), None) = (here.next(), here.next())
                    && let Some(to) = self.peers.workers.keeper(*only, &BTreeSet::new())
                {
                    wanted.push((publication.id, *slot, to));
                }
            }
        }
        for (id, slot, to) in wanted {
            self.send_values(now, id, slot, to);
        }
    }
}
