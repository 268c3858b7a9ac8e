//! A server's journal: what the dispatcher records is written, and what waits for the disk is done
//! once it is.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use gt_dispatcher::{Dispatcher, History, JournalRecord, PeerId};
use gt_ir::message::{PROTOCOL_VERSION, schema};
use gt_journal::{Folder, Writer};
use gt_net::NetError;
use gt_net::keys::Key;
use gt_net::wake::Wake;
use std::sync::Arc;

/// A journal begins anew when it is longer than at its beginning by this factor and bytes.
const FACTOR: u64 = 2;
const BYTES: u64 = 64 << 20;
/// How long after a failure writing is tried again.
const RETRY: Duration = Duration::from_secs(30);
/// The longest wait for the disk.
const PATIENCE: Duration = Duration::from_secs(5);

/// The journal of a running server.
pub(super) struct ServerJournal {
    writer: Writer<JournalRecord>,
    wake: Arc<Wake>,
    /// Receipts of clients' messages, told once these are durable.
    receipts: VecDeque<(u64, PeerId, u64)>,
    /// Snapshots that become their sessions' bases once they are durable.
    bases: VecDeque<(u64, u32, u64)>,
    /// The position of the last beginning of the journal.
    begun: u64,
    /// When writing failed.
    failed: Option<Instant>,
}

/// What is durable now.
#[derive(Default)]
pub(super) struct Done {
    pub receipts: Vec<(PeerId, u64)>,
    bases: Vec<(u32, u64)>,
}

impl Done {
    /// One receipt alone.
    pub fn receipt(peer: PeerId, received: u64) -> Done {
        Done { receipts: vec![(peer, received)], bases: Vec::new() }
    }
}

fn start_error(error: impl std::fmt::Display) -> NetError {
    NetError::Start { reason: error.to_string() }
}

/// The key of a server that keeps its state: the one in its folder, which is made if there is none.
///
/// # Errors
/// It cannot be read or written.
pub(super) fn key(folder: &Path) -> Result<Key, NetError> {
    let path = folder.join("key");
    let error = |action| {
        let path = path.display().to_string();
        move |error| NetError::File { action, path, error }
    };
    match fs::read_to_string(&path) {
        Ok(text) => return Key::parse(&text),
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => {}
        Err(other) => return Err(error("reading")(other)),
    }
    fs::create_dir_all(folder).map_err(error("writing"))?;
    let key = Key::generate();
    let mut options = fs::OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(0o600).open(&path).map_err(error("writing"))?;
    std::io::Write::write_all(&mut file, key.to_text().as_bytes()).map_err(error("writing"))?;
    Ok(key)
}

/// What the records of this version mean: a journal of another one is refused.
fn meaning() -> u64 {
    schema() ^ u64::from(PROTOCOL_VERSION).rotate_right(16)
}

