//! A worker process.
//!
//! - [`incoming`]: handling messages. [`leave`]: handing over what the worker has before it is stopped. [`rejoin`]: waiting for a lost server, and reconnecting. [`state`]: the folder from which a
//!   restarted worker resumes.

mod incoming;
mod leave;
mod rejoin;
mod state;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gt_ir::message::{Goodbye, Message, WorkerHello, WorkerToServer, WorkerToWorker};
use gt_ir::snapshot::Backup;
use gt_ir::{Fabric, Piece, RequestId, WorkerId};
use gt_net::dealer::DealerLink;
use gt_net::peers::PeerLinks;
use gt_net::published::ServerAddress;
use gt_net::wake::Wake;
use gt_net::{NetError, codec, descriptors, shm};
use gt_worker::{Out, Work};
use rustc_hash::FxHashSet;

use self::leave::Leave;
pub use self::leave::{WorkerAsk, WorkerOutcome};
use self::state::StateFolder;
use super::blocks::SharedBlocks;
use super::neighbours::Neighbours;
use crate::drivers::MakeWorker;
use crate::drivers::files::{self, FileDone, FileThread, Folders};
use crate::drivers::memory;
use crate::drivers::system;

/// A worker's options.
pub struct WorkerOptions {
    pub address: ServerAddress,
    pub name: String,
    pub key_file: Option<PathBuf>,
    pub insecure: bool,
    /// Threads for one large operation.
    pub threads: usize,
    /// The host at which other workers reach this one; by default its address towards the server.
    pub peer_host: Option<String>,
    /// The rack of its machine, or whatever else is near; empty if unknown.
    pub rack: String,
    /// How its engine reaches other engines, if it can.
    pub fabric: Option<Fabric>,
    /// The estimated work per second: see [`gt_worker::Engine::rate`].
    pub rate: u64,
    /// Whether its engine computes the same bits each time.
    pub is_exact: bool,
    /// What its results depend on: see [`Hello::arithmetic`].
    pub arithmetic: String,
    /// The folders in which it may read and write files.
    pub data_roots: Vec<PathBuf>,
    /// The folder in which it creates a folder for spilled tensors.
    pub spill_dir: Option<PathBuf>,
    /// The folder of its state, from which it resumes after a restart.
    pub state: Option<PathBuf>,
    /// How long it may take to hand over what it has when it is asked to leave.
    pub drain_within: Duration,
}

/// The number of file descriptors that a worker needs, for links to the server and from workers,
/// and for files.
const DESCRIPTORS: usize = 30;

/// The longest time between two calls of `ask` while the worker computes.
const SLICE: Duration = Duration::from_millis(100);

/// The longest wait of an idle worker. Messages end it, and signals do.
const IDLE_SLICE: Duration = Duration::from_secs(1);

/// The longest wait while files are read or written.
const FILE_SLICE: Duration = Duration::from_millis(1);

/// A worker process, connected to a server.
pub struct WorkerProcess {
    link: DealerLink,
    neighbours: Neighbours,
    core: Box<dyn Work>,
    files: FileThread,
    /// Rung when a call is complete that computed between two turns, and when there is something to
    /// report.
    wake: Arc<Wake>,
    blocks: SharedBlocks,
    /// Fetches whose clients can map this process's memory.
    sharing: FxHashSet<RequestId>,
    started: Instant,
    way: WorkerRoute,
    /// The token by which the server knows the worker, and how long it waits for a lost server.
    token: u128,
    grace: Duration,
    state: Option<StateFolder>,
    leave: Leave,
}

/// How a worker reaches its server and identifies itself.
struct WorkerRoute {
    address: ServerAddress,
    key_file: Option<PathBuf>,
    insecure: bool,
    hello: WorkerHello,
}

/// The first, and the longest, pause between attempts to reconnect.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
/// The time limit of an attempt.
const ATTEMPT: Duration = Duration::from_secs(1);
/// The time limit for file operations that a lost server has requested.
const FILES_WITHIN: Duration = Duration::from_secs(60);

