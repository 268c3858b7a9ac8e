//! Messages between a watcher and the server.

use super::kinds;
use crate::event::Event;
use crate::ids::{SessionId, SlotId, WorkerId};
use crate::instruction::RequestId;
use crate::record;
use crate::status::Status;
use crate::status::inspection::Inspection;

/// From a watcher to the server.
#[derive(Clone, PartialEq, Debug)]
pub enum WatcherToServer {
    /// A request for the status, with the cluster events after the one of number `since`.
    Status { request: RequestId, since: u64 },
    /// A request for up to `limit` events.
    Poll { limit: u32 },
    /// A request for the details of a session, which are collected from the first request on for as
    /// long as others follow. With `explain`, what is planned next is explained.
    Inspect { request: RequestId, session: SessionId, explain: bool },
}

record!(enum WatcherToServer {
    1 => Status { request, since },
    2 => Poll { limit },
    3 => Inspect { request, session, explain },
});

/// From the server to a watcher.
#[derive(Clone, PartialEq, Debug)]
pub enum ServerToWatcher {
    /// The answer to [`WatcherToServer::Status`].
    Status { request: RequestId, status: Box<Status> },
    /// The names of the entities that the events after it refer to.
    Names(Vec<(Named, String)>),
    /// The answer to [`WatcherToServer::Poll`], in times of the server's clock; `dropped` more were
    /// lost.
    Events { events: Vec<Event>, dropped: u64 },
    /// The answer to [`WatcherToServer::Inspect`], or why there is none.
    Inspected { request: RequestId, result: Result<Box<Inspection>, String> },
}

record!(enum ServerToWatcher {
    1 => Status { request, status },
    2 => Names(names),
    3 => Events { events, dropped },
    4 => Inspected { request, result },
});

kinds!(WatcherToServer, ServerToWatcher);

/// An entity with a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Named {
    Session(SessionId),
    Worker(WorkerId),
    Signal {
        session: SessionId,
        number: u32,
    },
    /// The worker that a session's slot is on.
    Slot {
        session: SessionId,
        slot: SlotId,
    },
    /// The operations and lines of a hot path, as its client numbers it.
    Template {
        session: SessionId,
        number: u32,
    },
    /// The same, as workers number it.
    Plan {
        session: SessionId,
        number: u32,
    },
}

record!(enum Named {
    0 => Session(number),
    1 => Worker(worker),
    2 => Signal { session, number },
    3 => Slot { session, slot },
    4 => Template { session, number },
    5 => Plan { session, number },
});
