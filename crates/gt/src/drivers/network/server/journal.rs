//! A server's journal: what the dispatcher records is written, and what waits for the disk is done
//! once it is.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gt_dispatcher::{Dispatcher, History, JournalRecord, PeerId};
use gt_ir::message::{Hello, PROTOCOL_VERSION, Resume, schema};
use gt_journal::{Folder, Writer, has_journal};
use gt_net::NetError;
use gt_net::keys::Key;
use gt_net::private;
use gt_net::server::LinkId;
use gt_net::wake::Wake;

use super::peers::Peers;

/// A journal begins anew when it is longer than at its beginning by this factor and bytes.
const FACTOR: u64 = 2;
const BYTES: u64 = 64 << 20;
/// How long a disk is waited for.
#[derive(Clone, Copy)]
struct Patience {
    /// The longest time in which it does nothing.
    hang: Duration,
    /// The time after a failure until writing is tried again.
    retry: Duration,
}

/// The server looks at its journal several times a second: after so long without, it stood still.
const STILL: Duration = Duration::from_secs(1);
/// How often it looks whether the journal is still in its folder.
const VISIT_EVERY: Duration = Duration::from_secs(1);

const PATIENCE: Patience =
    Patience { hang: Duration::from_secs(10), retry: Duration::from_secs(30) };

/// The journal of a running server.
pub(super) struct ServerJournal {
    writer: Writer<JournalRecord>,
    wake: Arc<Wake>,
    /// What waits for the disk, by the position up to which all is to be durable.
    later: VecDeque<(u64, Later)>,
    /// Snapshots that become their sessions' bases once they are durable.
    bases: VecDeque<(u64, u32, u64)>,
    /// The position of the last beginning of the journal.
    begun: u64,
    /// How far the disk had got when that was last something new, and when that was.
    progress: (u64, Instant),
    /// When the server last looked at it, and its folder.
    looked: Instant,
    visited: Instant,
    place: PathBuf,
    failed: Option<Failed>,
    patience: Patience,
}

/// The journal is not written.
struct Failed {
    /// Since when, or since when it is tried again.
    since: Instant,
    reason: String,
    /// The beginning of the journal by which it is tried again.
    trial: Option<u64>,
}

/// What is done once all that was recorded before it is durable.
pub(super) enum Later {
    /// A client is told that so many of its messages were received.
    Receipt(PeerId, u64),
    /// A new client is welcomed: a session that it knows of is one that can go on.
    Welcome(PeerId),
    /// A client goes on with its session on another link: it forgets what was received.
    Resume(LinkId, Box<(Hello, Resume)>),
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
    private::folder(folder)?;
    if fs::symlink_metadata(&path).is_ok() {
        private::own_file(&path)?;
        return Key::parse(&fs::read_to_string(&path).map_err(error("reading"))?);
    }
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
    private::folder(path)?;
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

/// Takes up the sessions of a journal. Those that cannot go on are told of.
pub(super) fn take_up(dispatcher: &mut Dispatcher, peers: &mut Peers, mut history: History) {
    dispatcher.expect_workers(Duration::ZERO, &mut history);
    let sessions = history.take_sessions();
    let count = sessions.len();
    for session in sessions {
        let (number, name) = (session.number, session.hello.name.clone());
        let id = peers.restore(&session.hello, session.received);
        if let Err(reason) = dispatcher.take_up(Duration::ZERO, id, session) {
            tracing::warn!("session {number} of '{name}' cannot go on: {reason}");
            peers.give_up(id, reason);
        }
    }
    if count > 0 {
        let (left, _) = dispatcher.population();
        tracing::warn!(
            "started again: {left} of {count} sessions go on once their clients are back"
        );
    }
}

impl ServerJournal {
    /// Begins the journal with what the dispatcher has.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn start(folder: Folder, dispatcher: &mut Dispatcher) -> Result<ServerJournal, NetError> {
        let place = folder.path().to_path_buf();
        let path = place.display().to_string();
        let wake = Arc::new(Wake::new().map_err(start_error)?);
        let ring = Arc::clone(&wake);
        let tell = move || ring.ring();
        let mut writer = Writer::start(folder, JournalRecord::encode, tell).map_err(start_error)?;
        let begun = writer.replace(dispatcher.keep_journal());
        let mut progress = writer.progress();
        while !writer.wait(begun, PATIENCE.hang) {
            // It may be long.
            let before = std::mem::replace(&mut progress, writer.progress());
            if writer.error().is_none() && progress != before {
                continue;
            }
            let reason = writer.error().unwrap_or_else(|| "it takes too long".into());
            return Err(start_error(format!("the state cannot be written to '{path}': {reason}")));
        }
        let (later, bases) = (VecDeque::new(), VecDeque::new());
        let progress = (writer.progress(), Instant::now());
        let (failed, patience) = (None, PATIENCE);
        let (looked, visited) = (progress.1, progress.1);
        Ok(ServerJournal {
            writer,
            wake,
            later,
            bases,
            begun,
            progress,
            looked,
            visited,
            place,
            failed,
            patience,
        })
    }

    /// What wakes a thread that waits, once more is durable.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// What clients are to know while the journal is not written.
    pub fn warning(&self) -> Option<String> {
        let Failed { reason, .. } = self.failed.as_ref()?;
        Some(format!(
            "the server cannot write its state ({reason}): if it dies, the session is lost"
        ))
    }

