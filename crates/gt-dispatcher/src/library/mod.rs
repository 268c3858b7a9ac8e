//! The library: what sessions have published for others.
//!
//! A version is a value: it does not change, and belongs to the library, not to the session that
//! published it. Workers store its values beside their snapshots; what a session reads of it is
//! made by an ordinary `Create`, which names it.
//!
//! - [`publication`]: a version, and where its values are; [`name`]: names as users give them;
//!   [`borrowed`]: what a session reads of them.

mod borrowed;
mod name;
mod publication;

use std::collections::BTreeMap;
use std::time::Duration;

use gt_ir::publication::FIRST_PUBLICATION;
use gt_ir::{Publish, RequestId, SessionId, SlotId, WorkerId};

use crate::peer::PeerId;
use name::{GivenName, shown};

pub(crate) use borrowed::BorrowedTensors;
pub(crate) use publication::{Publication, PublicationStage, PublishedSlot, PublishedTensor};

/// The publications of a server.
#[derive(Default)]
pub(crate) struct Publications {
    publications: BTreeMap<SessionId, Publication>,
    /// The requests for publications that are still being stored.
    pub waiting: Vec<WaitingFind>,
    /// The values that workers wait for, by slot and worker, and since when.
    pub needed: BTreeMap<(SessionId, SlotId, WorkerId), Duration>,
    /// The last request of each session whose publication has ended: a session that is replayed
    /// does not publish it again.
    ended: BTreeMap<SessionId, RequestId>,
    /// The request to withdraw a publication, and its name, in the batch that was just planned.
    pub withdrawing: Option<(RequestId, String)>,
    /// When publications were withdrawn.
    withdrawn: BTreeMap<SessionId, Duration>,
    /// The last number assigned.
    last: u32,
}

/// A request for a publication that cannot be read yet.
pub(crate) struct WaitingFind {
    pub client: PeerId,
    pub request: RequestId,
    pub publication: SessionId,
}

/// What a request to publish comes to.
pub(crate) enum Begun {
    /// A new publication, or one whose values are to be stored once more.
    Store(SessionId),
    /// The session is replayed, and has published it before.
    Done,
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
    pub fn adopt(&mut self, now: Duration, publications: Vec<Publication>, last: u32) {
        self.last = self.last.max(last);
        for publication in publications {
            if publication.stage == PublicationStage::Withdrawn {
                self.withdrawn.insert(publication.id, now);
            }
            self.publications.insert(publication.id, publication);
        }
    }

    /// Begins to publish tensors of a session of a user in a team.
    ///
    /// # Errors
    /// The name or the description is not valid.
    pub fn begin(
        &mut self,
        session: SessionId,
        (user, team): (&str, &str),
        publish: &Publish,
    ) -> Result<Begun, String> {
        let origin = (session, publish.request);
        if let Some(known) = self.publications.values().find(|of| of.origin == origin) {
            return Ok(match known.stage {
                PublicationStage::Storing => Begun::Store(known.id),
                PublicationStage::Visible | PublicationStage::Withdrawn => Begun::Done,
            });
        }
        if self.ended.get(&session).is_some_and(|last| publish.request <= *last) {
            return Ok(Begun::Done);
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

    /// Removes a publication.
    pub fn remove(&mut self, id: SessionId) -> Option<Publication> {
        let publication = self.publications.remove(&id)?;
        let (session, request) = publication.origin;
        let last = self.ended.entry(session).or_insert(request);
        *last = request.max(*last);
        self.needed.retain(|(of, ..), _| *of != id);
        self.withdrawn.remove(&id);
        Some(publication)
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
