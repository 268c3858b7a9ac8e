//! A journal of a process that goes on from it when it is started again: it is written beside the
//! process's work, and a disk that fails or hangs is given up and tried again.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::{PROTOCOL_VERSION, schema};
use gt_ir::wire::{self, DecodeError, Record};
use gt_journal::{Folder, JournalContents, JournalError, JournalWriter, has_journal};
use gt_net::{NetError, private};

/// A journal begins anew when it is longer than at its beginning by this factor and bytes.
const FACTOR: u64 = 2;
const BYTES: u64 = 64 << 20;

/// How long a disk is waited for.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// The longest time in which it does nothing.
    pub hang: Duration,
    /// The time after a failure until writing is tried again.
    pub retry: Duration,
}

/// The process looks at its journal several times a second: after so long without, it stood still.
const STILL: Duration = Duration::from_secs(1);
/// How often it looks whether the journal is still in its folder.
const VISIT_EVERY: Duration = Duration::from_secs(1);

const PATIENCE: Patience =
    Patience { hang: Duration::from_secs(10), retry: Duration::from_secs(30) };

/// The journal of a running process, of records of type `R`.
pub(super) struct JournalDriver<R> {
    pub writer: JournalWriter<R>,
    /// The position of the last beginning of the journal.
    begun: u64,
    /// How far the disk had got when that was last something new, and when that was.
    progress: (u64, Instant),
    /// When it was last looked at, and its folder.
    looked: Instant,
    visited: Instant,
    place: PathBuf,
    failed: Option<JournalFailed>,
    pub patience: Patience,
}

/// The journal is not written.
struct JournalFailed {
    /// Since when, or since when it is tried again.
    since: Instant,
    reason: String,
    /// The beginning of the journal by which it is tried again.
    trial: Option<u64>,
}

/// What has become of a journal since it was last looked at.
pub(super) enum Health {
    Unchanged,
    /// It cannot be written: nothing waits for it any more. Whether that `is_new`.
    Failed {
        is_new: bool,
    },
    /// It is written again.
    Mended,
}

pub(super) fn start_error(error: impl std::fmt::Display) -> NetError {
    NetError::Start { reason: error.to_string() }
}

/// What the records of this version mean: a journal of another one is refused.
pub(super) fn meaning() -> u64 {
    schema() ^ u64::from(PROTOCOL_VERSION).rotate_right(16)
}

/// Opens the journal in a private folder, and reads its records.
///
/// # Errors
/// The folder cannot be used, or a record not be read.
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
    /// Begins the journal with these records. `tell` is called when more is durable.
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
            // It may be long.
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

    /// Why it is not written, if it is not.
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_ref().map(|failed| failed.reason.as_str())
    }

    /// Looks what has become of it. `everything` gives the records of a journal that begins anew, and
    /// has all changes from then on recorded.
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

    /// Why it cannot be written: an error, or the disk hangs.
    fn trouble(&mut self) -> Option<String> {
        // While this process stood still (it was stopped, or the machine suspended), the disk had no
        // time to answer either.
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

    /// That the journal was taken away, which writing does not notice: the open file is still there.
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

    /// Tries to write again, now and then.
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
