//! The server: a dispatcher that listens on an address.
//!
//! - [`handshake`]: welcomes peers, resumes clients, turns others away; [`rate_limit`]: wrong tokens.
//! - [`peers`]: connected peers, and disconnected clients that may return; [`incoming`]: receiving;
//!   [`outgoing`]: sending.
//! - [`journal`]: what the server resumes from after a restart; [`backup_store`]: snapshots' values.
//! - [`policy`]: the operator's policy file; [`options`]: the server's other options.

mod backup_store;
mod handshake;
mod incoming;
mod journal;
mod options;
mod outgoing;
mod peers;
mod policy;
mod rate_limit;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gt_dispatcher::log::Log;
use gt_dispatcher::pipeline::Pipeline;
use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_ir::message::{Acknowledge, Goodbye};
use gt_net::codec::{self};
use gt_net::keyring::KeyFile;
use gt_net::keys::Key;
use gt_net::server::{ServerEvent, ServerLink};
use gt_net::{NetError, keyring, shm};

use self::backup_store::BackupStore;
use self::journal::{Later, ServerJournal};
use self::peers::PeerTable;
use crate::drivers::log::{log_from_environment, log_to_file};
use crate::drivers::sharding::shard_from_environment;
use crate::drivers::system::{memory, uptime};
pub use options::{Ask, ServerOptions, ShutdownReason};

/// A server that is stopped for this long may lose its peers, and finds out within the same time.
const STILL: Duration = Duration::from_secs(3);
const BLAMED: Duration = Duration::from_secs(8);

/// The longest wait between two calls of the caller's `ask`.
const SLICE: Duration = Duration::from_millis(100);
/// The most bytes of large values in flight to a client.
const UNREAD: u64 = 256 << 20;
/// The most live tensors of a session: more than the backward pass of a million operations needs.
/// The server keeps about 200 bytes for each.
const TENSORS: usize = 16 << 20;
/// The most bytes queued for a peer that does not read, before it is disconnected: for a client or
/// watcher, and for a worker.
const BACKLOG: [usize; 2] = [512 << 20, 1 << 30];
/// Messages that are arriving may take a quarter of the machine's memory, or of this many bytes if
/// that is unknown.
const ARRIVING: u64 = 4;
const MEMORY: u64 = 4 << 30;
/// The most messages handled before the dispatcher's tick.
const ROUND: usize = 256;

/// A listening server.
pub struct Server {
    link: ServerLink,
    dispatcher: Dispatcher,
    started: Instant,
    peers: PeerTable,
    /// How long a client may be disconnected, and when this was last checked.
    grace: Duration,
    looked: Instant,
    /// When the last turn ended, and until when a lost link is attributed to the server having been
    /// stopped.
    moved: Duration,
    blamed: Duration,
    /// Whether peers have closed their connections while the server was stopped.
    is_given_up: bool,
    machine: String,
    /// The cluster key; none on a server without keys.
    key: Option<Key>,
    policy: Option<PathBuf>,
    /// The journal from which the server resumes after a restart.
    journal: Option<ServerJournal>,
    /// The values of snapshots that no worker can keep.
    backups: BackupStore,
    /// The key file that this server made, deleted with it.
    _key_file: Option<KeyFile>,
}

/// Returns the paths as clients see them.
fn absolute(roots: &[PathBuf]) -> Vec<String> {
    let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    roots.iter().map(|path| whole(path).display().to_string()).collect()
}

