//! The handshake: a peer's hello, and the server's welcome, typed for each role.

use std::time::Duration;

use super::kinds;
use super::resume::{Attach, Process, Resume};
use crate::command::StreamNumbers;
use crate::fabric::Fabric;
use crate::ids::WorkerId;
use crate::origin::SessionOrigin;
use crate::record;

/// A peer's role, which its key proves and which determines the messages that it may send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Role {
    Client,
    Worker,
    Watcher,
    Operator,
}

impl Role {
    /// The roles, in the order of their codes in a hello.
    pub const ALL: [Role; 4] = [Role::Client, Role::Worker, Role::Watcher, Role::Operator];

    /// Returns the role with a code in a hello.
    pub fn of(code: u8) -> Option<Role> {
        Role::ALL.get(usize::from(code)).copied()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Worker => "worker",
            Role::Watcher => "watcher",
            Role::Operator => "operator",
        }
    }
}

/// The hello of a role, and the welcome that answers it.
pub trait Handshake: Into<Hello> {
    const ROLE: Role;
    type Welcome: TryFrom<Welcome>;
}

/// The first message of a peer.
#[derive(Clone, PartialEq, Debug)]
pub enum Hello {
    Client(ClientHello),
    Worker(WorkerHello),
    Watcher(WatcherHello),
    Operator(OperatorHello),
}

// The codes of the roles never change: see [`super::protocol`].
record!(enum Hello {
    0 => Client(hello),
    1 => Worker(hello),
    2 => Watcher(hello),
    3 => Operator(hello),
});

impl Hello {
    pub fn role(&self) -> Role {
        match self {
            Hello::Client(_) => Role::Client,
            Hello::Worker(_) => Role::Worker,
            Hello::Watcher(_) => Role::Watcher,
            Hello::Operator(_) => Role::Operator,
        }
    }

    /// Returns the name of the peer's program, or the name that a worker requests.
    pub fn name(&self) -> &str {
        match self {
            Hello::Client(hello) => &hello.origin.program,
            Hello::Worker(hello) => &hello.name,
            Hello::Watcher(hello) => &hello.name,
            Hello::Operator(hello) => &hello.name,
        }
    }

    /// Returns the user whose key the peer has, if any.
    pub fn badge(&self) -> Option<&Badge> {
        match self {
            Hello::Client(hello) => hello.badge.as_deref(),
            Hello::Watcher(hello) => hello.badge.as_deref(),
            Hello::Operator(hello) => hello.badge.as_deref(),
            Hello::Worker(_) => None,
        }
    }
}

/// The server's answer to a hello.
#[derive(Clone, PartialEq, Debug)]
pub enum Welcome {
    Client(ClientWelcome),
    Worker(WorkerWelcome),
    Watcher,
    Operator,
}

record!(enum Welcome { 0 => Client(welcome), 1 => Worker(welcome), 2 => Watcher, 3 => Operator });

kinds!(Hello, Welcome);

/// A client's hello.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientHello {
    /// Its program, for display.
    pub origin: SessionOrigin,
    /// Equal for processes that can share memory; empty for none.
    pub machine: String,
    /// The user whose key it has, if any. The server's driver verifies the proof; the dispatcher
    /// trusts it.
    pub badge: Option<Box<Badge>>,
    pub process: Option<Process>,
    /// The session that it resumes after its connection was lost. For a new client, the server's
    /// driver fills it in for the dispatcher.
    pub resume: Option<Box<Resume>>,
    /// The named session that it attaches to, instead of beginning one.
    pub attach: Option<Box<Attach>>,
}

record!(struct ClientHello { origin, machine, badge, process, resume, attach });

impl ClientHello {
    /// Returns the user that it proves; empty for one without a user's key.
    pub fn user(&self) -> &str {
        self.badge.as_ref().map_or("", |badge| &badge.user)
    }

    /// Returns the hello of a new client of this build, without optional parts.
    pub fn new(origin: SessionOrigin) -> ClientHello {
        ClientHello {
            origin,
            machine: String::new(),
            badge: None,
            process: None,
            resume: None,
            attach: None,
        }
    }
}

/// A worker's hello.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerHello {
    /// The name that it requests.
    pub name: String,
    /// Equal for processes that can share memory; empty for none.
    pub machine: String,
    /// The name of its machine.
    pub host: String,
    /// The rack of its machine, or whatever else is near; empty if unknown.
    pub rack: String,
    /// The address at which it receives pieces; empty if none is needed.
    pub endpoint: String,
    /// How its engine reaches others, if it can.
    pub fabric: Option<Box<Fabric>>,
    /// The estimated work ([`crate::Operation::work`]) that its engine does in a second.
    pub rate: u64,
    /// Whether its engine computes the same bits each time, in every mode of execution.
    pub is_exact: bool,
    /// What determines the bits of its results besides its commands: engine, versions and
    /// processor. Workers with equal values compute equal bits.
    pub arithmetic: String,
    /// Whether its snapshots outlive its process.
    pub is_durable: bool,
    /// The token by which the server knows it, if it was connected before. For a new worker, the
    /// server's driver fills it in for the dispatcher.
    pub token: Option<u128>,
}

