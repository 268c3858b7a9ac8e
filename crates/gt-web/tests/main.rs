//! The page as browsers, scripts and strangers meet it, over HTTP.

mod access;
mod actions;
mod fuzzed;
mod hostile;
mod http;
mod inspections;
mod metrics;
mod random;
mod recordings;
mod requests;
mod source;
mod stream;
mod tunnel;