impl Server {
    /// Binds the address.
    ///
    /// # Errors
    /// The address is in use or needs a key; the log cannot be written; the policy file is not
    /// valid.
    pub fn bind(options: &ServerOptions) -> Result<Server, NetError> {
        let address = &options.address;
        let rules = options.policy.as_deref().map(policy::read).transpose();
        let rules = rules.map_err(|reason| NetError::Start { reason })?;
        let given = keyring::given(options.key_file.as_deref())?;
        if given.is_none() && !address.is_local() && !options.insecure {
            return Err(NetError::KeyRequired { address: address.to_string() });
        }
        let state = options.state.as_deref();
        if state.is_some() && options.lineage.is_none() {
            let reason = "a server that keeps no lineage of sessions has no state to keep: use --state with --lineage";
            return Err(NetError::Start { reason: reason.into() });
        }
        let stored = state.map(journal::open).transpose()?;
        let (key, make_file) = match (given, state) {
            _ if options.insecure => (None, false),
            (Some(key), _) => (Some(key), false),
            // Peers that reconnect use the key that they have.
            (None, Some(folder)) => (Some(journal::key(folder)?), true),
            (None, None) => (Some(Key::generate()), true),
        };
        let worker_wait = options.worker_wait;
        let lineage = options.lineage;
        let (unread, tensors) = (UNREAD, TENSORS);
        let limits = Limits { worker_wait, unread, tensors, lineage, ..Limits::default() };
        let machine = shm::machine_token();
        let mut dispatcher = Dispatcher::new(machine.clone(), limits, open_log(options)?);
        shard_from_environment(&mut dispatcher);
        dispatcher.set_data_roots(absolute(&options.data_roots));
        dispatcher.announce(options.workers);
        dispatcher.set_rules(Duration::ZERO, rules.unwrap_or_default());
        let started = Instant::now();
        dispatcher.set_clock(Box::new(move || started.elapsed()));
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        dispatcher.set_start(since_1970.as_secs());
        let mut peers = PeerTable::default();
        let journal = match stored {
            Some((folder, history)) => {
                journal::adopt(&mut dispatcher, &mut peers, history);
                Some(ServerJournal::start(folder, &mut dispatcher)?)
            }
            None => None,
        };
        // A hello is answered at once. The key file is written after binding: a second server must
        // not replace the first one's.
        let mut link = ServerLink::bind(address, key.as_ref())?;
        let memory = memory().unwrap_or(MEMORY) / ARRIVING;
        link.set_budget(usize::try_from(memory).unwrap_or(usize::MAX));
        let key_file = match &key {
            Some(key) if make_file => Some(keyring::keep(address, key)?),
            _ => {
                keyring::forget(address)?;
                None
            }
        };
        Ok(Server {
            link,
            dispatcher,
            started,
            peers,
            grace: options.grace,
            looked: started,
            moved: uptime(),
            blamed: Duration::ZERO,
            is_given_up: false,
            machine,
            key,
            policy: options.policy.clone(),
            journal,
            backups: BackupStore::new(
                options.state.clone().unwrap_or_else(keyring::temporary_folder),
            ),
            _key_file: key_file,
        })
    }

