//! Tools that show what a cluster does: `gt top`, `gt trace`, `gt visualize`, `gt explain-wait`,
//! `gt sessions`, `gt published`.
//!
//! - [`find`]: finds the dispatcher to watch.
//! - [`trace`]: records a dispatcher's events, into a log or as a timeline.
//! - [`timeline`]: reads a log as spans on rows; [`visualize`]: draws timelines.
//! - [`top`]: the live view of a cluster; [`explain_wait`]: what a session waits for;
//!   [`sessions`]: the sessions of a user; [`inspection`]: the details of one; [`published`]: what is
//!   published.
//! - [`operate`]: what operators have a server do.
//!
//! The other tools only watch: they change nothing in a cluster, and may be slow.

mod error;
pub mod explain_wait;
pub mod find;
pub mod inspection;
pub mod operate;
pub mod published;
pub mod sessions;
pub mod timeline;
pub mod top;
pub mod trace;
pub mod visualize;
pub mod words;

pub use error::ToolError;
