//! What a server is told: its options, and what it is asked to do while it serves.

use std::path::PathBuf;
use std::time::Duration;

use gt_dispatcher::LineageLimits;
use gt_net::address::Address;

/// A server's options.
pub struct ServerOptions {
    pub address: Address,
    pub key_file: Option<PathBuf>,
    /// Accepts any peer, unencrypted.
    pub insecure: bool,
    pub log_file: Option<PathBuf>,
    /// How long a client waits for a worker.
    pub worker_wait: Duration,
    /// How many workers are to come: the first sessions wait for them.
    pub workers: usize,
    /// The folders in which workers may read and write files.
    pub data_roots: Vec<PathBuf>,
    /// The file with the policy, if there is one.
    pub policy: Option<PathBuf>,
    /// How long a session waits for its client when their connection is lost.
    pub grace: Duration,
    /// What is kept of each session to make its tensors again when a worker is lost.
    /// Nothing without.
    pub lineage: Option<LineageLimits>,
    /// The folder of the journal from which the server goes on when it is started again.
    pub state: Option<PathBuf>,
}

/// What a server is asked to do while it serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Nothing: it goes on.
    Nothing,
    /// Read the policy file again.
    Reload,
    Stop,
}

/// Why a server serves no longer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShutdownReason {
    Stopped,
    /// It has stood still for so long that its peers have given it up, as if it had died: it is to be
    /// bound again, and goes on from its journal.
    StoodStill,
}