    /// The stream modifiers of all clients' streams.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        self.dispatcher.pipeline()
    }

    /// Serves until `ask`, which is called several times a second, asks it to stop.
    pub fn run(&mut self, ask: &mut dyn FnMut() -> Ask) -> Result<ShutdownReason, NetError> {
        loop {
            match ask() {
                Ask::Nothing => {}
                Ask::Reload => self.reload(),
                Ask::Stop => break,
            }
            if !self.turn()? {
                tracing::warn!(
                    "the server has stood still, and its peers have given it up: it begins again"
                );
                return Ok(ShutdownReason::StoodStill);
            }
        }
        if self.journal.is_some() {
            // Connected peers wait for the restart.
            return Ok(ShutdownReason::Stopped);
        }
        let links = self.peers.links();
        let goodbye = codec::encode(&Goodbye { reason: "the server was stopped".into() });
        for link in links {
            self.link.send(&link, goodbye.clone(), 0)?;
        }
        Ok(ShutdownReason::Stopped)
    }

    /// Reloads the policy file. The policy stays as it is if the file has an error.
    fn reload(&mut self) {
        let Some(path) = &self.policy else {
            return tracing::warn!("there is no policy to read again: start with --policy FILE");
        };
        match policy::read(path) {
            Ok(rules) => {
                let exceeded = self.dispatcher.set_rules(self.started.elapsed(), rules);
                tracing::info!("the policy was read again from {}", path.display());
                exceeded.iter().for_each(|text| tracing::warn!("{text}"));
            }
            Err(error) => tracing::warn!("{error}\n  the policy stays as it was"),
        }
    }

    /// Waits for messages and handles those that have arrived. Returns whether to continue.
    fn turn(&mut self) -> Result<bool, NetError> {
        let due = self.dispatcher.next_deadline();
        let now = self.started.elapsed();
        let limit = due.map_or(SLICE, |due| due.saturating_sub(now).min(SLICE));
        self.link.wait(limit, self.journal.as_ref().map(|journal| journal.wake().fd()))?;
        if let Some(journal) = &self.journal {
            journal.wake().clear();
        }
        self.has_moved();
        for _ in 0..ROUND {
            let Some(event) = self.link.try_receive()? else { break };
            match event {
                ServerEvent::Message { link, proven, frames } => {
                    self.receive(link, proven, frames)?
                }
                ServerEvent::Refused { link, reason } => {
                    self.turn_away(&link, reason, "it sent what cannot be taken")?;
                }
                ServerEvent::Disconnected(_) if self.has_stood_still() => {
                    self.is_given_up = true;
                }
                ServerEvent::Disconnected(link) => {
                    self.journal.iter_mut().for_each(|journal| journal.forget(&link));
                    let id = self.peers.id(&link);
                    match self.peers.disconnect(&link) {
                        Some(peer) => self.forget(peer, "its connection was lost"),
                        None => {
                            let now = self.started.elapsed();
                            id.into_iter().for_each(|id| self.dispatcher.set_away(now, id, true));
                        }
                    }
                }
            }
            if self.is_given_up {
                return Ok(false);
            }
            // Answers are sent at once, as peers may be waiting for them.
            self.send_all()?;
        }
        if self.is_given_up {
            return Ok(false);
        }
        if self.looked.elapsed() >= SLICE {
            self.looked = Instant::now();
            self.link.refusals().into_iter().for_each(|text| tracing::warn!("{text}"));
            for (peer, reason) in self.peers.gone(&self.machine, self.grace) {
                self.forget(peer, reason);
            }
        }
        self.has_moved();
        self.dispatcher.tick(self.started.elapsed());
        self.keep()?;
        self.send_all()?;
        Ok(!self.is_given_up)
    }

    /// Records that the server runs. After a long stop (of the process, or the machine), links will
    /// be lost for that reason.
    fn has_moved(&mut self) {
        let now = uptime();
        if now.saturating_sub(self.moved) > STILL {
            self.blamed = now + BLAMED;
        }
        self.moved = now;
    }

    /// Returns whether a link that is lost now was lost because the server was stopped, and the
    /// server can restart from its journal.
    fn has_stood_still(&mut self) -> bool {
        self.has_moved();
        let is_written = |journal: &ServerJournal| journal.warning().is_none();
        self.moved < self.blamed && self.journal.as_ref().is_some_and(is_written)
    }

    /// Writes the journal, and runs the actions that waited for it.
    fn keep(&mut self) -> Result<(), NetError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let ready = journal.keep(self.started.elapsed(), &mut self.dispatcher);
        ready.into_iter().try_for_each(|later| self.act(later))
    }

    /// Runs an action once all received messages are durable.
    fn once_durable(&mut self, later: Later) -> Result<(), NetError> {
        let now = match &mut self.journal {
            Some(journal) => journal.defer(later),
            None => Some(later),
        };
        now.map_or(Ok(()), |later| self.act(later))
    }

    fn act(&mut self, later: Later) -> Result<(), NetError> {
        match later {
            Later::Receipt(id, received) => {
                if let Some(link) = self.peers.get(id).and_then(|peer| peer.link.as_ref()) {
                    let frames = codec::encode(&Acknowledge { received });
                    self.link.send(link, frames, BACKLOG[0])?;
                }
                Ok(())
            }
            Later::Send(id, message) => self.transmit(id, *message),
            Later::Welcome(id) => self.welcome(id),
            Later::Resume(link, greeting) => self.resume(link, &greeting.0, &greeting.1),
        }
    }

    fn forget(&mut self, peer: PeerId, reason: &str) {
        if self.peers.remove(peer).is_some() {
            self.dispatcher.disconnect(self.started.elapsed(), peer, reason);
        }
    }
}

fn open_log(options: &ServerOptions) -> Result<Option<Log>, NetError> {
    let Some(path) = &options.log_file else { return Ok(log_from_environment()) };
    log_to_file(path).map_err(|error| NetError::File {
        action: "writing the log",
        path: path.display().to_string(),
        error,
    })
}
