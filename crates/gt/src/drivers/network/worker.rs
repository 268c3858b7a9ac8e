//! A worker process.

use std::path::PathBuf;
use std::time::Duration;

use gt_engine_native::NativeEngine;
use gt_ir::message::{Message, Role};
use gt_ir::{Command, RequestId};
use gt_net::address::Address;
use gt_net::dealer::DealerLink;
use gt_net::{NetError, codec};
use gt_worker::{Out, Work, Worker};
use rustc_hash::FxHashSet;

use super::blocks::{self, Blocks};

/// How a worker is to run.
pub struct WorkerOptions {
    pub address: Address,
    pub name: String,
    pub key_file: Option<PathBuf>,
    pub insecure: bool,
    /// Threads for one large operation.
    pub threads: usize,
}

/// The longest wait, after which the caller is asked whether to go on.
const SLICE: Duration = Duration::from_millis(100);

/// A worker that serves a dispatcher.
pub struct WorkerProcess {
    link: DealerLink,
    core: Box<dyn Work>,
    blocks: Blocks,
    /// Fetches whose askers can map this process's memory.
    sharing: FxHashSet<RequestId>,
}

impl WorkerProcess {
    /// Joins a server.
    pub fn join(options: &WorkerOptions) -> Result<WorkerProcess, NetError> {
        let (link, _) = super::join(
            &options.address,
            Role::Worker,
            &options.name,
            options.key_file.as_deref(),
            options.insecure,
        )?;
        let engine = NativeEngine::new(options.threads);
        let core = Box::new(Worker::new(options.name.clone(), engine));
        Ok(WorkerProcess { link, core, blocks: Blocks::default(), sharing: FxHashSet::default() })
    }

    /// Serves until `stop` says so; it is asked several times a second.
    ///
    /// # Errors
    /// The server is gone, or sent the worker away.
    pub fn run(&mut self, stop: &mut dyn FnMut() -> bool) -> Result<(), NetError> {
        while !stop() {
            if let Some(frames) = self.link.receive(SLICE, None)? {
                self.handle(codec::decode(&frames)?)?;
            }
        }
        self.send(&Message::Goodbye { reason: "the worker was stopped".into() })
    }

    fn handle(&mut self, message: Message) -> Result<(), NetError> {
        match message {
            Message::Stream(mut commands) => {
                self.prepare(&mut commands)?;
                let mut out = Vec::new();
                self.core.handle(&mut commands, &mut out);
                self.send_out(out)
            }
            Message::Release { token } => {
                self.blocks.release(token);
                Ok(())
            }
            Message::Goodbye { reason } => {
                let address = self.link.address().to_string();
                Err(NetError::Lost { address, reason })
            }
            _ => Ok(()),
        }
    }

    fn send_out(&mut self, out: Vec<Out>) -> Result<(), NetError> {
        out.into_iter().try_for_each(|out| match out {
            Out::Dispatcher(message) => self.answer(message),
            Out::Worker(..) => Ok(()),
        })
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
