//! The library: what sessions have published for others.
//!
//! A version is a value: it does not change, and belongs to the library, not to the session that
//! published it. Workers store its values beside their snapshots; what a session reads of it is
//! made by an ordinary `Create`, which names it.
//!
//! - [`publication`]: a version, and where its values are; [`name`]: names as users give them;
//!   [`find`]: which publication a name means; [`borrowed`]: what a session reads of them.
//! - [`requests`]: what sessions ask of the library; [`versions`]: which versions were assigned;
//!   [`stored`]: the publications of a journal.

mod borrowed;
mod find;
mod name;
mod publication;
mod requests;
mod stored;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_ir::publication::FIRST_PUBLICATION;
use gt_ir::{Publish, RequestId, SessionId, SlotId, WorkerId};

use crate::peer::PeerId;

pub(crate) use borrowed::BorrowedTensors;
pub(crate) use publication::{Publication, PublicationStage, PublishedSlot, PublishedTensor};
pub(crate) use requests::{Begun, PlannedRequests, RefusedPublication, WaitingFind};
pub(crate) use stored::StoredPublications;
use versions::Versions;

/// The ended publications of a session after which those are forgotten that no replay has.
const MOST_ENDED: usize = 64;

/// The publications of a server.
#[derive(Default)]
pub(crate) struct Publications {
    publications: BTreeMap<SessionId, Publication>,
    /// The requests for publications that are still being stored.
    pub waiting: Vec<WaitingFind>,
    /// The values that workers wait for, by slot and worker.
    pub needed: BTreeMap<NeededSlot, NeededValues>,
    /// The workers that could not store the values of a slot, and since when.
    pub refused: BTreeMap<NeededSlot, Duration>,
    /// The requests of living sessions whose publications have ended: a session that is replayed
    /// does not publish them again.
    ended: BTreeMap<SessionId, BTreeSet<RequestId>>,
    versions: Versions,
    /// What the batch that is being planned asks for, and is done once it is planned.
    pub planned: PlannedRequests,
    /// When publications were withdrawn.
    withdrawn: BTreeMap<SessionId, Duration>,
    /// The last number assigned.
    last: u32,
}

/// A slot of a publication, and a worker that is to have its values.
pub(crate) type NeededSlot = (SessionId, SlotId, WorkerId);

/// Values that a worker waits for.
pub(crate) struct NeededValues {
    pub since: Duration,
    /// Whether they come through the dispatcher, as the worker that has them cannot reach this one.
    pub is_indirect: bool,
}

impl Publications {
    pub fn get(&self, id: SessionId) -> Option<&Publication> {
        self.publications.get(&id)
    }

    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Publication> {
        self.publications.get_mut(&id)
    }