impl WorkerProcess {
    /// Connects to a server, with the worker made by `make`.
    pub fn join(options: &WorkerOptions, make: MakeWorker) -> Result<WorkerProcess, NetError> {
        descriptors::raise_limit();
        descriptors::reserve("a worker", DESCRIPTORS)?;
        let address = &options.address;
        let key = super::find_key(address, options.key_file.as_deref(), options.insecure)?;
        let peers =
            PeerLinks::bind(&address.resolve()?, options.peer_host.as_deref(), key.as_ref())?;
        let hello = WorkerHello {
            machine: shm::machine_token(),
            host: system::host(),
            rack: options.rack.clone(),
            endpoint: peers.endpoint().to_string(),
            fabric: options.fabric.clone().map(Box::new),
            rate: options.rate,
            is_exact: options.is_exact,
            arithmetic: options.arithmetic.clone(),
            is_durable: options.state.is_some(),
            ..WorkerHello::new(&options.name)
        };
        let places = files::below(&options.data_roots)
            .map_err(|error| NetError::Start { reason: error.to_string() })?;
        let stored = options.state.as_deref().map(state::open).transpose()?;
        let token = stored.as_ref().and_then(|stored| stored.token);
        let greeting = WorkerHello { token, ..hello.clone() };
        let (link, welcome) = super::handshake(address, key.as_ref(), options.insecure, greeting)?;
        let folders = Folders { places, spill: memory::spill_folder(options.spill_dir.as_deref()) };
        let files = FileThread::start(folders, welcome.name.clone())
            .map_err(|error| NetError::Start { reason: error.to_string() })?;
        let token = welcome.token.unwrap_or(0);
        let mut core = make(welcome.name, options.threads);
        let wake =
            Arc::new(Wake::new().map_err(|error| NetError::Start { reason: error.to_string() })?);
        let of_core = Arc::clone(&wake);
        core.allow_pauses(Arc::new(move || of_core.ring()));
        if stored.is_some() && welcome.grace.is_zero() {
            tracing::warn!(
                "the server was started without --state: the worker's is of use for as long as that server lives"
            );
        }
        let state = match stored {
            Some(stored) => {
                Some(StateFolder::start(stored, token, welcome.is_renewed, &mut *core)?)
            }
            None => None,
        };
        Ok(WorkerProcess {
            link,
            files,
            neighbours: Neighbours::new(welcome.worker, peers),
            core,
            wake,
            blocks: SharedBlocks::default(),
            sharing: FxHashSet::default(),
            started: Instant::now(),
            way: WorkerRoute {
                address: address.clone(),
                key_file: options.key_file.clone(),
                insecure: options.insecure,
                hello,
            },
            token,
            grace: welcome.grace,
            state,
            leave: Leave::new(options.drain_within),
        })
    }

    /// Serves until `ask`, which is called at least once a second, and after each signal, asks it to stop, or it has left.
    /// Waits for a lost server that keeps its state.
    ///
    /// # Errors
    /// The server is gone, or has disconnected the worker.
    pub fn run(&mut self, ask: &mut dyn FnMut() -> WorkerAsk) -> Result<WorkerOutcome, NetError> {
        loop {
            match self.serve(ask) {
                Err(_) if self.leave.is_drained() => return Ok(WorkerOutcome::Drained),
                // A server that says goodbye has a reason: do not reconnect.
                Err(error) if self.grace.is_zero() || !self.link.is_lost() => return Err(error),
                Err(error) => {
                    if !self.rejoin(error, ask)? {
                        return Ok(WorkerOutcome::Stopped);
                    }
                }
                Ok(()) => return Ok(WorkerOutcome::Stopped),
            }
        }
    }

    fn serve(&mut self, ask: &mut dyn FnMut() -> WorkerAsk) -> Result<(), NetError> {
        let mut asked = Instant::now();
        let mut is_busy = false;
        // How long an idle worker waits until a report is due.
        let mut waits = None;
        loop {
            if asked.elapsed() >= SLICE || !is_busy {
                if !self.may_serve(ask())? {
                    break;
                }
                asked = Instant::now();
            }
            // Messages are handled between any two turns: pieces may end a lane's wait.
            let is_awaited = self.state.as_ref().is_some_and(StateFolder::is_awaited);
            let is_short = self.files.is_busy() || is_awaited || self.neighbours.has_failed();
            let idle = waits.unwrap_or(IDLE_SLICE).min(IDLE_SLICE);
            let wait = if is_short { FILE_SLICE } else { idle };
            match self.core.held_for() {
                None if is_busy => self.receive_all(Duration::ZERO, None)?,
                held => {
                    let held = held.filter(|_| is_busy).unwrap_or(wait);
                    self.receive_all(held.min(wait), Some(self.wake.fd()))?;
                    self.wake.clear();
                }
            }
            self.end_jobs()?;
            self.keep_state()?;
            is_busy = self.work()?;
            waits = if is_busy { None } else { self.report()? };
            self.blocks.tidy();
            for undelivered in self.neighbours.undelivered() {
                self.send(&undelivered)?;
            }
            if let Some(links) = self.neighbours.measured() {
                self.send(&links)?;
            }
        }
        // A lost server needs no goodbye.
        let _ = self.send(&Goodbye { reason: "the worker was stopped".into() });
        Ok(())
    }

