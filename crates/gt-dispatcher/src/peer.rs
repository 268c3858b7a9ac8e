//! Peers: the other ends of links, what arrives from them, and what is sent to them.

use bytes::Bytes;
use gt_ir::codec;
use gt_ir::event::EmitLevel;
use gt_ir::message::{
    Answer, ClientToServer, Goodbye, Hello, OperatorToServer, Role, ServerToClient,
    ServerToOperator, ServerToWatcher, ServerToWorker, WatcherToServer, Welcome, WorkerToServer,
};
use std::time::Duration;

/// Identifies a link; the driver assigns the numbers, which are unique within a role.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId {
    /// Proven by the link's key, or claimed by its hello if no keys are used.
    pub role: Role,
    pub number: u64,
}

impl PeerId {
    pub const fn client(number: u64) -> PeerId {
        PeerId { role: Role::Client, number }
    }

    pub const fn worker(number: u64) -> PeerId {
        PeerId { role: Role::Worker, number }
    }

    pub const fn watcher(number: u64) -> PeerId {
        PeerId { role: Role::Watcher, number }
    }

    pub const fn operator(number: u64) -> PeerId {
        PeerId { role: Role::Operator, number }
    }
}

/// Returns a name as one word: characters that would break lines, fields or terminals become
/// underscores.
pub fn word(name: &str) -> String {
    let breaks = |letter: char| letter.is_control() || letter.is_whitespace() || letter == '|';
    name.chars().take(64).map(|letter| if breaks(letter) { '_' } else { letter }).collect()
}

/// Returns a text of a peer on one line, at most 64 letters, for display.
pub fn printable(text: &str) -> String {
    text.chars().take(64).map(|letter| if letter.is_control() { '_' } else { letter }).collect()
}

/// The most letters of a reason that people read.
const MOST_LETTERS: usize = 300;

/// Returns a reason on one line, of a limited length.
pub(crate) fn short(reason: &str) -> String {
    let line = reason.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut text: String = line.take(MOST_LETTERS).collect();
    if reason.chars().nth(MOST_LETTERS).is_some() {
        text += "...";
    }
    text
}

/// What arrives from a peer.
#[derive(Clone, PartialEq, Debug)]
pub enum FromPeer {
    /// The first message of a peer, of its role.
    Hello(Hello),
    Client(ClientToServer),
    Worker(WorkerToServer),
    Watcher(WatcherToServer),
    Operator(OperatorToServer),
    Goodbye(Goodbye),
}

/// What is sent to a peer.
#[derive(Clone, PartialEq, Debug)]
pub enum ToPeer {
    /// The answer to a hello.
    Welcome(Welcome),
    Client(ServerToClient),
    Worker(ServerToWorker),
    Watcher(ServerToWatcher),
    Operator(ServerToOperator),
    Goodbye(Goodbye),
}

impl ToPeer {
    /// Encodes it as frames.
    pub fn encode(&self) -> Vec<Bytes> {
        match self {
            ToPeer::Welcome(welcome) => codec::encode(welcome),
            ToPeer::Client(message) => codec::encode(message),
            ToPeer::Worker(message) => codec::encode(message),
            ToPeer::Watcher(message) => codec::encode(message),
            ToPeer::Operator(message) => codec::encode(message),
            ToPeer::Goodbye(goodbye) => codec::encode(goodbye),
        }
    }

    /// Returns the answer to a client's request, if it is one.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            ToPeer::Client(ServerToClient::Answer(answer)) => Some(answer),
            _ => None,
        }
    }
}

/// Implements conversions of messages into variants.
macro_rules! conversions {
    ($($message:ident => $to:ident::$variant:ident),+ $(,)?) => {
        $(impl From<$message> for $to {
            fn from(message: $message) -> $to {
                $to::$variant(message)
            }
        })+
    };
}

conversions! {
    Hello => FromPeer::Hello,
    ClientToServer => FromPeer::Client,
    WorkerToServer => FromPeer::Worker,
    WatcherToServer => FromPeer::Watcher,
    OperatorToServer => FromPeer::Operator,
    Goodbye => FromPeer::Goodbye,
    Welcome => ToPeer::Welcome,
    ServerToClient => ToPeer::Client,
    ServerToWorker => ToPeer::Worker,
    ServerToWatcher => ToPeer::Watcher,
    ServerToOperator => ToPeer::Operator,
    Goodbye => ToPeer::Goodbye,
}

impl From<Answer> for ToPeer {
    fn from(answer: Answer) -> ToPeer {
        ToPeer::Client(answer.into())
    }
}

/// Messages to be sent, in order.
#[derive(Default)]
pub(crate) struct PeerOutbox(pub Vec<(PeerId, ToPeer)>);

impl PeerOutbox {
    pub fn push(&mut self, peer: PeerId, message: impl Into<ToPeer>) {
        self.0.push((peer, message.into()));
    }

    /// Adds a message, if there is one.
    pub fn extend(&mut self, peer: PeerId, message: Option<impl Into<ToPeer>>) {
        self.0.extend(message.map(|message| (peer, message.into())));
    }

    /// Lets the owner of a shared block release it.
    pub fn release(&mut self, owner: PeerId, token: u128) {
        match owner.role {
            Role::Client => self.push(owner, ServerToClient::Release { token }),
            Role::Worker => self.push(owner, ServerToWorker::Release { token }),
            // They have no blocks.
            Role::Watcher | Role::Operator => {}
        }
    }

    /// Sets what a client or worker emits; `sent` is the dispatcher's time.
    pub fn observe(&mut self, peer: PeerId, level: EmitLevel, sent: Duration) {
        match peer.role {
            Role::Client => self.push(peer, ServerToClient::Observe { level, sent }),
            Role::Worker => self.push(peer, ServerToWorker::Observe { level, sent }),
            // They emit nothing.
            Role::Watcher | Role::Operator => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_short_lines() {
        let long = short(&"x\n".repeat(1000));
        assert_eq!(long.chars().count(), MOST_LETTERS + 3);
        assert!(long.starts_with("x x ") && long.ends_with("..."), "{long}");
        assert_eq!(short("drained"), "drained");
    }
}