/// Opens the journal in a folder, and reads what it says.
///
/// # Errors
/// The folder cannot be used, or the journal not be read.
pub(super) fn open(path: &Path) -> Result<(Folder, History), NetError> {
    let (folder, contents) = Folder::open(path, meaning()).map_err(start_error)?;
    let mut history = History::default();
    let count = contents.records.len();
    for (index, frames) in contents.records.iter().enumerate() {
        match JournalRecord::decode(frames) {
            Ok(record) => history.add(record),
            Err(error) => {
                return Err(start_error(format!(
                    "record {index} of {count} of the journal in '{}' cannot be read ({error})\n  hint: start the version of gt that wrote it, or give another folder",
                    path.display()
                )));
            }
        }
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
    Ok((folder, history))
}

impl ServerJournal {
    /// Begins the journal with what the dispatcher has.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn start(folder: Folder, dispatcher: &mut Dispatcher) -> Result<ServerJournal, NetError> {
        let path = folder.path().display().to_string();
        let wake = Arc::new(Wake::new());
        let ring = Arc::clone(&wake);
        let tell = move || ring.ring();
        let writer = Writer::start(folder, JournalRecord::encode, tell).map_err(start_error)?;
        let (receipts, bases) = (VecDeque::new(), VecDeque::new());
        let mut journal = ServerJournal { writer, wake, receipts, bases, begun: 0, failed: None };
        let begin = journal.writer.replace(dispatcher.keep_journal());
        journal.begun = begin;
        if !journal.writer.wait(begin, PATIENCE) {
            let reason = journal.writer.error().unwrap_or_else(|| "it takes too long".into());
            return Err(start_error(format!("the state cannot be written to '{path}': {reason}")));
        }
        Ok(journal)
    }

    /// What wakes a thread that waits, once more is durable.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Writes what the dispatcher has recorded. Returns what is durable now.
    pub fn keep(&mut self, now: Duration, dispatcher: &mut Dispatcher) -> Done {
        for record in dispatcher.take_journal() {
            let base = match &record {
                JournalRecord::Base(base) => Some((base.session, base.snapshot)),
                _ => None,
            };
            let position = self.writer.append(record);
            self.bases.extend(base.map(|(session, snapshot)| (position, session, snapshot)));
        }
        if self.failed.is_none() {
            if let Some(reason) = self.writer.error() {
                return self.fail(now, dispatcher, &reason);
            }
            let (bytes, begun) = self.writer.bytes();
            let is_durable = self.writer.durable() >= self.begun;
            if bytes > FACTOR * begun + BYTES && is_durable {
                self.begun = self.writer.replace(dispatcher.everything());
            }
        } else if self.failed.is_some_and(|since| since.elapsed() > RETRY) {
            let begin = self.writer.replace(dispatcher.keep_journal());
            if self.writer.wait(begin, PATIENCE) {
                self.failed = None;
                tracing::warn!("the server's state is written again");
            } else {
                let reason = self.writer.error().unwrap_or_else(|| "it takes too long".into());
                return self.fail(now, dispatcher, &reason);
            }
        }
        let done = self.take_done();
        for (session, snapshot) in &done.bases {
            dispatcher.written(now, *session, *snapshot);
        }
        done
    }

    /// Nothing can be written: nothing waits for it any more.
    fn fail(&mut self, now: Duration, dispatcher: &mut Dispatcher, reason: &str) -> Done {
        if self.failed.replace(Instant::now()).is_none() {
            tracing::warn!(
                "the server's state cannot be written: {reason}\n  if the server dies, sessions are lost; it is tried again every {} s",
                RETRY.as_secs()
            );
        }
        dispatcher.leave_journal(now, reason);
        self.bases.clear();
        let receipts = self.receipts.drain(..).map(|(_, peer, received)| (peer, received));
        Done { receipts: receipts.collect(), bases: Vec::new() }
    }

    fn take_done(&mut self) -> Done {
        let durable = self.writer.durable();
        let mut done = Done::default();
        let ready = self.receipts.partition_point(|(position, ..)| *position <= durable);
        let receipts = self.receipts.drain(..ready).map(|(_, peer, received)| (peer, received));
        done.receipts.extend(receipts);
        let ready = self.bases.partition_point(|(position, ..)| *position <= durable);
        let bases = self.bases.drain(..ready).map(|(_, session, snapshot)| (session, snapshot));
        done.bases.extend(bases);
        done
    }

    /// A client is told that this much was received, once all that was recorded is durable. Returns
    /// whether it can be told now.
    pub fn acknowledge(&mut self, peer: PeerId, received: u64) -> bool {
        let position = self.writer.given();
        if self.failed.is_some() || position <= self.writer.durable() {
            return true;
        }
        self.receipts.push_back((position, peer, received));
        false
    }

    /// Waits until all that was recorded is durable, or cannot be.
    pub fn wait(&mut self, now: Duration, dispatcher: &mut Dispatcher) -> Done {
        let done = self.keep(now, dispatcher);
        if self.failed.is_none() {
            self.writer.wait(self.writer.given(), PATIENCE);
        }
        done
    }
}