    /// Writes the worker's state, and sends the messages that waited for it.
    fn keep_state(&mut self) -> Result<(), NetError> {
        let Some(state) = &mut self.state else { return Ok(()) };
        state.write(self.token, &mut *self.core);
        let ready = state.keep(&mut *self.core);
        ready.into_iter().try_for_each(|out| self.send_out(out))
    }

    /// Passes the results of file operations to the core.
    fn end_jobs(&mut self) -> Result<(), NetError> {
        for done in self.files.take_done() {
            match done {
                FileDone::Worker(result) => self.pass(result)?,
                FileDone::Server(message) => self.send(&message)?,
            }
        }
        Ok(())
    }

    /// Runs a turn, and the collectives that are due. Returns whether there was work.
    fn work(&mut self) -> Result<bool, NetError> {
        let mut out = Vec::new();
        let mut worked = self.core.step(&mut out);
        self.send_all(&mut out)?;
        while self.core.due().is_some() {
            self.core.join(&mut out);
            self.send_all(&mut out)?;
            worked = true;
        }
        Ok(worked)
    }

    /// Flushes the worker's events, as it is idle. Returns how long to wait until a report is due, in
    /// whole milliseconds, as sockets wait.
    fn report(&mut self) -> Result<Option<Duration>, NetError> {
        let mut out = Vec::new();
        let due_in = self.core.report(false, &mut out);
        self.send_all(&mut out)?;
        Ok(due_in.map(|due_in| Duration::from_millis(due_in.as_millis() as u64 + 1)))
    }

    /// Sends the core's messages. Pieces between its own slots stay local.
    fn send_all(&mut self, out: &mut Vec<Out>) -> Result<(), NetError> {
        let own = self.neighbours.own();
        while !out.is_empty() {
            let mut local = Vec::new();
            if let Some(state) = &mut self.state {
                state.write(self.token, &mut *self.core);
            }
            for out in std::mem::take(out) {
                match (out, &mut self.state) {
                    (Out::Worker(to, piece), _) if to == own => local.push(piece),
                    (out, Some(state)) => {
                        if let Some(out) = state.defer(out) {
                            self.send_out(out)?;
                        }
                    }
                    (out, None) => self.send_out(out)?,
                }
            }
            for piece in local {
                let piece = WorkerToWorker::Piece { sender: own, piece };
                self.core.handle(piece.into(), out);
            }
        }
        Ok(())
    }

    fn send_out(&mut self, out: Out) -> Result<(), NetError> {
        match out {
            Out::Server(message) => self.answer(message),
            Out::Worker(to, piece) => self.send_piece(to, piece),
            Out::Backup(to, backup) => self.send_backup(to, backup),
            Out::Files(job) => {
                self.files.begin(job);
                Ok(())
            }
        }
    }

    /// Sends a piece to another worker, inline or as a block to map.
    fn send_piece(&mut self, to: WorkerId, piece: Piece) -> Result<(), NetError> {
        let shares = self.neighbours.shares_memory(to);
        let share = |content| if shares { self.blocks.share(content) } else { content };
        let result = piece.result.map(share);
        match self.neighbours.send(to, Piece { result, ..piece }) {
            Some(undelivered) => self.send(&undelivered),
            None => Ok(()),
        }
    }

    /// Sends values of a snapshot to another worker, inline or as blocks to map.
    fn send_backup(&mut self, to: WorkerId, mut backup: Box<Backup>) -> Result<(), NetError> {
        if self.neighbours.shares_memory(to) {
            for value in &mut backup.values {
                if let Ok(content) = &mut value.result {
                    *content = self.blocks.share(content.clone());
                }
            }
        }
        match self.neighbours.send_backup(to, backup) {
            Some(undelivered) => self.send(&undelivered),
            None => Ok(()),
        }
    }

    fn answer(&mut self, message: WorkerToServer) -> Result<(), NetError> {
        let message = match message {
            WorkerToServer::Value { request, result } => {
                let shared = self.sharing.remove(&request);
                let result =
                    result.map(|content| if shared { self.blocks.share(content) } else { content });
                WorkerToServer::Value { request, result }
            }
            other => other,
        };
        self.send(&message)
    }

    fn send<M: Message>(&mut self, message: &M) -> Result<(), NetError> {
        self.link.send(&codec::encode(message))
    }
}
