//! The protocol: the messages between clients, the server, workers, watchers and operators, an enum for each
//! direction.
//!
//! - [`handshake`]: how a link begins: a hello for each role, and its welcome; [`protocol`]: what
//!   every version can read of a hello; [`resume`]: how a client continues with a session.
//! - [`client`]: between a client and the server; [`worker`]: between a worker and the server;
//!   [`neighbour`]: between two workers; [`watcher`]: between a watcher and the server;
//!   [`operator`]: between an operator and the server.
//! - [`link`]: what the ends of a link say about the link itself.
//!
//! Each type of message has a [`Kind`] on the wire, so that a message that travels in the wrong
//! direction is an error of decoding ([`crate::codec`]).

pub mod client;
pub mod handshake;
pub mod link;
pub mod neighbour;
pub mod operator;
pub mod protocol;
pub mod resume;
pub mod watcher;
pub mod worker;

pub use client::{Answer, ClientToServer, FoundPublication, LARGE_VALUE, Reply, ServerToClient};
pub use handshake::{
    Badge, ClientHello, ClientWelcome, Handshake, Hello, OperatorHello, OperatorWelcome, Role,
    WatcherHello, WatcherWelcome, Welcome, WorkerHello, WorkerWelcome,
};
pub use link::{Acknowledge, Frame, Goodbye};
pub use neighbour::WorkerToWorker;
pub use operator::{OperatorToServer, ServerToOperator};
pub use protocol::{PROTOCOL_VERSION, Protocol, Stranger};
pub use resume::{Attach, Process, Resume, is_same_token};
pub use watcher::{Named, ServerToWatcher, WatcherToServer};
pub use worker::{LinkRate, ServerToWorker, WorkerToServer};

pub use crate::failure::Failure;

use std::fmt;

use crate::wire::Record;

/// A type of messages, all of which travel in one direction.
pub trait Message: Record {
    /// What its frames begin with.
    const KIND: Kind;
}

/// The types of messages, by their numbers on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Hello = 1,
    Welcome = 2,
    Acknowledge = 3,
    Goodbye = 4,
    ClientToServer = 5,
    ServerToClient = 6,
    WorkerToServer = 7,
    ServerToWorker = 8,
    WorkerToWorker = 9,
    WatcherToServer = 10,
    ServerToWatcher = 11,
    OperatorToServer = 12,
    ServerToOperator = 13,
}

impl Kind {
    pub const ALL: [Kind; 13] = [
        Kind::Hello,
        Kind::Welcome,
        Kind::Acknowledge,
        Kind::Goodbye,
        Kind::ClientToServer,
        Kind::ServerToClient,
        Kind::WorkerToServer,
        Kind::ServerToWorker,
        Kind::WorkerToWorker,
        Kind::WatcherToServer,
        Kind::ServerToWatcher,
        Kind::OperatorToServer,
        Kind::ServerToOperator,
    ];

    /// Returns the kind with a number on the wire.
    pub fn of(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Hello => "a hello",
            Kind::Welcome => "a welcome",
            Kind::Acknowledge => "an acknowledgement",
            Kind::Goodbye => "a goodbye",
            Kind::ClientToServer => "a message from a client to a server",
            Kind::ServerToClient => "a message from a server to a client",
            Kind::WorkerToServer => "a message from a worker to a server",
            Kind::ServerToWorker => "a message from a server to a worker",
            Kind::WorkerToWorker => "a message from a worker to a worker",
            Kind::WatcherToServer => "a message from a watcher to a server",
            Kind::ServerToWatcher => "a message from a server to a watcher",
            Kind::OperatorToServer => "a message from an operator to a server",
            Kind::ServerToOperator => "a message from a server to an operator",
        })
    }
}

/// Implements [`Message`] for the types of these kinds.
macro_rules! kinds {
    ($($kind:ident),+ $(,)?) => {
        $(impl $crate::message::Message for $kind {
            const KIND: $crate::message::Kind = $crate::message::Kind::$kind;
        })+
    };
}
use kinds;
