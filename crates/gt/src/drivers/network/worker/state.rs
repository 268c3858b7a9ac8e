//! The folder of a worker's state: its snapshots, and the token by which the server knows it.
//! Snapshots so outlive a power cut.
//!
//! A snapshot counts as complete once it is durable here. Until then, the message that reports it
//! waits, and the previous snapshot stays.

use std::collections::VecDeque;
use std::path::Path;

use gt_ir::{record, wire};
use gt_journal::Folder;
use gt_net::NetError;
use gt_store::mapped;
use gt_worker::{Out, SnapshotRecord, Work};

use crate::drivers::network::journal::{self, Health, JournalDriver, meaning};

/// Distinguishes the journal of a worker from that of a server.
const OF_WORKERS: u64 = 0x776f_726b_6572_0000;

/// A record of a worker's journal.
enum StateRecord {
    /// The token by which the server knows the worker.
    Token(u128),
    Snapshot(SnapshotRecord),
}

record!(enum StateRecord { 0 => Token(token), 1 => Snapshot(record) });

/// The stored state of the worker that used the folder before.
pub(super) struct StoredState {
    folder: Folder,
    pub token: Option<u128>,
    records: Vec<SnapshotRecord>,
}

/// Opens the folder of a worker's state.
///
/// # Errors
/// It cannot be used, another process uses it, or its contents are of another version.
pub(super) fn open(path: &Path) -> Result<StoredState, NetError> {
    // The file is replaced before anything else is written, so mapped values do not change.
    let open = || Folder::open_with(path, meaning() ^ OF_WORKERS, |file| mapped::map(file));
    let (folder, all) = journal::open(path, open)?;
    let (mut token, mut records) = (None, Vec::new());
    for record in all {
        match record {
            StateRecord::Token(last) => token = Some(last),
            StateRecord::Snapshot(record) => records.push(record),
        }
    }
    Ok(StoredState { folder, token, records })
}

/// The folder of a running worker's state.
pub(super) struct StateFolder {
    journal: JournalDriver<StateRecord>,
    token: u128,
    /// Messages that wait until records up to a position are durable, in order.
    later: VecDeque<(u64, Out)>,
}

impl StateFolder {
    /// Starts from the stored state if the server knows the worker (`is_known`), and otherwise
    /// without it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn start(
        stored: StoredState,
        token: u128,
        is_known: bool,
        core: &mut dyn Work,
    ) -> Result<StateFolder, NetError> {
        let StoredState { folder, records, .. } = stored;
        let path = folder.path().display();
        let has_values = |it: &SnapshotRecord| matches!(it, SnapshotRecord::Values { values, .. } if !values.is_empty());
        if is_known {
            let count = core.adopt(records);
            tracing::warn!("{count} snapshots in '{path}' are taken up again");
        } else if records.iter().any(has_values) {
            tracing::warn!(
                "the snapshots in '{path}' are of sessions that the server does not know any more: they are dropped"
            );
        }
        let all = beginning(token, core.keep_records());
        let journal = JournalDriver::start(folder, wire::encode, all, || {})?;
        Ok(StateFolder { journal, token, later: VecDeque::new() })
    }

    /// Writes the changes, and the worker's current token.
    pub fn write(&mut self, token: u128, core: &mut dyn Work) {
        if std::mem::replace(&mut self.token, token) != token {
            self.journal.writer.append(StateRecord::Token(token));
        }
        for record in core.take_records() {
            self.journal.writer.append(StateRecord::Snapshot(record));
        }
    }

    /// Returns whether a message waits for the disk.
    pub fn is_awaited(&self) -> bool {
        !self.later.is_empty()
    }

    /// Defers a message that reports a snapshot until all records before it are durable. Returns
    /// the message if it may be sent now.
    pub fn defer(&mut self, out: Out) -> Option<Out> {
        if !out.is_of_snapshot() || self.journal.failure().is_some() {
            return Some(out);
        }
        let position = self.journal.writer.given();
        if self.later.is_empty()
            && (!out.completes_snapshot() || position <= self.journal.writer.durable())
        {
            return Some(out);
        }
        self.later.push_back((position, out));
        None
    }

    /// Writes to the disk, and returns the messages that may be sent now.
    pub fn keep(&mut self, core: &mut dyn Work) -> Vec<Out> {
        let token = self.token;
        match self.journal.look(|| beginning(token, core.keep_records())) {
            Health::Failed { is_new } => {
                core.leave_records();
                if is_new {
                    let (path, reason) = (self.journal.place(), self.journal.failure());
                    tracing::warn!(
                        "the worker cannot write its state to '{}' ({}): snapshots are lost if it dies; it is tried again every {} s",
                        path.display(),
                        reason.unwrap_or_default(),
                        self.journal.patience.retry.as_secs()
                    );
                }
                return self.later.drain(..).map(|(_, out)| out).collect();
            }
            Health::Mended => tracing::warn!("the worker's state is written again"),
            Health::Unchanged => {}
        }
        let durable = self.journal.writer.durable();
        let ready = self.later.partition_point(|(position, _)| *position <= durable);
        self.later.drain(..ready).map(|(_, out)| out).collect()
    }

    /// Drops the deferred messages, as the server is lost.
    pub fn forget(&mut self) {
        self.later.clear();
    }
}

/// Returns the first records of a journal.
fn beginning(token: u128, records: Vec<SnapshotRecord>) -> Vec<StateRecord> {
    let records = records.into_iter().map(StateRecord::Snapshot);
    std::iter::once(StateRecord::Token(token)).chain(records).collect()
}
