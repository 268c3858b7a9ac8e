//! The journal: what a server that is started again goes on from.
//!
//! The dispatcher makes records of what its sessions' lineages are made of, in the order in which
//! it happens; the driver writes them, and says which snapshots are written. A journal that is read
//! yields a [`History`], from which sessions are made again as after the loss of a worker.
//!
//! - [`history`]: what the records of a journal add up to.

mod history;

use bytes::Bytes;
use gt_ir::message::Hello;
use gt_ir::wire::{self, Decoded};
use gt_ir::{SlotId, WorkerId, record};
use std::sync::Arc;

use crate::lineage::State;
use crate::pages::Change;
use crate::planner::{Slots, TensorState};
use crate::queue::Pruned;
use crate::sessions::Session;

pub use history::{History, SessionHistory};
pub(crate) use history::{StoredBatch, StoredWorker};

/// A record of a journal.
#[derive(Clone)]
pub enum JournalRecord {
    /// The last numbers of sessions and their lanes, and the next of workers.
    Numbers {
        sessions: u32,
        workers: u32,
    },
    /// A worker has come. It is known by its token.
    Worker {
        id: WorkerId,
        number: u32,
        name: String,
        token: u128,
    },
    WorkerLost {
        id: WorkerId,
    },
    /// A session begins, by this hello with its token.
    Session {
        session: u32,
        hello: Box<Hello>,
    },
    /// A batch of a session; with it, the server has received so many of the client's messages.
    Batch {
        session: u32,
        number: u64,
        received: u64,
        frames: Vec<Bytes>,
    },
    /// Something of a batch is not planned.
    Pruned {
        session: u32,
        number: u64,
        pruned: Pruned,
    },
    /// Batches from a number on are planned with these slots, which are on these workers.
    Slots {
        session: u32,
        from: u64,
        slots: Slots,
    },
    /// A snapshot of a session is complete.
    Base(Box<Base>),
    /// A session is not kept any more, for this reason; what was sent before a batch is forgotten.
    Unkept {
        session: u32,
        from: u64,
        reason: String,
    },
    SessionEnd {
        session: u32,
    },
}

record!(enum JournalRecord {
    1 => Numbers { sessions, workers },
    2 => Worker { id, number, name, token },
    3 => WorkerLost { id },
    4 => Session { session, hello },
    5 => Batch { session, number, received, frames },
    6 => Pruned { session, number, pruned },
    7 => Slots { session, from, slots },
    8 => Base(base),
    9 => Unkept { session, from, reason },
    10 => SessionEnd { session },
});

/// A snapshot of a session.
#[derive(Clone)]
pub struct Base {
    pub session: u32,
    pub snapshot: u64,
    /// The messages that the server had received of the client.
    pub received: u64,
    /// The first batch that is not in it.
    pub planned: u64,
    pub(crate) state: Arc<State>,
    pub(crate) tensors: StoredTensors,
    pub(crate) copies: Vec<StoredCopy>,
    /// The client's shared memory that is not needed any more.
    pub(crate) blocks: Vec<u128>,
}

record!(struct Base { session, snapshot, received, planned, state, tensors, copies, blocks });

/// A snapshot's tensors.
#[derive(Clone)]
pub(crate) enum StoredTensors {
    All(Vec<Change<TensorState>>),
    /// What has changed since the snapshot that the journal has as the base.
    Changes(Vec<Change<TensorState>>),
}

impl Default for StoredTensors {
    fn default() -> StoredTensors {
        StoredTensors::All(Vec::new())
    }
}

record!(enum StoredTensors { 0 => All(pages), 1 => Changes(pages) });

/// The workers that have a slot's values.
#[derive(Clone, Copy)]
pub(crate) struct StoredCopy {
    pub slot: SlotId,
    pub host: WorkerId,
    pub keeper: Option<WorkerId>,
    pub bytes: u64,
}

record!(struct StoredCopy { slot, host, keeper, bytes });

impl JournalRecord {
    /// Its encoding: the record, and large data.
    pub fn encode(&self) -> Vec<Bytes> {
        wire::encode(self)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The frames are not what [`JournalRecord::encode`] makes.
    pub fn decode(frames: &[Bytes]) -> Decoded<JournalRecord> {
        wire::decode(frames)
    }
}

/// The records that the driver has not taken yet; none while there is no journal.
#[derive(Default)]
pub(crate) struct Journal {
    pub is_on: bool,
    records: Vec<JournalRecord>,
}

impl Journal {
    /// Adds a record, if there is a journal.
    pub fn add(&mut self, record: impl FnOnce() -> JournalRecord) {
        if self.is_on {
            self.records.push(record());
        }
    }

    /// All of a session, as a journal that begins has it.
    pub fn add_session(&mut self, session: &Session) {
        if self.is_on {
            self.records.extend(session.records());
        }
    }

    /// The slots of a session are others, or elsewhere.
    pub fn add_slots(&mut self, session: &Session) {
        if let Some(lineage) = session.lineage.as_ref().filter(|_| self.is_on) {
            let (session, slots) = (session.number, session.catalogue.slots.clone());
            let from = lineage.log.first_unplanned();
            self.add(|| JournalRecord::Slots { session, from, slots });
        }
    }

    pub fn take(&mut self) -> Vec<JournalRecord> {
        std::mem::take(&mut self.records)
    }
}
