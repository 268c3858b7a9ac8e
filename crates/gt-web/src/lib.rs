//! GT's web page: who runs, who waits, and why, live in a browser.
//!
//! A page is served by two threads of its own. One asks a dispatcher for its status while anybody
//! looks, as `gt top` does; the other answers browsers. No slow reader delays another, or the
//! dispatcher. Nothing is changed in a cluster, unless the page has operators: each of their actions
//! is a connection of its own, as that of a command.
//!
//! - [`listen`]: the address of the page. [`access`]: who may see it; `acting`: who may act;
//!   [`secret`]: tokens and cookies.
//! - [`actions`]: what operators do. `body`: bodies of requests.
//! - [`recordings`]: what a cluster does for some seconds, as timelines.
//! - [`feed`]: one watcher for all readers; [`inspections`]: its questions about single sessions.
//!   [`watched`]: the dispatcher that it watches.
//! - `server`: connections and their limits; `routes`: what is served at which path.
//! - [`tunnel`]: connections to the server over the page's port.
//! - `page`: the files of the page. `metrics`: the status as OpenMetrics.
//!
//! It knows the dispatcher only by its [`Status`](gt_ir::status::Status).

pub mod access;
mod acting;
pub mod actions;
mod body;
mod error;
pub mod feed;
pub mod inspections;
pub mod listen;
mod metrics;
mod page;
pub mod recordings;
mod routes;
pub mod secret;
mod server;
pub mod tunnel;
pub mod watched;

pub use error::WebError;
pub use server::{ActingOptions, Page, PageOptions};
