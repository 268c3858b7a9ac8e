//! Publications: where their values are, who reads them, and when they end.

use std::collections::BTreeSet;
use std::time::Duration;

use gt_ir::message::{Answer, Failure, Reply, ServerToClient, ServerToWorker};
use gt_ir::snapshot::Unkept;
use gt_ir::{RequestId, SessionId, SlotId, SourceId, WorkerId};

use super::Dispatcher;
use super::published_values::RETRY;
use crate::journal::JournalRecord;
use crate::library::{PlannedRequests, Publication, PublicationStage, RefusedPublication};
use crate::observability::log::LineKind;
use crate::peer::PeerId;
use crate::sessions::ClientSession;

/// How long a publication that was withdrawn stays for those that read it.
const WITHDRAWN_FOR: Duration = Duration::from_secs(600);

/// Why a publication ends that was withdrawn.
const WITHDRAWN: &str = "it was withdrawn";

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
            (Err(Unkept::Unreachable(_)), None) => self.send_indirectly(id, slot, from),
            // Its own values are complete: a copy is made of them.
            (Err(Unkept::Unreachable(_)), Some((host, _))) if from == host => {
                (of.storing, of.holders) = (None, vec![host]);
                if publication.is_stored() && publication.stage == PublicationStage::Storing {
                    self.complete_publication(now, id);
                }
            }
            (Err(reason), Some(_)) => {
                self.end_publication(now, id, &format!("it could not be stored: {reason}"));
            }
            // It could not keep them, or has lost them.
            (Err(reason), None) => {
                self.library.needed.remove(&(id, slot, from));
                self.library.refused.insert((id, slot, from), now);
                self.not_held(now, (id, slot, from), &reason);
            }
        }
    }

    /// Handles a worker that does not hold the values of a slot.
    fn not_held(
        &mut self,
        now: Duration,
        (id, slot, worker): (SessionId, SlotId, WorkerId),
        reason: &Unkept,
    ) {
        let Some(of) = self.library.get_mut(id).and_then(|of| of.slot_mut(slot)) else { return };
        if !of.holders.contains(&worker) {
            return;
        }
        of.holders.retain(|holder| *holder != worker);
        if of.holders.is_empty() {
            return self.end_publication(now, id, &format!("its values were lost: {reason}"));
        }
        self.journal_publication(id);
        self.resend_values(now);
        self.copy_publications(now);
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
        // A worker that had its values may have left meanwhile.
        self.copy_publications(now);
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
            let origin = publication.origin.0;
            if result.is_ok()
                && let Some(session) = self.peers.sessions.get_mut(find.client)
                && session.identity.number != origin
            {
                session.planning.borrowed.find(id);
            }
            self.outbox.push(find.client, Answer { request: find.request, result });
        }
    }

    /// Journals a publication that can be read.
    pub(super) fn journal_publication(&mut self, id: SessionId) {
        let Some(publication) = self.library.get(id) else { return };
        if publication.stage != PublicationStage::Storing {
            let record = || JournalRecord::Publication(Box::new(publication.clone()));
            self.journal.add(record);
        }
    }

    /// Returns the records with which a journal that begins now has the publications.
    pub(super) fn publication_records(&self) -> Vec<JournalRecord> {
        let Some(publication) = self.library.last() else { return Vec::new() };
        // The numbers so far are not assigned again.
        let origins = self.library.ended().map(Some).chain([None]);
        let ended = origins.map(|origin| JournalRecord::PublicationEnd { publication, origin });
        let versions = self.library.versions().map(|(user, name, version)| {
            let (user, name) = (user.to_string(), name.to_string());
            JournalRecord::Version { user, name, version, origin: None }
        });
        let begun = self.library.iter().filter(|of| of.stage == PublicationStage::Storing);
        let begun = begun.map(version_record);
        let stored = self.library.iter().filter(|of| of.is_stored()).map(|publication| {
            JournalRecord::Publication(Box::new(match publication.stage {
                PublicationStage::Storing => publication.complete(),
                PublicationStage::Visible | PublicationStage::Withdrawn => publication.clone(),
            }))
        });
        ended.chain(versions).chain(begun).chain(stored).collect()
    }

    /// Returns whether a session's publications are still being stored: until then its log has the
    /// request.
    pub(super) fn is_publishing(&self, session: SessionId) -> bool {
        let is_it =
            |of: &Publication| of.origin.0 == session && of.stage == PublicationStage::Storing;
        !self.library.is_empty() && self.library.iter().any(is_it)
    }

    /// Withdraws publications of a client's user: they can be found no more, and end when none
    /// reads them.
    fn withdraw(&mut self, now: Duration, peer: PeerId, request: RequestId, name: &str) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let own = self.library.own(&session.identity.entitlement.user, name);
        let failed = |reason| Failure::new("unpublish", reason, "", SourceId::default());
        let versions = own.as_ref().map_or(0, Vec::len) as u32;
        for id in own.iter().flatten() {
            self.withdraw_version(now, *id, WITHDRAWN);
        }
        let result = own.map(|_| Reply::Withdrawn { versions }).map_err(failed);
        self.outbox.push(peer, Answer { request, result });
        self.end_withdrawn(now);
    }

    /// Withdraws a publication, or ends one that is being stored.
    pub(super) fn withdraw_version(&mut self, now: Duration, id: SessionId, reason: &str) {
        match self.library.get(id).map(|of| of.stage) {
            Some(PublicationStage::Storing) => self.end_publication(now, id, reason),
            Some(PublicationStage::Visible) => {
                self.library.withdraw(now, id);
                self.journal_publication(id);
            }
            Some(PublicationStage::Withdrawn) | None => {}
        }
    }

    /// Ends the publications that were withdrawn and that none reads, or for long enough.
    pub(super) fn end_withdrawn(&mut self, now: Duration) {
        let withdrawn = self.library.withdrawn();
        if withdrawn.is_empty() {
            return;
        }
        // What a session reads is known once it is restored.
        let is_restored = !self.peers.sessions.iter().any(ClientSession::is_restoring_reads);
        let read: BTreeSet<SessionId> =
            self.peers.sessions.iter().flat_map(ClientSession::reads).collect();
        for (id, since) in withdrawn {
            if is_restored && !read.contains(&id) || now >= since + WITHDRAWN_FOR {
                self.end_publication(now, id, WITHDRAWN);
            }
        }
    }

    /// Returns when [`Dispatcher::end_withdrawn`] or [`Dispatcher::end_unmet`] is due at the latest.
    pub(super) fn next_publication_end(&self) -> Option<Duration> {
        let withdrawn = self.library.withdrawn().into_iter();
        let withdrawn = withdrawn.map(|(_, since)| since + WITHDRAWN_FOR);
        let needed = self.library.needed.values().map(|of| of.since + self.limits.worker_wait);
        let refused = self.library.refused.values().map(|since| *since + RETRY);
        withdrawn.chain(needed).chain(refused).min()
    }

    /// Ends a publication, and notifies its owner: what sessions read of it fails.
    pub(super) fn end_publication(&mut self, now: Duration, id: SessionId, reason: &str) {
        let Some(ended) = self.remove_publication(now, id, reason) else { return };
        if ended.stage != PublicationStage::Withdrawn
            && let Some(session) = self.peers.sessions.by_number(ended.origin.0)
        {
            let name = ended.version_name();
            let text = match ended.stage {
                PublicationStage::Storing => {
                    format!("'{name}' was not published: {reason}\n  hint: publish it again")
                }
                _ => format!("the publication '{name}' has ended: {reason}"),
            };
            self.outbox.push(session.identity.peer, ServerToClient::Notice { text });
        }
    }

    /// Ends a publication.
    fn remove_publication(
        &mut self,
        now: Duration,
        id: SessionId,
        reason: &str,
    ) -> Option<Publication> {
        let name = self.library.get(id)?.version_name();
        self.answer_finds(id, &Err(format!("'{name}' was not published: {reason}")));
        let ended = self.library.remove(id)?;
        let details = format_args!("{reason}");
        self.observability.write(now, LineKind::Send, &name, "PublicationEnd", 0, details);
        let publisher = self.peers.sessions.by_number(ended.origin.0);
        let publisher = publisher.map(|session| session.identity.peer);
        let origin = publisher.map(|_| ended.origin);
        if let Some(peer) = publisher {
            let lineage = self.peers.sessions.get(peer).and_then(|it| it.lineage.as_ref());
            let is_known =
                |request| lineage.is_some_and(|lineage| lineage.log.has_request(request));
            self.library.note_end(ended.origin, is_known);
        }
        self.journal.add(|| JournalRecord::PublicationEnd { publication: id, origin });
        self.drop_values(id);
        if let Some(peer) = publisher {
            self.end_snapshot(peer);
        }
        Some(ended)
    }

    /// Does what a batch asked of the library that is done once it is planned.
    pub(super) fn after_planning(&mut self, now: Duration, peer: PeerId, of: PlannedRequests) {
        for id in of.begun {
            let Some(of) = self.library.get(id) else { continue };
            let record = version_record(of);
            self.journal.add(|| record);
        }
        for RefusedPublication { id, reason, is_reported } in of.refused {
            match is_reported {
                true => drop(self.remove_publication(now, id, &reason)),
                false => self.end_publication(now, id, &reason),
            }
        }
        for (request, name) in of.withdrawals {
            self.withdraw(now, peer, request, &name);
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
        self.library.forget_session(session);
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
        self.end_withdrawn(now);
    }
}

/// Returns the record of the version of what is being stored.
fn version_record(of: &Publication) -> JournalRecord {
    JournalRecord::Version {
        user: of.user.clone(),
        name: of.name.clone(),
        version: of.version,
        origin: Some(of.origin),
    }
}
