//! A server's options, and requests to it while it serves.

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
    /// The expected number of workers: the first sessions wait for them.
    pub workers: usize,
    /// The folders in which workers may read and write files.
    pub data_roots: Vec<PathBuf>,
    /// The file with the policy, if there is one.
    pub policy: Option<PathBuf>,
    /// How long a session waits for its client when their connection is lost.
    pub grace: Duration,
    /// The limits of each session's lineage, from which its tensors are restored when a worker is
    /// lost. None disables recovery.
    pub lineage: Option<LineageLimits>,
    /// The folder of the journal from which the server resumes after a restart.
    pub state: Option<PathBuf>,
}

/// A request to a serving server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Continue serving.
    Nothing,
    /// Reload the policy file.
    Reload,
    Stop,
}

/// Why a server has stopped serving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShutdownReason {
    Stopped,
    /// The process was stopped for so long that its peers consider it dead: it must be bound again,
    /// and resumes from its journal.
    StoodStill,
}
