//! The page as browsers, scripts and strangers meet it, over HTTP.

mod access;
mod actions;
mod hostile;
mod http;
mod inspections;
mod metrics;
mod recordings;
mod source;
mod stream;
mod tunnel;
