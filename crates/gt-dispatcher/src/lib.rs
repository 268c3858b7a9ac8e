//! The dispatcher: plans the command streams of many clients for workers.
//!
//! - [`dispatcher`]: the state machine. Messages and the time go in, messages come out; it routes
//!   them to the parts below.
//! - [`sessions`]: per-client state; [`queue`]: batches not planned yet; [`flow`]: credit for what
//!   is in flight; [`templates`]: repeated sequences; [`waiting`]: sessions without a worker.
//! - [`workers`]: per-worker state; [`scheduler`]: which session's batch is planned next.
//! - [`forward`]: plans a batch; [`delivery`]: sends what was planned; [`pipeline`]: the stream
//!   modifiers before that; [`planner`]: where instructions run, and which data moves.
//! - [`lineage`]: what a session is made again from when a worker is lost.
//! - [`journal`]: what a server that is started again goes on from.
//! - [`rules`]: the operator's policy: what users, teams and keys may have.
//! - [`answers`]: requests in flight; [`joints`]: the order of joint exchanges.
//! - [`observability`]: the log, events, the status.
//!
//! The dispatcher has no sockets, threads or clocks, and knows no engine; it never blocks.

mod answers;
mod delivery;
pub mod dispatcher;
mod flow;
mod forward;
mod joints;
mod journal;
mod lineage;
mod observability;
mod pages;
pub mod pipeline;
pub mod planner;
mod queue;
pub mod rules;
mod scheduler;
mod sessions;
mod templates;
mod unread;
mod waiting;
mod workers;

pub use dispatcher::{Dispatcher, Limits, PeerId, REJOIN_WITHIN};
pub use journal::{History, JournalRecord, SessionHistory};
pub use lineage::LineageLimits;
pub use observability::{Clock, log};
