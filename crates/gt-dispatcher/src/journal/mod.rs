//! The journal, from which a restarted server resumes its sessions.
//!
//! The dispatcher makes records of its sessions' lineages, in the order of their changes; the
//! driver writes them, and reports which snapshots are written. A journal that is read yields a
//! [`History`], from which sessions are restored as after the loss of a worker.
//!
//! - [`history`]: reads the records of a journal into the state that they describe.

mod history;

use bytes::Bytes;
use gt_ir::message::ClientHello;
use gt_ir::publication::PUBLISHED;
use gt_ir::status::MinuteStatus;
use gt_ir::wire::{self, Decoded};
use gt_ir::{Incarnation, RequestId, SessionId, SlotId, StreamNumbers, WorkerId, record};
use std::sync::Arc;

use crate::library::{BorrowedTensors, Publication};
use crate::named::{KeptNames, SessionName};
use crate::pages::PageChange;
use crate::planner::{Catalogue, Slots, TensorState};
use crate::queue::Pruned;
use crate::templates::ClientTemplates;

pub use history::{History, SessionHistory};
pub(crate) use history::{StoredBatch, StoredWorker};

/// A record of a journal.
#[derive(Clone)]
pub enum JournalRecord {
    /// The last numbers assigned to sessions and lanes, and the next worker id.
    Numbers {
        session: SessionId,
        incarnation: Incarnation,
        workers: u32,
    },
    /// A worker has connected. It is recognised by its token.
    Worker {
        id: WorkerId,
        number: u32,
        name: String,
        token: u128,
    },
    WorkerLost {
        id: WorkerId,
    },
    /// A session begins, with this hello and its token.
    Session {
        session: SessionId,
        hello: Box<ClientHello>,
    },
    /// A batch of a session. `received` counts the client's messages up to and including it.
    Batch {
        session: SessionId,
        number: u64,
        received: u64,
        frames: Vec<Bytes>,
    },
    /// Commands of a batch are not planned.
    Pruned {
        session: SessionId,
        number: u64,
        pruned: Pruned,
    },
    /// From batch `from` on, the session is planned with these slots, on these workers.
    Slots {
        session: SessionId,
        from: u64,
        slots: Slots,
    },
    /// A snapshot of a session is complete.
    Base(Box<BaseRecord>),
    /// A session cannot be restored any more, for this reason; batches before `from` are forgotten.
    Unkept {
        session: SessionId,
        from: u64,
        reason: String,
    },
    SessionEnd {
        session: SessionId,
    },
    /// A session has this name from now on, and the client with this hello, or none: then its last
    /// client had it.
    Holder {
        session: SessionId,
        hello: Box<ClientHello>,
        name: Option<SessionName>,
        is_detached: bool,
    },
    /// A publication that can be read, or that was withdrawn, and where its values are.
    Publication(Box<Publication>),
    /// A publication has ended, or has had this number; the living session that published it, and
    /// its request.
    PublicationEnd {
        publication: SessionId,
        origin: Option<(SessionId, RequestId)>,
    },
    /// A name of a user has had this version; the session that publishes it, and its request, if it
    /// is not stored yet.
    Version {
        user: String,
        name: String,
        version: u32,
        origin: Option<(SessionId, RequestId)>,
    },
    /// What operators have set, from now on: the weights of users, those of sessions, and the users
    /// and the sessions that are paused; and the sessions that their own users have paused.
    Orders {
        weights: Vec<(String, u32)>,
        weighed: Vec<(SessionId, u32)>,
        users: Vec<String>,
        sessions: Vec<SessionId>,
        by_users: Vec<SessionId>,
    },
    /// A minute of the last hour, with when it began, in seconds since 1970.
    Minute {
        at: u64,
        minute: MinuteStatus,
    },
}

