//! The dispatcher: plans the command streams of many clients for workers.
//!
//! Its inputs are messages and the time; its outputs are messages. Drivers (`gt`, and `gt-sim` for
//! tests) own the links; the types of all messages are in `gt-ir`, which clients and workers share.
//!
//! - [`dispatcher`]: the state machine; routes messages to the parts below. [`peer`]: the other ends
//!   of links, and what arrives from them and is sent to them; [`peers`]: all of them.
//! - [`sessions`]: per-client state, in parts, and its phases; [`named`]: names of sessions, and what
//!   they keep; [`paused`]: who pauses them; [`numbers`]: how sessions and lanes are numbered; [`queue`]: batches not planned yet;
//!   [`flow`]: credit for what is in flight; [`unread`]: values that a
//!   client has not read; [`templates`]: repeated sequences; [`waiting`]: sessions without a worker.
//! - [`workers`]: per-worker state; [`drain`]: of a worker that is to end; [`scheduler`]: which session's batch is planned next;
//!   [`shares`]: the device time that sessions are entitled to and use, over windows.
//! - [`forward`]: plans a batch; [`delivery`]: sends its commands; [`pipeline`]: the stream
//!   modifiers, which run before planning; [`planner`]: where instructions run, and which data is
//!   redistributed.
//! - [`lineage`]: the snapshot and batches from which a session is restored when a worker is lost;
//!   [`pages`]: the map of tensors, of which snapshots are cheap copies.
//! - [`library`]: what sessions have published for others.
//! - [`journal`]: the records from which a restarted server resumes its sessions.
//! - [`rules`]: the operator's policy: limits on users, teams and keys.
//! - [`answers`]: requests in flight; [`recent`]: what has computed the latest tensors; [`collectives`]: the order of collectives.
//! - [`observability`]: the log, events, the status.
//!
//! The dispatcher has no sockets, threads or clocks, and knows no engine; it never blocks.

mod answers;
mod collectives;
mod delivery;
pub mod dispatcher;
mod drain;
mod flow;
mod forward;
mod journal;
mod library;
mod lineage;
mod named;
mod numbers;
mod observability;
mod pages;
mod paused;
mod peer;
mod peers;
pub mod pipeline;
pub mod planner;
mod queue;
mod recent;
pub mod rules;
mod scheduler;
mod sessions;
mod shares;
mod templates;
mod unread;
mod waiting;
mod workers;

pub use dispatcher::{Dispatcher, Limits, REJOIN_WITHIN};
pub use journal::{History, JournalRecord, SessionHistory};
pub use lineage::LineageLimits;
pub use observability::{Clock, log};
pub use peer::{FromPeer, PeerId, ToPeer};