record!(struct WorkerHello {
    name, machine, host, rack, endpoint, fabric, rate, is_exact, arithmetic, is_durable, token,
});

impl WorkerHello {
    /// Returns the hello of a new worker of this build, without optional parts.
    pub fn new(name: impl Into<String>) -> WorkerHello {
        WorkerHello {
            name: name.into(),
            machine: String::new(),
            host: String::new(),
            rack: String::new(),
            endpoint: String::new(),
            fabric: None,
            rate: 0,
            is_exact: true,
            arithmetic: String::new(),
            is_durable: false,
            token: None,
        }
    }
}

/// A watcher's hello.
#[derive(Clone, PartialEq, Debug)]
pub struct WatcherHello {
    /// The name of its process.
    pub name: String,
    /// The user whose key it has, if any.
    pub badge: Option<Box<Badge>>,
}

record!(struct WatcherHello { name, badge });

impl WatcherHello {
    /// Returns the hello of a watcher of this build.
    pub fn new(name: impl Into<String>) -> WatcherHello {
        WatcherHello { name: name.into(), badge: None }
    }
}

/// An operator's hello.
#[derive(Clone, PartialEq, Debug)]
pub struct OperatorHello {
    /// Who it is, for the log: account, machine and program.
    pub name: String,
    /// The user whose key it has, if any: it may operate on this user's sessions alone.
    pub badge: Option<Box<Badge>>,
}

record!(struct OperatorHello { name, badge });

impl OperatorHello {
    /// Returns the hello of an operator of this build.
    pub fn new(name: impl Into<String>) -> OperatorHello {
        OperatorHello { name: name.into(), badge: None }
    }
}

/// The welcome of a client.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClientWelcome {
    /// The weight of commands that may be in flight.
    pub window: u64,
    /// The name under which the server shows the session.
    pub name: String,
    /// The server's machine, as in the hello.
    pub machine: String,
    /// The folders in which the server's workers may read and write files.
    pub data_roots: Vec<String>,
    /// The token by which the client resumes the session on another connection, if it can.
    pub token: Option<u128>,
    /// The number of the client's messages that the server has received.
    pub received: u64,
    /// How long the server waits for a lost client to reconnect.
    pub grace: Duration,
    /// Whether the server's state is persistent, so that the server may be restarted with it after
    /// a crash.
    pub is_kept: bool,
    /// Whether the server has restarted since the client was last connected, and resumes its
    /// session: the client receives no credit for earlier commands.
    pub is_renewed: bool,
    /// Whether another client had the session before.
    pub is_attached: bool,
    /// The numbers with which the client's stream begins.
    pub numbers: StreamNumbers,
}

record!(struct ClientWelcome {
    window, name, machine, data_roots, token, received, grace, is_kept, is_renewed, is_attached,
    numbers,
});

/// The welcome of a worker.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkerWelcome {
    pub worker: WorkerId,
    /// The name that the server assigns to it; unique among workers.
    pub name: String,
    /// The token by which the worker reconnects.
    pub token: Option<u128>,
    /// How long the worker waits for a lost server; zero if the server's state is not persistent.
    pub grace: Duration,
    /// Whether the server knows the worker, and needs its snapshots.
    pub is_renewed: bool,
}

record!(struct WorkerWelcome { worker, name, token, grace, is_renewed });

/// The welcome of a watcher, which needs to know nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatcherWelcome;

/// The welcome of an operator, which needs to know nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperatorWelcome;

/// Connects a role's hello and welcome with [`Hello`] and [`Welcome`].
macro_rules! handshakes {
    ($($role:ident: $hello:ident -> $welcome:ident $(($value:ident))?),+ $(,)?) => {
        $(
            impl Handshake for $hello {
                const ROLE: Role = Role::$role;
                type Welcome = $welcome;
            }

            impl From<$hello> for Hello {
                fn from(hello: $hello) -> Hello {
                    Hello::$role(hello)
                }
            }

            impl TryFrom<Welcome> for $welcome {
                type Error = Welcome;

                fn try_from(welcome: Welcome) -> Result<$welcome, Welcome> {
                    match welcome {
                        Welcome::$role $(($value))? => Ok(handshakes!(@ $welcome $($value)?)),
                        other => Err(other),
                    }
                }
            }
        )+
    };
    (@ $welcome:ident $value:ident) => { $value };
    (@ $welcome:ident) => { $welcome };
}

handshakes! {
    Client: ClientHello -> ClientWelcome(welcome),
    Worker: WorkerHello -> WorkerWelcome(welcome),
    Watcher: WatcherHello -> WatcherWelcome,
    Operator: OperatorHello -> OperatorWelcome,
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