record!(enum JournalRecord {
    1 => Numbers { session, incarnation, workers },
    2 => Worker { id, number, name, token },
    3 => WorkerLost { id },
    4 => Session { session, hello },
    5 => Batch { session, number, received, frames },
    6 => Pruned { session, number, pruned },
    7 => Slots { session, from, slots },
    8 => Base(base),
    9 => Unkept { session, from, reason },
    10 => SessionEnd { session },
    11 => Holder { session, hello, name, is_detached },
    12 => Publication(publication),
    13 => PublicationEnd { publication, origin },
    14 => Orders { weights, weighed, users, sessions, by_users },
    15 => Version { user, name, version, origin },
    16 => Minute { at, minute },
});

/// A snapshot of a session.
#[derive(Clone)]
pub struct BaseRecord {
    pub session: SessionId,
    pub snapshot: u64,
    /// The number of the client's messages that the server had received.
    pub received: u64,
    /// The first batch that is not in the snapshot.
    pub planned: u64,
    pub(crate) state: Arc<SnapshotState>,
    pub(crate) tensors: StoredTensors,
    pub(crate) copies: Vec<StoredCopy>,
    /// The client's shared memory that is not needed any more.
    pub(crate) blocks: Vec<u128>,
}

record!(struct BaseRecord { session, snapshot, received, planned, state, tensors, copies, blocks });

/// The state of a session at a snapshot.
#[derive(Clone, Default)]
pub(crate) struct SnapshotState {
    pub catalogue: Catalogue,
    pub templates: ClientTemplates,
    pub kept: KeptNames,
    pub borrowed: BorrowedTensors,
    /// At least the numbers that the batches before it use.
    pub numbers: StreamNumbers,
}

record!(struct SnapshotState { catalogue, templates, kept, borrowed, numbers });

/// A snapshot's tensors.
#[derive(Clone)]
pub(crate) enum StoredTensors {
    All(Vec<PageChange<TensorState>>),
    /// The pages that have changed since the snapshot that the journal has as the base.
    Changes(Vec<PageChange<TensorState>>),
}

impl Default for StoredTensors {
    fn default() -> StoredTensors {
        StoredTensors::All(Vec::new())
    }
}

record!(enum StoredTensors { 0 => All(pages), 1 => Changes(pages) });

/// The workers that hold a slot's values.
#[derive(Clone, Copy)]
pub(crate) struct StoredCopy {
    pub slot: SlotId,
    pub host: WorkerId,
    pub keeper: Option<WorkerId>,
    pub bytes: u64,
}

record!(struct StoredCopy { slot, host, keeper, bytes });

impl JournalRecord {
    /// Encodes the record: its bytes, and large data as further frames.
    pub fn encode(&self) -> Vec<Bytes> {
        wire::encode(self)
    }

    /// Returns the session and number of the snapshot, or the publication, for whose writing the
    /// dispatcher waits: [`crate::Dispatcher::snapshot_written`].
    pub fn awaited(&self) -> Option<(SessionId, u64)> {
        match self {
            JournalRecord::Base(base) => Some((base.session, base.snapshot)),
            JournalRecord::Publication(publication) => Some((publication.id, PUBLISHED)),
            _ => None,
        }
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// The frames are not an encoded record.
    pub fn decode(frames: &[Bytes]) -> Decoded<JournalRecord> {
        wire::decode(frames)
    }
}

/// The records that the driver has not taken yet; empty while there is no journal.
#[derive(Default)]
pub(crate) struct JournalBuffer {
    pub is_on: bool,
    records: Vec<JournalRecord>,
}

impl JournalBuffer {
    /// Adds a record, if there is a journal.
    pub fn add(&mut self, record: impl FnOnce() -> JournalRecord) {
        self.extend(|| [record()]);
    }

    /// Adds records, if there is a journal.
    pub fn extend<I: IntoIterator<Item = JournalRecord>>(&mut self, records: impl FnOnce() -> I) {
        if self.is_on {
            self.records.extend(records());
        }
    }

    /// Takes the records added since the last call.
    pub fn take(&mut self) -> Vec<JournalRecord> {
        std::mem::take(&mut self.records)
    }
}
