//! A worker process.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gt_ir::message::{Hello, Message, Role};
use gt_ir::{Command, Fabric, Piece, RequestId, WorkerId};
use gt_net::address::Address;
use gt_net::dealer::DealerLink;
use gt_net::peers::PeerLinks;
use gt_net::{NetError, codec};
use gt_worker::{Out, Work};
use rustc_hash::FxHashSet;

use super::blocks::{self, Blocks};
use super::neighbours::Neighbours;
use crate::drivers::MakeWorker;

/// How a worker is to run.
pub struct WorkerOptions {
    pub address: Address,
    pub name: String,
    pub key_file: Option<PathBuf>,
    pub insecure: bool,
    /// Threads for one large operation.
    pub threads: usize,
    /// Where other workers reach this one; by default its address on the way to the server.
    pub peer_host: Option<String>,
    /// Where its engine joins those of others, if it does.
    pub fabric: Option<Fabric>,
}

/// The longest wait, after which the caller is asked whether to go on.
const SLICE: Duration = Duration::from_millis(100);

/// A worker that serves a dispatcher.
pub struct WorkerProcess {
    link: DealerLink,
    neighbours: Neighbours,
    core: Box<dyn Work>,
    blocks: Blocks,
    /// Fetches whose askers can map this process's memory.
    sharing: FxHashSet<RequestId>,
    /// What has come and is not handled yet; the dispatcher's window bounds it.
    inbox: VecDeque<Message>,
    started: Instant,
}

impl WorkerProcess {
    /// Joins a server, with the worker that `make` makes.
    pub fn join(options: &WorkerOptions, make: MakeWorker) -> Result<WorkerProcess, NetError> {
        let address = &options.address;
        let key = super::find_key(address, options.key_file.as_deref(), options.insecure)?;
        let peers = PeerLinks::bind(address, options.peer_host.as_deref(), key.as_ref())?;
        let hello = Hello {
            endpoint: peers.endpoint().to_string(),
            fabric: options.fabric.clone(),
            ..super::introduction(Role::Worker, &options.name)
        };
        let (link, welcome) = super::greet(address, key.as_ref(), options.insecure, hello)?;
        Ok(WorkerProcess {
            link,
            neighbours: Neighbours::new(WorkerId(welcome.session), peers),
            core: make(welcome.name, options.threads),
            blocks: Blocks::default(),
            sharing: FxHashSet::default(),
            inbox: VecDeque::new(),
            started: Instant::now(),
        })
    }

    /// Serves until `stop` says so; it is asked several times a second.
    ///
    /// # Errors
    /// The server is gone, or sent the worker away.
    pub fn run(&mut self, stop: &mut dyn FnMut() -> bool) -> Result<(), NetError> {
        while !stop() {
            let mut limit = SLICE;
            while let Some(message) = self.neighbours.try_receive()? {
                self.handle(message)?;
                limit = Duration::ZERO;
            }
            self.take_in(limit)?;
            match self.inbox.pop_front() {
                Some(message) => self.handle(message)?,
                None => self.report()?,
            }
            self.blocks.tidy();
            for undelivered in self.neighbours.undelivered() {
                self.send(&undelivered)?;
            }
        }
        self.send(&Message::Goodbye { reason: "the worker was stopped".into() })
    }

    /// Takes what the server has sent, after waiting for at most `limit`. Whether to note events
    /// is heeded at once: it must not wait behind the very work that is to be watched.
    fn take_in(&mut self, limit: Duration) -> Result<(), NetError> {
        let mut limit = if self.inbox.is_empty() { limit } else { Duration::ZERO };
        while let Some(frames) = self.link.receive(limit, self.neighbours.wakeup())? {
            match codec::decode(&frames)? {
                message @ Message::Observe { .. } => self.handle(message)?,
                message => self.inbox.push_back(message),
            }
            limit = Duration::ZERO;
        }
        Ok(())
    }

    fn handle(&mut self, message: Message) -> Result<(), NetError> {
        let mut out = Vec::new();
        match message {
            Message::Stream(mut commands) => {
                self.prepare(&mut commands)?;
                self.core.handle(&mut commands, &mut out);
            }
            Message::Piece(piece) => self.core.receive(piece, &mut out),
            Message::Neighbour { worker, name, endpoint, machine } => {
                self.neighbours.know(worker, name, endpoint, machine);
            }
            Message::WorkerLost { worker, name } => {
                for token in self.neighbours.forget(worker) {
                    self.blocks.release(token);
                }
                self.core.lose(worker, &name, &mut out);
            }
            Message::Release { token } => self.blocks.release(token),
            Message::Observe { on, sent } => {
                let here = self.started.elapsed();
                self.core.observe(on, here);
                self.send(&Message::Observed { sent, here })?;
            }
            Message::Goodbye { reason } => {
                let address = self.link.address().to_string();
                return Err(NetError::Lost { address, reason });
            }
            _ => {}
        }
        self.send_all(&mut out)?;
        while self.core.due().is_some() {
            self.core.join(&mut out);
            self.send_all(&mut out)?;
        }
        Ok(())
    }

    /// Sends what the worker has noted: there is nothing else to do.
    fn report(&mut self) -> Result<(), NetError> {
        let mut out = Vec::new();
        self.core.report(&mut out);
        self.send_all(&mut out)
    }

    fn send_all(&mut self, out: &mut Vec<Out>) -> Result<(), NetError> {
        out.drain(..).try_for_each(|out| match out {
            Out::Dispatcher(message) => self.answer(message),
            Out::Worker(to, piece) => self.pass(to, piece),
        })
    }

    /// Sends another worker a piece: straight, or as a block that it maps.
    fn pass(&mut self, to: WorkerId, piece: Piece) -> Result<(), NetError> {
        let Piece { transfer, from, result } = piece;
        let shares = self.neighbours.shares_memory(to);
        let result =
            result.map(|content| if shares { self.blocks.share(content) } else { content });
        match self.neighbours.send(to, Piece { transfer, from, result }) {
            Some(undelivered) => self.send(&undelivered),
            None => Ok(()),
        }
    }

    /// Maps what comes by shared memory, and notes what may go by it.
    fn prepare(&mut self, commands: &mut [Command]) -> Result<(), NetError> {
        for command in commands {
            match command {
                Command::Create { content, .. } => {
                    // What cannot be mapped is left as it is, and fails where it is used.
                    if let Ok((mapped, Some(token))) = blocks::receive(content.clone()) {
                        *content = mapped;
                        self.send(&Message::Release { token })?;
                    }
                }
                Command::Fetch { request, shared: true, .. } => {
                    self.sharing.insert(*request);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn answer(&mut self, message: Message) -> Result<(), NetError> {
        let message = match message {
            Message::Value { request, result } => {
                let shared = self.sharing.remove(&request);
                let result =
                    result.map(|content| if shared { self.blocks.share(content) } else { content });
                Message::Value { request, result }
            }
            other => other,
        };
        self.send(&message)
    }

    fn send(&mut self, message: &Message) -> Result<(), NetError> {
        self.link.send(&codec::encode(message))
    }
}
