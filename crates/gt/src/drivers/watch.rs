//! A watcher of a dispatcher in another process: the basis of `gt top` and `gt trace`.

use std::path::Path;
use std::time::{Duration, Instant};

use gt_ir::event::Event;
use gt_ir::message::{Hello, Message, Named, Role};
use gt_ir::status::Status;
use gt_ir::{ClientCommand, RequestId};
use gt_net::address::Address;
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::local::LocalLink;
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
    names: FxHashMap<Named, String>,
    requests: u64,
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
        let address = Address::parse(address)?;
        let (link, _) = super::network::join(&address, Role::Watcher, &name(), key_file, insecure)?;
        let link = Link::Server(Box::new(link));
        Ok(Watcher::new(link, format!("server {address}")))
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
        let hello = super::network::introduction(Role::Watcher, &name(), None);
        watcher.send(&Message::Hello(Hello { machine: String::new(), ..hello }))?;
        match watcher.receive(LIMIT)? {
            Some(Message::Welcome(_)) => Ok(watcher),
            Some(Message::Goodbye { reason }) => Err(watcher.lost(reason)),
            _ => Err(watcher.lost("it does not answer".into())),
        }
    }

    fn new(link: Link, title: String) -> Watcher {
        Watcher { link, title, names: FxHashMap::default(), requests: 0 }
    }

    /// What is watched, for display.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The name of an entity, if it was received with events.
    pub fn name(&self, named: Named) -> Option<&str> {
        self.names.get(&named).map(String::as_str)
    }

    /// Requests the status.
    ///
    /// # Errors
    /// The dispatcher is gone, or does not answer.
    pub fn status(&mut self) -> Result<Status, NetError> {
        let request = RequestId(self.requests);
        self.requests += 1;
        self.send(&Message::Stream(vec![ClientCommand::Status { request }]))?;
        self.answer(|message| match message {
            Message::Status { request: of, status } if of == request => Some(*status),
            _ => None,
        })
    }

    /// Polls for up to `limit` events; also returns how many were dropped.
    ///
    /// # Errors
    /// The dispatcher is gone, or does not answer.
    pub fn events(&mut self, limit: u32) -> Result<(Vec<Event>, u64), NetError> {
        self.send(&Message::Watch { limit })?;
        self.answer(|message| match message {
            Message::Events { events, dropped } => Some((events, dropped)),
            _ => None,
        })
    }

    /// Waits for the answer that `wanted` accepts, and stores names that precede it.
    fn answer<T>(&mut self, wanted: impl Fn(Message) -> Option<T>) -> Result<T, NetError> {
        let until = Instant::now() + LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.receive(left)? {
                Some(Message::Names(names)) => self.names.extend(names),
                Some(Message::Goodbye { reason }) => return Err(self.lost(reason)),
                Some(message) => {
                    if let Some(answer) = wanted(message) {
                        return Ok(answer);
                    }
                }
                None if left.is_zero() => return Err(self.lost("it does not answer".into())),
                None => {}
            }
        }
    }

    fn send(&mut self, message: &Message) -> Result<(), NetError> {
        match &mut self.link {
            Link::Server(link) => link.send(&codec::encode(message)),
            Link::Program(link) => link.send(message, LIMIT),
        }
    }

    fn receive(&mut self, limit: Duration) -> Result<Option<Message>, NetError> {
        match &mut self.link {
            Link::Server(link) => match link.receive(limit, Wakeup::None)? {
                Some(frames) => Ok(Some(codec::decode(&frames)?)),
                None => Ok(None),
            },
            Link::Program(link) => link.receive(limit),
        }
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
