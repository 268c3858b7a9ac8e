//! The journal from which a process resumes after a restart. A thread writes it beside the
//! process's work; writing to a disk that fails or hangs is abandoned, and retried later.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::Protocol;
use gt_ir::wire::{self, DecodeError, Record};
use gt_journal::{Folder, JournalContents, JournalError, JournalWriter, has_journal};
use gt_net::{NetError, private};

/// A journal is rewritten when it has grown by this factor, and by this many bytes.
const FACTOR: u64 = 2;
const BYTES: u64 = 64 << 20;

/// How long to wait for a disk.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// The longest time without progress.
    pub hang: Duration,
    /// The time after a failure until writing is tried again.
    pub retry: Duration,
}

/// The process checks its journal several times a second. After a gap of this length, the process
/// itself was stopped.
const STILL: Duration = Duration::from_secs(1);
/// How often to check that the journal file is still in its folder.
const VISIT_EVERY: Duration = Duration::from_secs(1);

const PATIENCE: Patience =
    Patience { hang: Duration::from_secs(10), retry: Duration::from_secs(30) };

/// The journal of a running process, of records of type `R`.
pub(super) struct JournalDriver<R> {
    pub writer: JournalWriter<R>,
    /// The position of the last rewrite of the journal.
    begun: u64,
    /// The last progress of the disk, and its time.
    progress: (u64, Instant),
    /// When the journal, and its folder, were last checked.
    looked: Instant,
    visited: Instant,
    place: PathBuf,
    failed: Option<JournalFailed>,
    pub patience: Patience,
}

/// The state of a journal that cannot be written.
struct JournalFailed {
    /// When writing failed, or when the current retry began.
    since: Instant,
    reason: String,
    /// The position of the rewrite that is the current retry.
    trial: Option<u64>,
}

/// What changed about a journal since it was last checked.
pub(super) enum Health {
    Unchanged,
    /// The journal cannot be written, and no message waits for it. `is_new` at the first check that
    /// finds this.
    Failed {
        is_new: bool,
    },
    /// The journal is written again after a failure.
    Mended,
}

pub(super) fn start_error(error: impl std::fmt::Display) -> NetError {
    NetError::Start { reason: error.to_string() }
}

/// Returns the schema of this version's records: a journal with another schema is refused.
pub(super) fn meaning() -> u64 {
    let Protocol { version, schema, .. } = Protocol::current();
    schema ^ u64::from(version).rotate_right(16)
}

/// Opens the journal in a private folder, and reads its records.
///
/// # Errors
/// The folder cannot be used, or a record cannot be read.
pub(super) fn open<R: Record>(
    path: &Path,
    open: impl FnOnce() -> Result<(Folder, JournalContents), JournalError>,
) -> Result<(Folder, Vec<R>), NetError> {
    private::folder(path)?;
    let (folder, contents) = open().map_err(start_error)?;
    let count = contents.records.len();
    let mut records = Vec::with_capacity(count);
    for (index, frames) in contents.records.iter().enumerate() {
        let unreadable = |error: DecodeError| {
            start_error(format!(
                "record {index} of {count} of the journal in '{}' cannot be read ({error})\n  hint: start the version of gt that wrote it, or give another folder",
                path.display()
            ))
        };
        records.push(wire::decode(frames).map_err(unreadable)?);
    }
    if let Some(damage) = contents.damage {
        tracing::warn!(
            "the journal in '{}' ends early: {} at byte {}; the {count} records before it are used, {} bytes are lost",
            path.display(),
            damage.reason,
            damage.at,
            damage.lost
        );
    }
    Ok((folder, records))
}

