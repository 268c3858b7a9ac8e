//! The server: a dispatcher that listens on an address.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_dispatcher::log::Log;
use gt_dispatcher::pipeline::Pipeline;
use gt_dispatcher::{Dispatcher, History, Limits, LineageLimits, PeerId, REJOIN_WITHIN};
use gt_ir::message::{Hello, Message, Resume, Role, Welcome};
use gt_ir::snapshot::{Backup, Owner};
use gt_ir::{Content, WorkerCommand};
use gt_net::address::Address;
use gt_net::keyring::KeyFile;
use gt_net::keys::Key;
use gt_net::server::{Event, LinkId, ServerLink};
use gt_net::{NetError, codec, keyring, shm};

use super::journal::{Done, ServerJournal};
use super::peers::Peers;
use super::shelf::Shelf;
use super::{blocks, journal, policy};
use crate::drivers::log::{log_from_environment, log_to_file};
use crate::drivers::sharding::shard_from_environment;

/// A server's options.
pub struct ServerOptions {
    pub address: Address,
    pub key_file: Option<PathBuf>,
    /// Accepts any peer, unencrypted.
    pub insecure: bool,
    pub log_file: Option<PathBuf>,
    /// How long a client waits for a worker.
    pub worker_wait: Duration,
    /// The folders in which workers may read and write files.
    pub data_roots: Vec<PathBuf>,
    /// The file with the policy, if there is one.
    pub policy: Option<PathBuf>,
    /// How long a session waits for its client when their connection is lost.
    pub grace: Duration,
    /// What is kept of each session to make its tensors again when a worker is lost.
    /// Nothing without.
    pub lineage: Option<LineageLimits>,
    /// The folder of the journal from which the server goes on when it is started again.
    pub state: Option<PathBuf>,
}

/// What a server is asked to do while it serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Nothing: it goes on.
    Nothing,
    /// Read the policy file again.
    Reload,
    Stop,
}

/// The longest wait, after which it is asked what to do.
const SLICE: Duration = Duration::from_millis(100);
/// The bytes of large values that a client may have asked for and not received.
const UNREAD: u64 = 256 << 20;
/// The most bytes queued for a peer that does not read, before it is given up: of a client or watcher,
/// and of a worker.
const BACKLOG: [usize; 2] = [512 << 20, 1 << 30];
/// The most messages handled before the dispatcher's tick.
const ROUND: usize = 256;

/// A listening server.
pub struct Server {
    link: ServerLink,
    dispatcher: Dispatcher,
    started: Instant,
    peers: Peers,
    /// How long a client may be away, and when it was looked for those that were so for longer.
    grace: Duration,
    looked: Instant,
    machine: String,
    /// The cluster key; none on a server without keys.
    key: Option<Key>,
    policy: Option<PathBuf>,
    /// What it goes on from when it is started again.
    journal: Option<ServerJournal>,
    /// What it keeps of snapshots.
    shelf: Shelf,
    /// The key file that this server made, deleted with it.
    _key_file: Option<KeyFile>,
}

/// Paths as they are told to clients.
fn absolute(roots: &[PathBuf]) -> Vec<String> {
    let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    roots.iter().map(|path| whole(path).display().to_string()).collect()
}

