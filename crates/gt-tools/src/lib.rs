//! Programs that show what GT does.
//!
//! - [`find`]: the dispatcher that a user means.
//! - [`trace`]: writes what happens into a log.
//! - [`timeline`]: reads logs, as spans on lanes.
//! - [`visualize`]: draws timelines.
//! - [`top`]: what a cluster is at, in a terminal and live; [`explain_wait`]: what a session waits
//!   for, in words.
//!
//! They look from outside: a program here changes nothing in a cluster, and may be slow.

mod error;
pub mod explain_wait;
pub mod find;
pub mod timeline;
pub mod top;
pub mod trace;
pub mod visualize;
pub mod words;

pub use error::ToolError;