impl<R: Send + 'static> JournalDriver<R> {
    /// Starts the journal with these records. `notify` is called when more records are durable.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn start(
        folder: Folder,
        encode: fn(&R) -> Vec<Bytes>,
        records: Vec<R>,
        tell: impl Fn() + Send + 'static,
    ) -> Result<JournalDriver<R>, NetError> {
        let place = folder.path().to_path_buf();
        let mut writer = JournalWriter::start(folder, encode, tell).map_err(start_error)?;
        let begun = writer.replace(records);
        let mut progress = writer.progress();
        while !writer.wait(begun, PATIENCE.hang) {
            // The first write may be long.
            let before = std::mem::replace(&mut progress, writer.progress());
            if writer.error().is_none() && progress != before {
                continue;
            }
            let reason = writer.error().unwrap_or_else(|| "it takes too long".into());
            let path = place.display();
            return Err(start_error(format!("the state cannot be written to '{path}': {reason}")));
        }
        let now = Instant::now();
        let progress = (writer.progress(), now);
        let (failed, patience) = (None, PATIENCE);
        Ok(JournalDriver {
            writer,
            begun,
            progress,
            looked: now,
            visited: now,
            place,
            failed,
            patience,
        })
    }

    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Returns why the journal is not written, if it is not.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_ref().map(|failed| failed.reason.as_str())
    }

    /// Checks the journal. `everything` returns the records for a rewrite, and starts recording the
    /// changes after them.
    pub fn look(&mut self, everything: impl FnOnce() -> Vec<R>) -> Health {
        match self.trouble() {
            trouble if self.failed.is_some() => self.try_again(trouble, everything),
            Some(reason) => self.fail(reason),
            None => {
                self.begin_again_if_long(everything);
                Health::Unchanged
            }
        }
    }

    /// Returns why the journal cannot be written: an error, or a disk that hangs.
    fn trouble(&mut self) -> Option<String> {
        // While this process was stopped, or the machine suspended, the disk had no time to answer
        // either.
        let now = Instant::now();
        let still = now.duration_since(std::mem::replace(&mut self.looked, now));
        if still > STILL {
            self.progress.1 += still;
        }
        let progress = self.writer.progress();
        if progress != self.progress.0 || self.writer.is_idle() {
            self.progress = (progress, Instant::now());
        }
        let hang = self.patience.hang;
        let hangs = self.progress.1.elapsed() > hang;
        let reason = || format!("the disk has not answered for {} s", hang.as_secs());
        self.writer.error().or_else(|| hangs.then(reason)).or_else(|| self.removed())
    }

    /// Returns an error if the journal file was removed. Writes do not notice, as the file stays
    /// open.
    fn removed(&mut self) -> Option<String> {
        if self.failed.is_some() || self.visited.elapsed() < VISIT_EVERY {
            return None;
        }
        self.visited = Instant::now();
        let is_there = has_journal(&self.place);
        (!is_there).then(|| format!("'{}' was removed, or its journal", self.place.display()))
    }

    fn begin_again_if_long(&mut self, everything: impl FnOnce() -> Vec<R>) {
        let (bytes, begun) = self.writer.bytes();
        let is_durable = self.writer.durable() >= self.begun;
        if bytes > FACTOR * begun + BYTES && is_durable {
            self.begun = self.writer.replace(everything());
        }
    }

    fn fail(&mut self, reason: String) -> Health {
        self.writer.abandon(&reason);
        let failed = JournalFailed { since: Instant::now(), reason, trial: None };
        Health::Failed { is_new: self.failed.replace(failed).is_none() }
    }

    /// Retries writing, at intervals.
    fn try_again(
        &mut self,
        trouble: Option<String>,
        everything: impl FnOnce() -> Vec<R>,
    ) -> Health {
        let Some(failed) = &mut self.failed else { return Health::Unchanged };
        match (failed.trial, trouble) {
            (Some(begin), _) if self.writer.durable() >= begin => {
                self.failed = None;
                return Health::Mended;
            }
            (Some(_), Some(reason)) => return self.fail(reason),
            (None, _) if failed.since.elapsed() > self.patience.retry && self.writer.is_idle() => {
                self.begun = self.writer.replace(everything());
                (failed.since, failed.trial) = (Instant::now(), Some(self.begun));
                self.progress.1 = Instant::now();
            }
            _ => {}
        }
        Health::Unchanged
    }
}