    /// Returns the last number that was assigned, if any was.
    pub fn last(&self) -> Option<SessionId> {
        (self.last > 0).then_some(SessionId(FIRST_PUBLICATION + self.last))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Publication> {
        self.publications.values()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Publication> {
        self.publications.values_mut()
    }

    pub fn is_empty(&self) -> bool {
        self.publications.is_empty()
    }

    /// Continues with the publications and numbers of a predecessor.
    pub fn adopt(&mut self, now: Duration, stored: StoredPublications, unknown: u32) {
        self.last = self.last.max(stored.last + unknown);
        (self.ended, self.versions) = (stored.ended, stored.versions);
        for publication in stored.publications.into_values() {
            if publication.stage == PublicationStage::Withdrawn {
                self.withdrawn.insert(publication.id, now);
            }
            self.publications.insert(publication.id, publication);
        }
    }

    /// Begins to publish tensors of a session of a user in a team.
    ///
    /// # Errors
    /// The name or the description is not valid; or the session is replayed, and what it published
    /// has ended.
    pub fn begin(
        &mut self,
        session: SessionId,
        (user, team): (&str, &str),
        publish: &Publish,
    ) -> Result<Begun, String> {
        let origin = (session, publish.request);
        if let Some(known) = self.of(origin) {
            return Ok(match known.stage {
                PublicationStage::Storing => Begun::Store(known.id),
                PublicationStage::Visible | PublicationStage::Withdrawn => {
                    Begun::Done(known.version_name())
                }
            });
        }
        if self.ended.get(&session).is_some_and(|all| all.contains(&publish.request)) {
            return Err("it has ended since\n  hint: publish it again".into());
        }
        name::check(&publish.name)?;
        let (bytes, most) = (publish.description.len(), Publish::MOST_DESCRIPTION);
        if bytes > most {
            return Err(format!("the description has {bytes} bytes, {most} are allowed"));
        }
        let version = self.versions.next(user, &publish.name, origin);
        self.last += 1;
        let id = SessionId(FIRST_PUBLICATION + self.last);
        let publication = Publication {
            id,
            user: user.into(),
            team: team.into(),
            name: publish.name.clone(),
            version,
            audience: publish.audience.clone(),
            description: publish.description.clone(),
            structure: publish.structure.clone(),
            tensors: Vec::new(),
            slots: Vec::new(),
            stage: PublicationStage::Storing,
            at: publish.at,
            origin,
        };
        self.publications.insert(id, publication);
        self.planned.begun.push(id);
        Ok(Begun::Store(id))
    }

    /// Returns what a session's request has published.
    pub fn of(&self, origin: (SessionId, RequestId)) -> Option<&Publication> {
        self.publications.values().find(|of| of.origin == origin)
    }

    /// Removes a publication.
    pub fn remove(&mut self, id: SessionId) -> Option<Publication> {
        let publication = self.publications.remove(&id)?;
        self.needed.retain(|(of, ..), _| *of != id);
        self.refused.retain(|(of, ..), _| *of != id);
        self.withdrawn.remove(&id);
        Some(publication)
    }

    /// Gives what a user has published to another one; returns each with its previous name. If the
    /// heir has published under a name, it is called `bob.model` from now on.
    pub fn give(&mut self, user: &str, heir: &str) -> Vec<(SessionId, String)> {
        let is_given =
            |of: &&mut Publication| of.user == user && of.stage != PublicationStage::Withdrawn;
        let mut given = Vec::new();
        let mut names: BTreeMap<String, (String, bool)> = BTreeMap::new();
        for of in self.publications.values_mut().filter(is_given) {
            given.push((of.id, of.version_name()));
            let versions = &self.versions;
            let (name, is_new) = names.entry(of.name.clone()).or_insert_with(|| {
                let name = match versions.has(heir, &of.name) {
                    false => of.name.clone(),
                    true => format!("{user}.{}", of.name),
                };
                let is_new = !versions.has(heir, &name);
                (name, is_new)
            });
            (of.user, of.name) = (heir.into(), name.clone());
            match is_new {
                true => self.versions.note((heir, name, of.version), None),
                false => of.version = self.versions.next(heir, name, of.origin),
            }
        }
        given
    }

    /// Marks a publication as withdrawn.
    pub fn withdraw(&mut self, now: Duration, id: SessionId) {
        if let Some(publication) = self.publications.get_mut(&id) {
            publication.stage = PublicationStage::Withdrawn;
            self.withdrawn.insert(id, now);
        }
    }

    /// Returns the publications that were withdrawn, and when.
    pub fn withdrawn(&self) -> Vec<(SessionId, Duration)> {
        self.withdrawn.iter().map(|(id, since)| (*id, *since)).collect()
    }

    /// Notes that what a living session's request has published has ended. `is_known` is whether a
    /// replay may have a request.
    pub fn note_end(
        &mut self,
        (session, request): (SessionId, RequestId),
        is_known: impl Fn(RequestId) -> bool,
    ) {
        let all = self.ended.entry(session).or_default();
        if all.len() >= MOST_ENDED {
            all.retain(|request| is_known(*request));
        }
        all.insert(request);
    }

    /// Returns the requests of living sessions whose publications have ended.
    pub fn ended(&self) -> impl Iterator<Item = (SessionId, RequestId)> {
        let of = |(session, all): (&SessionId, _)| (*session, all);
        let all = self.ended.iter().map(of);
        all.flat_map(|(session, all): (_, &BTreeSet<RequestId>)| {
            all.iter().map(move |request| (session, *request))
        })
    }

    /// Returns the last versions of all names, as user, name and version.
    pub fn versions(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        self.versions.all()
    }

    /// Forgets a request for a publication that is still being stored.
    pub fn cancel(&mut self, client: PeerId, request: RequestId) {
        self.waiting.retain(|find| (find.client, find.request) != (client, request));
    }

    /// Forgets a session that has ended.
    pub fn forget_session(&mut self, session: SessionId) {
        self.ended.remove(&session);
    }
}

#[cfg(test)]
mod tests;
