//! A watcher of a dispatcher in another process: the basis of `gt top` and `gt trace`.

use std::path::Path;
use std::time::{Duration, Instant};

use gt_ir::event::Event;
use gt_ir::message::{
    Frame, Goodbye, Hello, Message, Named, ServerToWatcher, WatcherHello, WatcherToServer, Welcome,
};
use gt_ir::status::Status;
use gt_ir::status::inspection::Inspection;
use gt_ir::{RequestId, SessionId};
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::local::LocalLink;
use gt_net::published::ServerAddress;
use gt_net::registry::Found;
use gt_net::{NetError, codec};
use rustc_hash::FxHashMap;

use super::system;

/// The time limit for a dispatcher's answer.
const LIMIT: Duration = Duration::from_secs(5);

/// A read-only connection to a dispatcher.
pub struct Watcher {
    link: Link,
    title: String,
    /// The user whose key it has; empty for none.
    user: String,
    names: FxHashMap<Named, String>,
    requests: u64,
    /// The number of the newest cluster event that it has received.
    newest: u64,
}

enum Link {
    Server(Box<DealerLink>),
    Program(LocalLink),
}

impl Watcher {
    /// Watches the server at an address.
    ///
    /// # Errors
    /// It is not reachable, wants another key, or is of another version.
    pub fn connect(
        address: &str,
        key_file: Option<&Path>,
        insecure: bool,
    ) -> Result<Watcher, NetError> {
        let address = ServerAddress::parse(address)?;
        let key = super::network::find_key(&address, key_file, insecure)?;
        let badge = key.as_ref().and_then(Key::badge).cloned().map(Box::new);
        let user = badge.as_ref().map(|badge| badge.user.clone()).unwrap_or_default();
        let hello = WatcherHello { badge, ..WatcherHello::new(name()) };
        let (link, _) = super::network::handshake(&address, key.as_ref(), insecure, hello)?;
        let link = Link::Server(Box::new(link));
        Ok(Watcher { user, ..Watcher::new(link, format!("server {address}")) })
    }

    /// Watches a dispatcher that was found on this machine.
    ///
    /// # Errors
    /// As [`Watcher::connect`].
    pub fn attach(
        found: &Found,
        key_file: Option<&Path>,
        insecure: bool,
    ) -> Result<Watcher, NetError> {
        let (process, socket) = match found {
            Found::Server { address, .. } => {
                return Watcher::connect(address, key_file, insecure);
            }
            Found::Embedded { process, socket } => (process, socket),
        };
        let title = format!("process {process} {}", program(*process));
        let link = Link::Program(LocalLink::connect(socket)?);
        let mut watcher = Watcher::new(link, title.trim_end().to_string());
        watcher.send(&Hello::Watcher(WatcherHello::new(name())))?;
        match watcher.receive::<Welcome>(LIMIT)? {
            Some(Frame::Message(_)) => Ok(watcher),
            Some(Frame::Goodbye(Goodbye { reason })) => Err(watcher.lost(reason)),
            None => Err(watcher.lost("it does not answer".into())),
        }
    }

    fn new(link: Link, title: String) -> Watcher {
        let (user, names) = (String::new(), FxHashMap::default());
        Watcher { link, title, user, names, requests: 0, newest: 0 }
    }

    /// What is watched, for display.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The user whose key it has; empty for none.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The name of an entity, if it was received with events.
    pub fn name(&self, named: Named) -> Option<&str> {
        self.names.get(&named).map(String::as_str)
    }

    /// Requests the status, with the cluster events since the one before.
    ///
    /// # Errors
    /// The dispatcher is gone, or does not answer.
    pub fn status(&mut self) -> Result<Status, NetError> {
        let request = RequestId(self.requests);
        self.requests += 1;
        self.send(&WatcherToServer::Status { request, since: self.newest })?;
        let status = self.answer(|message| match message {
            ServerToWatcher::Status { request: of, status } if of == request => Some(*status),
            _ => None,
        })?;
        if let Some(newest) = status.cluster_events.last() {
            self.newest = newest.number;
        }
        Ok(status)
    }

    /// Requests the details of a session, which are collected while requests follow each other. With
    /// `explain`, what is planned next is explained.
    ///
    /// # Errors
    /// The dispatcher is gone, or does not answer. The inner error says why the session is not shown.
    pub fn inspect(
        &mut self,
        session: SessionId,
        explain: bool,
    ) -> Result<Result<Inspection, String>, NetError> {
        let request = RequestId(self.requests);
        self.requests += 1;
        self.send(&WatcherToServer::Inspect { request, session, explain })?;
        self.answer(|message| match message {
            ServerToWatcher::Inspected { request: of, result } if of == request => {
                Some(result.map(|inspection| *inspection))
            }
            _ => None,
        })
    }

    /// Polls for up to `limit` events; also returns how many were dropped.
    ///
    /// # Errors
    /// The dispatcher is gone, or does not answer.
    pub fn events(&mut self, limit: u32) -> Result<(Vec<Event>, u64), NetError> {
        self.send(&WatcherToServer::Poll { limit })?;
        self.answer(|message| match message {
            ServerToWatcher::Events { events, dropped } => Some((events, dropped)),
            _ => None,
        })
    }

    /// Waits for the answer that `wanted` accepts, and stores names that precede it.
    fn answer<T>(&mut self, wanted: impl Fn(ServerToWatcher) -> Option<T>) -> Result<T, NetError> {
        let until = Instant::now() + LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.receive(left)? {
                Some(Frame::Message(ServerToWatcher::Names(names))) => self.names.extend(names),
                Some(Frame::Goodbye(Goodbye { reason })) => return Err(self.lost(reason)),
                Some(Frame::Message(message)) => {
                    if let Some(answer) = wanted(message) {
                        return Ok(answer);
                    }
                }
                None if left.is_zero() => return Err(self.lost("it does not answer".into())),
                None => {}
            }
        }
    }

    fn send<M: Message>(&mut self, message: &M) -> Result<(), NetError> {
        let frames = codec::encode(message);
        match &mut self.link {
            Link::Server(link) => link.send(&frames),
            Link::Program(link) => link.send(&frames, LIMIT),
        }
    }

    fn receive<M: Message>(&mut self, limit: Duration) -> Result<Option<Frame<M>>, NetError> {
        let frames = match &mut self.link {
            Link::Server(link) => link.receive(limit, Wakeup::default())?,
            Link::Program(link) => link.receive(limit)?,
        };
        Ok(frames.map(|frames| codec::decode_frame(&frames)).transpose()?)
    }

    fn lost(&self, reason: String) -> NetError {
        NetError::Lost { address: self.title.clone(), reason }
    }
}

fn name() -> String {
    format!("watcher-{}", std::process::id())
}

/// The program that a process runs, in parentheses; empty where the system does not say.
fn program(process: u32) -> String {
    let words = system::arguments(process).unwrap_or_default();
    // The script is more telling than the interpreter.
    let said = words.into_iter().skip(1).find(|word| !word.starts_with('-') && !word.is_empty());
    said.map_or_else(String::new, |word| {
        let last = word.lines().next().unwrap_or_default().rsplit('/').next();
        format!("({})", last.unwrap_or_default().chars().take(40).collect::<String>())
    })
}
