//! A server's journal: it writes the dispatcher's records, and releases the actions that wait until
//! these are durable.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gt_dispatcher::{Dispatcher, History, JournalRecord, PeerId, ToPeer};
use gt_ir::SessionId;
use gt_ir::message::{ClientHello, Resume};
use gt_journal::Folder;
use gt_net::NetError;
use gt_net::keys::Key;
use gt_net::private;
use gt_net::server::LinkId;
use gt_net::wake::Wake;

use super::peers::PeerTable;
use crate::drivers::network::journal::{self, Health, JournalDriver, meaning, start_error};

/// The journal of a running server.
pub(super) struct ServerJournal {
    journal: JournalDriver<JournalRecord>,
    wake: Arc<Wake>,
    /// Actions that wait for the disk, with the position up to which records must be durable.
    later: VecDeque<(u64, Later)>,
    /// Snapshots that become their sessions' bases once they are durable.
    bases: VecDeque<(u64, SessionId, u64)>,
}

/// An action that waits until all records before it are durable.
pub(super) enum Later {
    /// Acknowledge this many messages to a client.
    Receipt(PeerId, u64),
    /// Send a message, which says that something is durable.
    Send(PeerId, Box<ToPeer>),
    /// Welcome a new client: a session that the client knows of can be resumed.
    Welcome(PeerId),
    /// Resume a client's session on another link: the client then drops its acknowledged messages.
    Resume(LinkId, Box<(ClientHello, Resume)>),
}

/// Returns the key in the state folder, generating one if it is missing.
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

/// Opens the journal in a folder, and reads its history.
///
/// # Errors
/// The folder cannot be used, or the journal cannot be read.
pub(super) fn open(path: &Path) -> Result<(Folder, History), NetError> {
    let (folder, records) = journal::open(path, || Folder::open(path, meaning()))?;
    let mut history = History::default();
    records.into_iter().for_each(|record| history.add(record));
    Ok((folder, history))
}

/// Adopts the sessions of a journal. A warning names those that cannot be resumed.
pub(super) fn adopt(dispatcher: &mut Dispatcher, peers: &mut PeerTable, mut history: History) {
    dispatcher.expect_workers(Duration::ZERO, &mut history);
    let sessions = history.take_sessions();
    let count = sessions.len();
    for session in sessions {
        let name = session.hello.origin.label(session.hello.user(), session.number);
        let id = match session.is_detached {
            true => peers.absent(),
            false => peers.restore(&session.hello, session.received),
        };
        if let Err(reason) = dispatcher.adopt(Duration::ZERO, id, session) {
            tracing::warn!("the session {name} cannot go on: {reason}");
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
    /// Starts the journal with the dispatcher's current state.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn start(folder: Folder, dispatcher: &mut Dispatcher) -> Result<ServerJournal, NetError> {
        let wake = Arc::new(Wake::new().map_err(start_error)?);
        let ring = Arc::clone(&wake);
        let (encode, records) = (JournalRecord::encode, dispatcher.keep_journal());
        let journal = JournalDriver::start(folder, encode, records, move || ring.ring())?;
        Ok(ServerJournal { journal, wake, later: VecDeque::new(), bases: VecDeque::new() })
    }

    /// Returns what wakes a waiting thread when more records are durable.
    pub fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Returns the warning for clients while the journal is not written.
    pub fn warning(&self) -> Option<String> {
        let reason = self.journal.failure()?;
        Some(format!(
            "the server cannot write its state ({reason}): if it dies, the session is lost"
        ))
    }

    /// Writes the dispatcher's new records. Returns the actions that need wait no longer.
    pub fn keep(&mut self, now: Duration, dispatcher: &mut Dispatcher) -> Vec<Later> {
        for record in dispatcher.take_journal() {
            let base = record.awaited();
            let position = self.journal.writer.append(record);
            self.bases.extend(base.map(|(session, snapshot)| (position, session, snapshot)));
        }
        match self.journal.look(|| dispatcher.keep_journal()) {
            Health::Failed { is_new } => return self.fail(now, dispatcher, is_new),
            Health::Mended => {
                let text = "the server's state is written again: sessions go on if it dies";
                tracing::warn!("{text}");
                dispatcher.notify_all(text);
            }
            Health::Unchanged => {}
        }
        let durable = self.journal.writer.durable();
        let ready = self.bases.partition_point(|(position, ..)| *position <= durable);
        for (_, session, snapshot) in self.bases.drain(..ready) {
            dispatcher.snapshot_written(now, session, snapshot);
        }
        let ready = self.later.partition_point(|(position, _)| *position <= durable);
        self.later.drain(..ready).map(|(_, later)| later).collect()
    }

    /// Handles a journal that cannot be written: no action waits for it, and all clients are
    /// notified the first time.
    fn fail(&mut self, now: Duration, dispatcher: &mut Dispatcher, is_new: bool) -> Vec<Later> {
        dispatcher.stop_journal(now);
        self.bases.clear();
        if is_new {
            let warning = self.warning().unwrap_or_default();
            let seconds = self.journal.patience.retry.as_secs();
            tracing::warn!("{warning}; it is tried again every {seconds} s");
            dispatcher.notify_all(&warning);
        }
        self.later.drain(..).map(|(_, later)| later).collect()
    }

    /// Defers an action until all current records are durable or the disk fails. Returns it if that
    /// is already so.
    pub fn defer(&mut self, later: Later) -> Option<Later> {
        let position = self.journal.writer.given();
        let is_durable = self.later.is_empty() && position <= self.journal.writer.durable();
        if self.journal.failure().is_some() || is_durable {
            return Some(later);
        }
        self.later.push_back((position, later));
        None
    }

    /// Drops the deferred action of resuming a session on a link that is lost.
    pub fn forget(&mut self, lost: &LinkId) {
        let is_lost = |later: &Later| matches!(later, Later::Resume(link, _) if link == lost);
        self.later.retain(|(_, later)| !is_lost(later));
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;

    use std::time::Instant;

    use gt_dispatcher::Limits;

    use super::*;
    use crate::drivers::network::journal::Patience;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Writes the journal until a condition holds; returns the released actions.
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
        journal.journal.patience = Patience { hang, retry };
        // Opening this for writing blocks until it has a reader.
        let fifo = path.join("journal.new");
        let name = CString::new(fifo.to_str().unwrap()).unwrap();
        // SAFETY: the name is a string that ends with a zero and lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        journal.journal.writer.replace(dispatcher.journal_records());
        let peer = PeerId::client(1);
        assert!(journal.defer(Later::Receipt(peer, 7)).is_none());
        assert!(journal.keep(Duration::ZERO, &mut dispatcher).is_empty());
        let told = keep_until(&mut journal, &mut dispatcher, |journal| journal.warning().is_some());
        assert!(matches!(told[..], [Later::Receipt(_, 7)]));
        assert!(journal.warning().unwrap().contains("has not answered"));
        assert!(journal.defer(Later::Welcome(peer)).is_some(), "nobody waits any more");
        // The disk works again, with out-of-date contents.
        drop(fs::File::open(&fifo).unwrap());
        keep_until(&mut journal, &mut dispatcher, |journal| journal.journal.writer.is_idle());
        fs::remove_file(&fifo).unwrap();
        keep_until(&mut journal, &mut dispatcher, |journal| journal.warning().is_none());
        drop(journal);
        assert!(fs::read_dir(&path).unwrap().count() == 2, "the lock and the journal");
    }
}