impl Server {
    /// Binds the address.
    ///
    /// # Errors
    /// The address is in use or needs a key; the log cannot be written; the policy is none.
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
            // Those that come back use the one that they had.
            (None, Some(folder)) => (Some(journal::key(folder)?), true),
            (None, None) => (Some(Key::generate()), true),
        };
        let worker_wait = options.worker_wait;
        let lineage = options.lineage;
        let limits = Limits { worker_wait, unread: UNREAD, lineage, ..Limits::default() };
        let machine = shm::machine_token();
        let mut dispatcher = Dispatcher::new(machine.clone(), limits, open_log(options)?);
        shard_from_environment(&mut dispatcher);
        dispatcher.set_data_roots(absolute(&options.data_roots));
        dispatcher.set_rules(Duration::ZERO, rules.unwrap_or_default());
        let started = Instant::now();
        dispatcher.set_clock(Box::new(move || started.elapsed()));
        let mut peers = Peers::default();
        let journal = match stored {
            Some((folder, history)) => {
                take_up(&mut dispatcher, &mut peers, history);
                Some(ServerJournal::start(folder, &mut dispatcher)?)
            }
            None => None,
        };
        // Whoever says hello is answered at once. The key file is written after binding: a second
        // server must not replace the first one's.
        let link = ServerLink::bind(address, key.as_ref())?;
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
            machine,
            key,
            policy: options.policy.clone(),
            journal,
            shelf: Shelf::new(options.state.clone().unwrap_or_else(std::env::temp_dir)),
            _key_file: key_file,
        })
    }

    /// The stream modifiers of all clients' streams.
    pub fn pipeline(&mut self) -> &mut Pipeline {
        self.dispatcher.pipeline()
    }

    /// Serves until `ask` tells it to stop; it is called several times a second.
    pub fn run(&mut self, ask: &mut dyn FnMut() -> Ask) -> Result<(), NetError> {
        loop {
            match ask() {
                Ask::Nothing => {}
                Ask::Reload => self.reload(),
                Ask::Stop => break,
            }
            self.turn()?;
        }
        if self.journal.is_some() {
            // Whoever is connected waits for it to be started again.
            return Ok(());
        }
        let links = self.peers.links();
        let goodbye = codec::encode(&Message::Goodbye { reason: "the server was stopped".into() });
        for link in links {
            self.link.send(&link, goodbye.clone(), 0)?;
        }
        Ok(())
    }

    /// Reads the policy file again. The policy stays as it is if the file has a mistake.
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

    /// Waits for messages and handles those that have arrived.
    fn turn(&mut self) -> Result<(), NetError> {
        let due = self.dispatcher.next_deadline();
        let now = self.started.elapsed();
        let limit = due.map_or(SLICE, |due| due.saturating_sub(now).min(SLICE));
        self.link.wait(limit, self.journal.as_ref().map(|journal| journal.wake().fd()))?;
        if let Some(journal) = &self.journal {
            journal.wake().clear();
        }
        for _ in 0..ROUND {
            let Some(event) = self.link.try_receive()? else { break };
            match event {
                Event::Message { link, role, frames } => self.receive(link, role, frames)?,
                Event::Disconnected(link) => {
                    if let Some(peer) = self.peers.disconnect(&link) {
                        self.forget(peer, "its connection was lost");
                    }
                }
            }
            // Answers are sent at once, as peers may be waiting for them.
            self.send_all()?;
        }
        if self.looked.elapsed() >= SLICE {
            self.looked = Instant::now();
            for (peer, reason) in self.peers.gone(&self.machine, self.grace) {
                self.forget(peer, reason);
            }
        }
        self.dispatcher.tick(self.started.elapsed());
        self.keep()?;
        self.send_all()
    }

    /// Writes what is to be kept, and does what has waited for it.
    fn keep(&mut self) -> Result<(), NetError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let done = journal.keep(self.started.elapsed(), &mut self.dispatcher);
        self.acknowledge(done)
    }

    fn acknowledge(&mut self, done: Done) -> Result<(), NetError> {
        for (peer, received) in done.receipts {
            if let Some(link) = self.peers.get(peer).and_then(|peer| peer.link.as_ref()) {
                let message = Message::Acknowledge { received };
                self.link.send(link, codec::encode(&message), BACKLOG[0])?;
            }
        }
        Ok(())
    }

    fn receive(
        &mut self,
        link: LinkId,
        role: Option<Role>,
        frames: Vec<Bytes>,
    ) -> Result<(), NetError> {
        let mut message = match codec::decode(&frames) {
            Ok(message) => message,
            Err(error) => {
                let reason = format!(
                    "the server could not read a message: {error}\n  hint: install the same version of gt on both sides"
                );
                return self.turn_away(&link, reason, "it sent a damaged message");
            }
        };
        if let Message::Hello(hello) = &mut message {
            if let Some(badge) = &hello.badge
                && !self.key.as_ref().is_some_and(|key| key.proves(badge))
            {
                let reason = format!(
                    "the key does not prove that its user is '{}'\n  hint: ask for another one, by `gt key --user` of this server's key",
                    badge.user.escape_debug()
                );
                return self.turn_away(&link, reason, "its key proves nothing");
            }
            if self.peers.id(&link).is_none() {
                match hello.resume.take() {
                    Some(resume) if role.unwrap_or(hello.role) == Role::Client => {
                        return self.resume(link, hello, &resume);
                    }
                    resume => {
                        hello.resume = resume;
                        self.peers.add(link.clone(), role, hello);
                    }
                }
            }
        }
        let Some(id) = self.peers.id(&link) else {
            let reason = "this server does not know the connection: connect again".to_string();
            return self.turn_away(&link, reason, "");
        };
        let Some(peer) = self.peers.get_mut(id) else { return Ok(()) };
        let role = peer.role;
        let (mut receipt, mut received) = (None, 0);
        if let Some(client) = &mut peer.client {
            match &message {
                Message::Acknowledge { received } => {
                    if !client.outgoing.acknowledge(*received) {
                        self.forget(id, "it acknowledged messages that it was not sent");
                    }
                    return Ok(());
                }
                Message::Hello(_) => {}
                _ => {
                    client.has_returned();
                    receipt = client.incoming.take(&frames);
                    received = client.incoming.received();
                }
            }
        }
        let (now, is_end) = (self.started.elapsed(), matches!(message, Message::Goodbye { .. }));
        let is_new = matches!(message, Message::Hello(_)) && role == Role::Client;
        match (role, message) {
            (Role::Client, Message::Stream(batch)) => {
                self.dispatcher.handle_stream(now, id, batch, frames, received);
            }
            (Role::Worker, Message::Backup(backup)) => {
                let message = self.shelve(backup);
                self.dispatcher.handle(now, id, role, message);
            }
            (role, message) => self.dispatcher.handle(now, id, role, message),
        }
        if is_end {
            self.peers.remove(id);
        }
        self.keep()?;
        if let Some(received) = receipt {
            let is_durable =
                self.journal.as_mut().is_none_or(|journal| journal.acknowledge(id, received));
            if is_durable {
                self.acknowledge(Done::receipt(id, received))?;
            }
        }
        if is_new {
            // A session that its client knows of is one that can go on.
            self.wait_for_disk()?;
        }
        Ok(())
    }

    /// Values that a worker gives the server to keep, on disk; or that this cannot be.
    fn shelve(&self, mut backup: Box<Backup>) -> Message {
        match self.shelf.keep(&mut backup) {
            Ok(()) => Message::Backup(backup),
            Err(reason) => {
                let (Owner { session, slot }, snapshot) = (backup.owner, backup.snapshot);
                Message::Backed { session, slot, snapshot, result: Err(reason) }
            }
        }
    }

    /// Waits until all that was received is durable.
    fn wait_for_disk(&mut self) -> Result<(), NetError> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let done = journal.wait(self.started.elapsed(), &mut self.dispatcher);
        self.acknowledge(done)
    }

    /// Refuses a link, and forgets its peer if it is one.
    fn turn_away(&mut self, link: &LinkId, reason: String, why: &str) -> Result<(), NetError> {
        self.link.send(link, codec::encode(&Message::Goodbye { reason }), 0)?;
        if let Some(peer) = self.peers.id(link) {
            self.forget(peer, why);
        }
        Ok(())
    }

    /// A client goes on with its session on another link.
    fn resume(&mut self, link: LinkId, hello: &Hello, given: &Resume) -> Result<(), NetError> {
        // It is told how much was received, and forgets that.
        self.wait_for_disk()?;
        let (id, missed, is_renewed) = match self.peers.resume(link.clone(), hello, given) {
            Ok(resumed) => resumed,
            Err(reason) => return self.turn_away(&link, reason, ""),
        };
        let resume =
            self.peers.get_mut(id).and_then(|peer| Some(Box::new(peer.client.as_mut()?.resume())));
        let (grace, is_kept) = (self.grace, self.journal.is_some());
        let welcome = Welcome { resume, grace, is_kept, is_renewed, ..Welcome::default() };
        let first = codec::encode(&Message::Welcome(welcome));
        for frames in std::iter::once(first).chain(missed) {
            if !self.link.send(&link, frames, usize::MAX)? {
                break;
            }
        }
        if is_renewed {
            self.dispatcher.returned(self.started.elapsed(), id, &given.waits);
        }
        Ok(())
    }

    fn forget(&mut self, peer: PeerId, reason: &str) {
        if self.peers.remove(peer).is_some() {
            self.dispatcher.disconnect(self.started.elapsed(), peer, reason);
        }
    }

    fn send_all(&mut self) -> Result<(), NetError> {
        loop {
            let mut out = Vec::new();
            self.dispatcher.take_outbox(&mut out);
            if out.is_empty() {
                return Ok(());
            }
            for (peer, message) in out {
                self.send(peer, message)?;
            }
        }
    }

    /// Sends a message to a peer, or keeps it for one that may come back.
    fn send(&mut self, id: PeerId, message: Message) -> Result<(), NetError> {
        let Some(peer) = self.peers.get(id) else { return Ok(()) };
        let is_local = peer.machine == self.machine;
        let mut message = if is_local { message } else { self.localize(message) };
        let grace = self.grace;
        let Some(peer) = self.peers.get_mut(id) else { return Ok(()) };
        let most = BACKLOG[usize::from(peer.role == Role::Worker)];
        let goodbye = matches!(message, Message::Goodbye { .. });
        let mut is_counted = !goodbye;
        if let Message::Welcome(welcome) = &mut message {
            welcome.is_kept = self.journal.is_some();
            if let Some(client) = &mut peer.client {
                let resume = Some(Box::new(client.resume()));
                (welcome.resume, welcome.grace, is_counted) = (resume, grace, false);
            } else if welcome.is_kept {
                welcome.grace = REJOIN_WITHIN;
            }
        }
        let frames = codec::encode(&message);
        let mut is_behind = false;
        if let Some(client) = peer.client.as_mut().filter(|_| is_counted) {
            // Without the message itself, which may be large.
            is_behind = client.outgoing.bytes() > most;
            client.outgoing.push(frames.clone());
        }
        let taken = match &peer.link {
            Some(link) => self.link.send(link, frames, most)?,
            None => true,
        };
        // A client whose connection is lost is told once it is back.
        let may_return = peer.client.is_some() && !is_behind;
        if goodbye || is_behind || !taken && !may_return {
            self.forget(id, "it does not take its messages");
        }
        Ok(())
    }

    /// Replaces shared memory by inline data in messages to other machines.
    fn localize(&mut self, mut message: Message) -> Message {
        let mut carry = |content: &mut Content| {
            let placeholder = Content::Data(gt_ir::TensorData {
                dtype: gt_ir::DType::U8,
                shape: gt_ir::Shape::SCALAR,
                bytes: bytes::Bytes::from_static(&[0]),
            });
            let original = content.clone();
            match blocks::receive(std::mem::replace(content, placeholder)) {
                Ok((carried, token)) => {
                    *content = carried;
                    if let Some(token) = token {
                        let release = Message::Release { token };
                        self.dispatcher.handle(
                            self.started.elapsed(),
                            PeerId::NOBODY,
                            Role::Watcher,
                            release,
                        );
                    }
                }
                // The receiver will report that it cannot map it.
                Err(_) => *content = original,
            }
        };
        match &mut message {
            Message::Work { commands, .. } => commands.iter_mut().for_each(|command| {
                if let WorkerCommand::Create(create) = command {
                    carry(&mut create.content);
                }
            }),
            Message::Value { result: Ok(content), .. } => carry(content),
            _ => {}
        }
        message
    }
}

/// Takes up the sessions of a journal. Those that cannot go on are told of.
fn take_up(dispatcher: &mut Dispatcher, peers: &mut Peers, mut history: History) {
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

fn open_log(options: &ServerOptions) -> Result<Option<Log>, NetError> {
    let Some(path) = &options.log_file else { return Ok(log_from_environment()) };
    log_to_file(path).map_err(|error| NetError::File {
        action: "writing the log",
        path: path.display().to_string(),
        error,
    })
}
