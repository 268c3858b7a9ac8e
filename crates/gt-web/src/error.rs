//! Errors of the page, with messages for the user.

use std::io;

use gt::net::NetError;
use gt_tools::ToolError;

/// Why a page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    #[error("the page's address is '{given}', expected PORT or HOST:PORT, such as 8265")]
    BadAddress { given: String },

    #[error(
        "the page's name is '{given}', expected that of a host, such as gt.example.com, without a port"
    )]
    BadName { given: String },

    #[error(
        "the page's address {host}:{port} is in use\n  hint: choose another port, or 0 for any"
    )]
    InUse { host: String, port: u16 },

    #[error("the page cannot listen at {host}:{port}: {error}")]
    Listen { host: String, port: u16, error: io::Error },

    #[error(
        "{host} is not a loopback address, and the page has no encryption: others on the network could read its token\n  hint: serve the page at 127.0.0.1 behind a reverse proxy with TLS, or allow it with --insecure-web"
    )]
    NotLoopback { host: String },

    #[error("the page's token file {path}: {error}")]
    TokenFile { path: String, error: io::Error },

    #[error(
        "the page's token file {path} has no token in it, expected 16 to 256 letters, digits, '-' and '_'"
    )]
    BadToken { path: String },

    #[error(
        "the operators' token file {path} has the token of the page itself\n  hint: everyone who sees the page could act; write another token into it"
    )]
    SameToken { path: String },

    #[error("the page's thread cannot start: {0}")]
    Thread(io::Error),

    #[error(transparent)]
    Private(#[from] NetError),

    #[error(transparent)]
    Watch(#[from] ToolError),
}
