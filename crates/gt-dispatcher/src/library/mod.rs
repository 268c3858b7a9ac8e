//! The library: what sessions have published for others.
//!
//! A version is a value: it does not change, and belongs to the library, not to the session that
//! published it. Workers store its values beside their snapshots; what a session reads of it is
//! made by an ordinary `Create`, which names it.
//!
//! - [`publication`]: a version, and where its values are; [`name`]: names as users give them;
//!   [`borrowed`]: what a session reads of them; [`stored`]: the publications of a journal;
//!   [`requests`]: what sessions ask of the library.

mod borrowed;
mod name;
mod publication;
mod requests;
mod stored;

use std::collections::BTreeMap;
use std::time::Duration;

use gt_ir::publication::FIRST_PUBLICATION;
use gt_ir::{Publish, RequestId, SessionId, SlotId, WorkerId};

use name::{GivenName, shown};

pub(crate) use borrowed::BorrowedTensors;
pub(crate) use publication::{Publication, PublicationStage, PublishedSlot, PublishedTensor};
pub(crate) use requests::{Begun, PlannedRequests, RefusedPublication, WaitingFind};
pub(crate) use stored::StoredPublications;

/// The publications of a server.
#[derive(Default)]
pub(crate) struct Publications {
    publications: BTreeMap<SessionId, Publication>,
    /// The requests for publications that are still being stored.
    pub waiting: Vec<WaitingFind>,
    /// The values that workers wait for, by slot and worker, and since when.
    pub needed: BTreeMap<(SessionId, SlotId, WorkerId), Duration>,
    /// The last request of each living session whose publication has ended: a session that is
    /// replayed does not publish it again.
    ended: BTreeMap<SessionId, RequestId>,
    /// What the batch that is being planned asks for, and is done once it is planned.
    pub planned: PlannedRequests,
    /// When publications were withdrawn.
    withdrawn: BTreeMap<SessionId, Duration>,
    /// The last number assigned.
    last: u32,
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
        self.ended = stored.ended;
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
        if self.ended.get(&session).is_some_and(|last| publish.request <= *last) {
            return Err("it has ended since\n  hint: publish it again".into());
        }
        name::check(&publish.name)?;
        let (bytes, most) = (publish.description.len(), Publish::MOST_DESCRIPTION);
        if bytes > most {
            return Err(format!("the description has {bytes} bytes, {most} are allowed"));
        }
        let versions =
            self.publications.values().filter(|of| of.user == user && of.name == publish.name);
        let version = versions.map(|of| of.version).max().unwrap_or(0) + 1;
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
        self.withdrawn.remove(&id);
        Some(publication)
    }

    /// Gives a publication to another user, with a new version if that user has this one.
    pub fn give(&mut self, id: SessionId, heir: &str) {
        let Some(of) = self.publications.get(&id) else { return };
        let same = self.publications.values().filter(|it| it.user == heir && it.name == of.name);
        let versions: Vec<u32> = same.map(|it| it.version).collect();
        let is_free = !versions.contains(&of.version);
        let last = versions.into_iter().max().unwrap_or(0);
        if let Some(of) = self.publications.get_mut(&id) {
            of.user = heir.into();
            of.version = if is_free { of.version } else { last + 1 };
        }
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

    /// Notes that what a living session's request has published has ended.
    pub fn note_end(&mut self, (session, request): (SessionId, RequestId)) {
        let last = self.ended.entry(session).or_insert(request);
        *last = request.max(*last);
    }

    /// Returns the last request of each living session whose publication has ended.
    pub fn ended(&self) -> impl Iterator<Item = (SessionId, RequestId)> {
        self.ended.iter().map(|(session, request)| (*session, *request))
    }

    /// Forgets a session that has ended.
    pub fn forget_session(&mut self, session: SessionId) {
        self.ended.remove(&session);
    }

    /// Returns the publication that a name means for a user in a team: that of the version, or the
    /// newest one that is not withdrawn.
    ///
    /// # Errors
    /// There is none, or several users have one.
    pub fn find(&self, (user, team): (&str, &str), given: &str) -> Result<&Publication, String> {
        let GivenName { user: owner, name, version } = name::parse(given)?;
        let readable: Vec<&Publication> = self
            .publications
            .values()
            .filter(|of| of.is_for(user, team) && of.stage != PublicationStage::Withdrawn)
            .collect();
        let is_named =
            |of: &&&Publication| of.name == name && owner.is_none_or(|owner| of.user == owner);
        let named: Vec<&Publication> = readable.iter().filter(is_named).copied().collect();
        let mut owners: Vec<&str> = named.iter().map(|of| of.user.as_str()).collect();
        owners.sort_unstable();
        owners.dedup();
        let owner = match owners.as_slice() {
            _ if owners.contains(&user) && owner.is_none() => user,
            [owner] => owner,
            [] => return Err(unknown(given, &readable)),
            several => {
                let names: Vec<String> =
                    several.iter().map(|of| format!("'{of}/{name}'")).collect();
                return Err(format!(
                    "several users have published '{}'\n  hint: say whose: {}",
                    shown(name),
                    names.join(", ")
                ));
            }
        };
        let own = named.into_iter().filter(|of| of.user == owner);
        let mut versions: Vec<&Publication> = own.collect();
        versions.sort_by_key(|of| of.version);
        let found = match version {
            Some(version) => versions.iter().rfind(|of| of.version == version),
            // One that is being stored is awaited only if there is no other.
            None => versions
                .iter()
                .rfind(|of| of.stage == PublicationStage::Visible)
                .or(versions.last()),
        };
        found.copied().ok_or_else(|| {
            let numbers: Vec<String> = versions.iter().map(|of| of.version.to_string()).collect();
            format!(
                "'{}' has no version {}\n  hint: its versions are {}",
                shown(name),
                version.unwrap_or_default(),
                numbers.join(", ")
            )
        })
    }

    /// Returns the user's own publications that a name means: one version, or all.
    ///
    /// # Errors
    /// There is none.
    pub fn own(&self, user: &str, given: &str) -> Result<Vec<SessionId>, String> {
        let GivenName { user: owner, name, version } = name::parse(given)?;
        if let Some(owner) = owner.filter(|owner| *owner != user) {
            return Err(format!(
                "'{}' belongs to {}, and only its owner may withdraw it",
                shown(given),
                shown(owner)
            ));
        }
        let is_own = |of: &&Publication| of.user == user && of.stage != PublicationStage::Withdrawn;
        let own: Vec<&Publication> = self.publications.values().filter(is_own).collect();
        let is_it = |of: &&&Publication| {
            of.name == name && version.is_none_or(|version| version == of.version)
        };
        let found: Vec<SessionId> = own.iter().filter(is_it).map(|of| of.id).collect();
        if found.is_empty() { Err(unknown(given, &own)) } else { Ok(found) }
    }
}

/// Returns the error for a name that none of these has.
fn unknown(given: &str, known: &[&Publication]) -> String {
    let mut names: Vec<String> = known.iter().map(|of| of.full_name()).collect();
    names.sort_unstable();
    names.dedup();
    let others = match names.as_slice() {
        [] => "nothing is published that you can read".to_string(),
        _ => format!("published are {}", names.join(", ")),
    };
    format!("there is no publication '{}'\n  hint: {others}", shown(given))
}

#[cfg(test)]
mod tests;
