//! A publication: a version of tensors under a name, and where its values are.

use std::sync::Arc;

use bytes::Bytes;
use gt_ir::layout::Layout;
use gt_ir::message::FoundPublication;
use gt_ir::publication::{Audience, PublicationStatus};
use gt_ir::{Meta, RequestId, SessionId, SlotId, WorkerId, record};

/// A version of tensors that a user has published.
#[derive(Clone)]
pub struct Publication {
    /// The number by which workers know it, like that of a session.
    pub id: SessionId,
    /// The owner; empty without users' keys.
    pub user: String,
    pub team: String,
    /// The name, without that of the user.
    pub name: String,
    pub version: u32,
    pub audience: Audience,
    pub description: String,
    /// What surrounds the tensors, as the client encoded it.
    pub structure: Bytes,
    pub tensors: Vec<PublishedTensor>,
    pub slots: Vec<PublishedSlot>,
    pub stage: PublicationStage,
    /// When it was published, in seconds since 1970.
    pub at: u64,
    /// The session that published it, and its request.
    pub origin: (SessionId, RequestId),
}

record!(struct Publication {
    id, user, team, name, version, audience, description, structure, tensors, slots, stage, at, origin,
});

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PublicationStage {
    /// Its values are being stored and copied.
    Storing,
    /// It can be read.
    Visible,
    /// It stays for those that read it.
    Withdrawn,
}

record!(enum PublicationStage { 0 => Storing, 1 => Visible, 2 => Withdrawn });

/// A published tensor.
#[derive(Clone)]
pub struct PublishedTensor {
    pub meta: Meta,
    pub layout: Arc<Layout>,
}

record!(struct PublishedTensor { meta, layout });

/// The values of a slot of a publication.
#[derive(Clone)]
pub struct PublishedSlot {
    pub slot: SlotId,
    pub bytes: u64,
    /// The workers that have all of them.
    pub holders: Vec<WorkerId>,
    /// While they are being stored: the worker that does, and the one that stores the copy.
    pub storing: Option<(WorkerId, Option<WorkerId>)>,
}

record!(struct PublishedSlot { slot, bytes, holders, storing });

impl PublishedSlot {
    /// Returns whether a worker has the values, or stores them.
    pub fn is_on(&self, worker: WorkerId) -> bool {
        let is_stored =
            |(host, copy): (WorkerId, Option<WorkerId>)| host == worker || copy == Some(worker);
        self.storing.is_some_and(is_stored) || self.holders.contains(&worker)
    }
}

impl Publication {
    /// Returns its name with that of the user.
    pub fn full_name(&self) -> String {
        match self.user.as_str() {
            "" => self.name.clone(),
            user => format!("{user}/{}", self.name),
        }
    }

    /// Returns its name with user and version.
    pub fn version_name(&self) -> String {
        format!("{}@{}", self.full_name(), self.version)
    }

    /// Returns whether a user in a team may read it.
    pub fn is_for(&self, user: &str, team: &str) -> bool {
        self.user == user
            || match &self.audience {
                Audience::All => true,
                Audience::Team => self.team == team && !team.is_empty(),
                Audience::Users(users) => users.iter().any(|of| of == user),
            }
    }

    /// Returns the bytes of its tensors, each counted once.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.meta.bytes() as u64).sum()
    }

    /// Returns it as it is once it can be read.
    pub fn complete(&self) -> Publication {
        Publication { stage: PublicationStage::Visible, ..self.clone() }
    }

    /// Returns its bytes on a worker.
    pub fn bytes_on(&self, worker: WorkerId) -> u64 {
        self.slots.iter().filter(|of| of.is_on(worker)).map(|of| of.bytes).sum()
    }

    pub fn slot_mut(&mut self, slot: SlotId) -> Option<&mut PublishedSlot> {
        self.slots.iter_mut().find(|of| of.slot == slot)
    }

    pub fn slot(&self, slot: SlotId) -> Option<&PublishedSlot> {
        self.slots.iter().find(|of| of.slot == slot)
    }

    /// Returns whether all values are stored.
    pub fn is_stored(&self) -> bool {
        self.slots.iter().all(|slot| slot.storing.is_none())
    }

    /// Returns it as its readers find it.
    pub fn found(&self) -> FoundPublication {
        FoundPublication {
            publication: self.id,
            name: self.version_name(),
            structure: self.structure.clone(),
            tensors: self.tensors.iter().map(|tensor| tensor.meta).collect(),
        }
    }

    pub fn status(&self, readers: u32) -> PublicationStatus {
        PublicationStatus {
            name: self.full_name(),
            version: self.version,
            audience: self.audience.clone(),
            description: self.description.clone(),
            at: self.at,
            tensors: self.tensors.len() as u64,
            bytes: self.bytes(),
            readers,
            is_visible: self.stage == PublicationStage::Visible,
            is_withdrawn: self.stage == PublicationStage::Withdrawn,
        }
    }
}
