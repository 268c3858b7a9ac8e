//! How a client continues with a session: its own after its connection was lost, or one with a name.

use crate::instruction::RequestId;
use crate::record;

/// A process on its machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    pub pid: u32,
    /// When it started, in the system's clock ticks.
    pub start: u64,
}

record!(struct Process { pid, start });

/// A client's session before its connection was lost, and its message counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resume {
    /// A secret that only the client received.
    pub token: u128,
    /// The number of the other end's messages that it has received.
    pub received: u64,
    /// The numbers of its own messages that it has sent, and that the other end has acknowledged.
    pub sent: u64,
    pub acknowledged: u64,
    /// The number of its messages up to the last acknowledged one that a journal records: a stream.
    pub recorded: u64,
    /// The requests whose answers it waits for.
    pub waits: Vec<RequestId>,
}

record!(struct Resume { token, received, sent, acknowledged, recorded, waits });

impl Resume {
    /// Returns the value for a new client.
    pub fn new(token: u128) -> Resume {
        Resume { token, ..Resume::default() }
    }
}

/// A request to continue with a session by its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attach {
    pub name: String,
    /// Begin the session if there is none of this name.
    pub or_create: bool,
    /// Take the session from the program that holds it.
    pub take_over: bool,
    /// The token of a session that was detached as private.
    pub token: Option<u128>,
}

record!(struct Attach { name, or_create, take_over, token });

/// Returns whether two tokens are equal, in constant time.
pub fn is_same_token(one: u128, other: u128) -> bool {
    let differences = one.to_ne_bytes().into_iter().zip(other.to_ne_bytes());
    let all = differences.fold(0, |all, (left, right)| all | (left ^ right));
    std::hint::black_box(all) == 0
}
