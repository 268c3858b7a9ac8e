//! The handshake: a peer's hello, and the dispatcher's welcome.

use std::time::Duration;

use crate::fabric::Fabric;
use crate::instruction::RequestId;
use crate::record;

/// The protocol version; both ends of a link must have the same.
pub const PROTOCOL_VERSION: u32 = 12;

/// A peer's role, which its link authenticates and which determines the messages that it may send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    Client,
    Worker,
    Watcher,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Worker => "worker",
            Role::Watcher => "watcher",
        }
    }
}

record!(enum Role { 0 => Client, 1 => Worker, 2 => Watcher });

/// The first message of a peer.
#[derive(Clone, PartialEq, Debug)]
pub struct Hello {
    pub version: u32,
    /// A hash of the instruction set, so that ids mean the same at both ends.
    pub schema: u64,
    pub role: Role,
    /// The name that it requests: a worker's id, a client's process.
    pub name: String,
    /// Equal for processes that can share memory; empty for none.
    pub machine: String,
    /// The address at which a worker receives pieces; empty if none is needed.
    pub endpoint: String,
    /// How a worker's engine reaches others, if it can.
    pub fabric: Option<Box<Fabric>>,
    /// The estimated work ([`crate::Operation::work`]) that a worker's engine does in a second.
    pub rate: u64,
    /// Whether a worker's engine computes the same bits each time, in every mode of execution.
    pub is_exact: bool,
    /// What determines the bits of a worker's results besides its commands: engine, versions and
    /// processor. Workers with equal values compute equal bits.
    pub arithmetic: String,
    /// Whether a worker's snapshots outlive its process.
    pub is_durable: bool,
    /// The user whose key a client has, if any. The server's driver verifies the proof; the
    /// dispatcher trusts it.
    pub badge: Option<Box<Badge>>,
    /// A client's process.
    pub process: Option<Process>,
    /// The identity that a client or worker resumes after its connection was lost. For a new peer,
    /// the server's driver fills it in for the dispatcher.
    pub resume: Option<Box<Resume>>,
}

record!(struct Hello {
    version, schema, role, name, machine, endpoint, fabric, rate, is_exact, arithmetic, is_durable, badge, process, resume,
});

impl Hello {
    /// Returns the hello of a peer of this version, without optional parts.
    pub fn new(role: Role, name: impl Into<String>) -> Hello {
        Hello {
            version: PROTOCOL_VERSION,
            schema: schema(),
            role,
            name: name.into(),
            machine: String::new(),
            endpoint: String::new(),
            fabric: None,
            rate: 0,
            is_exact: true,
            arithmetic: String::new(),
            is_durable: false,
            badge: None,
            process: None,
            resume: None,
        }
    }
}

/// A process on its machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Process {
    pub pid: u32,
    /// When it started, in the system's clock ticks.
    pub start: u64,
}

record!(struct Process { pid, start });

/// The identity of a peer before its connection was lost, and its message counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resume {
    /// A secret that only the peer received.
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
    /// Returns whether a token equals this one's, in constant time.
    pub fn is_by(&self, token: u128) -> bool {
        let differences = self.token.to_ne_bytes().into_iter().zip(token.to_ne_bytes());
        let all = differences.fold(0, |all, (left, right)| all | (left ^ right));
        std::hint::black_box(all) == 0
    }

    /// Returns the value for a new peer.
    pub fn new(token: u128) -> Resume {
        Resume { token, ..Resume::default() }
    }
}

/// Identifies a client's user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Badge {
    pub user: String,
    /// Empty for none.
    pub team: String,
    /// Derived from the names and the cluster key.
    pub proof: [u8; 32],
}

record!(struct Badge { user, team, proof });

/// The dispatcher's answer to a hello.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Welcome {
    /// The client's session, or the worker's number.
    pub session: u32,
    /// The name that the dispatcher assigns to the peer; unique among workers.
    pub name: String,
    /// The weight of commands that may be in flight.
    pub window: u64,
    /// The dispatcher's machine, as in the hello.
    pub machine: String,
    /// The folders in which the server's workers may read and write files.
    pub data_roots: Vec<String>,
    /// What the peer needs to resume after its connection is lost, and the number of messages that
    /// the server has received.
    pub resume: Option<Box<Resume>>,
    /// How long the server waits for a lost client to reconnect, or a worker for a lost server.
    pub grace: Duration,
    /// Whether the server's state is persistent, so that the server may be restarted with it after
    /// a crash.
    pub is_kept: bool,
    /// Whether the server has restarted since the peer was last connected, and resumes its session:
    /// a client receives no credit for earlier commands, and a worker's snapshots are needed.
    pub is_renewed: bool,
}

record!(struct Welcome {
    session, name, window, machine, data_roots, resume, grace, is_kept, is_renewed,
});

/// Returns a hash of the instruction set: names, ids, arities and attributes.
pub fn schema() -> u64 {
    // FNV-1a, stable across builds and machines.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for operation in crate::ops::ALL {
        eat(&operation.id.to_le_bytes());
        eat(operation.name.as_bytes());
        for parameter in operation.parameters {
            eat(parameter.name.as_bytes());
            eat(format!("{:?}", parameter.kind).as_bytes());
        }
    }
    hash
}