    /// Writes what the dispatcher has recorded. Returns what has waited for the disk, and does no
    /// more.
    pub fn keep(&mut self, now: Duration, dispatcher: &mut Dispatcher) -> Vec<Later> {
        for record in dispatcher.take_journal() {
            let base = match &record {
                JournalRecord::Base(base) => Some((base.session, base.snapshot)),
                _ => None,
            };
            let position = self.writer.append(record);
            self.bases.extend(base.map(|(session, snapshot)| (position, session, snapshot)));
        }
        match self.trouble() {
            trouble if self.failed.is_some() => self.try_again(now, dispatcher, trouble),
            Some(reason) => return self.fail(now, dispatcher, reason),
            None => self.begin_again_if_long(dispatcher),
        }
        let durable = self.writer.durable();
        let ready = self.bases.partition_point(|(position, ..)| *position <= durable);
        for (_, session, snapshot) in self.bases.drain(..ready) {
            dispatcher.written(now, session, snapshot);
        }
        let ready = self.later.partition_point(|(position, _)| *position <= durable);
        self.later.drain(..ready).map(|(_, later)| later).collect()
    }

    /// Why the journal cannot be written: an error, or the disk hangs.
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

    fn begin_again_if_long(&mut self, dispatcher: &mut Dispatcher) {
        let (bytes, begun) = self.writer.bytes();
        let is_durable = self.writer.durable() >= self.begun;
        if bytes > FACTOR * begun + BYTES && is_durable {
            self.begun = self.writer.replace(dispatcher.everything());
        }
    }

    /// Nothing can be written: nothing waits for it any more. Everybody is told the first time.
    fn fail(&mut self, now: Duration, dispatcher: &mut Dispatcher, reason: String) -> Vec<Later> {
        self.writer.abandon(&reason);
        dispatcher.leave_journal(now);
        self.bases.clear();
        let failed = Failed { since: Instant::now(), reason, trial: None };
        if self.failed.replace(failed).is_none() {
            let warning = self.warning().unwrap_or_default();
            let seconds = self.patience.retry.as_secs();
            tracing::warn!("{warning}; it is tried again every {seconds} s");
            dispatcher.tell_all(&warning);
        }
        self.later.drain(..).map(|(_, later)| later).collect()
    }

    /// Tries to write again, now and then, and says so when it works.
    fn try_again(&mut self, now: Duration, dispatcher: &mut Dispatcher, trouble: Option<String>) {
        let Some(failed) = &mut self.failed else { return };
        match (failed.trial, trouble) {
            (Some(begin), _) if self.writer.durable() >= begin => {
                self.failed = None;
                let text = "the server's state is written again: sessions go on if it dies";
                tracing::warn!("{text}");
                dispatcher.tell_all(text);
            }
            (Some(_), Some(reason)) => drop(self.fail(now, dispatcher, reason)),
            (None, _) if failed.since.elapsed() > self.patience.retry && self.writer.is_idle() => {
                self.begun = self.writer.replace(dispatcher.keep_journal());
                (failed.since, failed.trial) = (Instant::now(), Some(self.begun));
                self.progress.1 = Instant::now();
            }
            _ => {}
        }
    }

    /// Does something once all that was recorded is durable, unless the disk fails. Returns it if
    /// that is so now.
    pub fn defer(&mut self, later: Later) -> Option<Later> {
        let position = self.writer.given();
        let is_durable = self.later.is_empty() && position <= self.writer.durable();
        if self.failed.is_some() || is_durable {
            return Some(later);
        }
        self.later.push_back((position, later));
        None
    }

    /// A link is lost, on which a client was to go on.
    pub fn forget(&mut self, lost: &LinkId) {
        let is_lost = |later: &Later| matches!(later, Later::Resume(link, _) if link == lost);
        self.later.retain(|(_, later)| !is_lost(later));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use gt_dispatcher::Limits;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Keeps the journal until something is so; gives what waited for the disk.
    fn keep_until(
        journal: &mut ServerJournal,
        dispatcher: &mut Dispatcher,
        mut is_so: impl FnMut(&ServerJournal) -> bool,
    ) -> Vec<Later> {
        let (until, mut all) = (Instant::now() + LIMIT, Vec::new());
        while !is_so(journal) {
            assert!(Instant::now() < until, "nothing has changed");
            all.extend(journal.keep(Duration::ZERO, dispatcher));
            std::thread::sleep(Duration::from_millis(2));
        }
        all
    }

    #[test]
    fn a_disk_that_hangs_is_given_up_and_tried_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("state");
        let (folder, _) = open(&path).unwrap();
        let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
        let mut journal = ServerJournal::start(folder, &mut dispatcher).unwrap();
        let (hang, retry) = (Duration::from_millis(300), Duration::from_millis(300));
        journal.patience = Patience { hang, retry };
        // Whoever opens this for writing waits for a reader.
        let fifo = path.join("journal.new");
        let name = CString::new(fifo.to_str().unwrap()).unwrap();
        // SAFETY: the name is a string that ends with a zero and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        journal.writer.replace(dispatcher.everything());
        let peer = PeerId(1);
        assert!(journal.defer(Later::Receipt(peer, 7)).is_none());
        assert!(journal.keep(Duration::ZERO, &mut dispatcher).is_empty());
        let told = keep_until(&mut journal, &mut dispatcher, |journal| journal.warning().is_some());
        assert!(matches!(told[..], [Later::Receipt(_, 7)]));
        assert!(journal.warning().unwrap().contains("has not answered"));
        assert!(journal.defer(Later::Welcome(peer)).is_some(), "nobody waits any more");
        // The disk works again: what is on it is out of date.
        drop(fs::File::open(&fifo).unwrap());
        keep_until(&mut journal, &mut dispatcher, |journal| journal.writer.is_idle());
        fs::remove_file(&fifo).unwrap();
        keep_until(&mut journal, &mut dispatcher, |journal| journal.warning().is_none());
        drop(journal);
        assert!(fs::read_dir(&path).unwrap().count() == 2, "the lock and the journal");
    }
}
