//! Network errors, with messages for the user.

use thiserror::Error;

#[derive(Debug, Error)]
pub enum NetError {
    #[error(
        "'{given}' is not an address\n  hint: use host:port, such as localhost:9000 or [::1]:9000, or ipc:///path, or file:///path of a file in which the server publishes it"
    )]
    BadAddress { given: String },

    #[error(
        "the socket path {path} has {length} bytes, and the system takes {longest} at most\n  hint: give one in a folder with a shorter path"
    )]
    LongPath { path: String, length: usize, longest: usize },

    #[error(
        "nothing answers at {address}\n  hint: is the server running? start one with `gt server {option}`"
    )]
    Unreachable { address: String, option: String },

    #[error(
        "no server has published its address in {path}\n  hint: one that is started with `gt server --publish FILE` writes it, and removes it when it ends"
    )]
    NotPublished { path: String },

    #[error("no port is free at '{host}': {error}")]
    NoPort { host: String, error: std::io::Error },

    #[error("the host '{host}' is not known: {error}\n  hint: check its name, or use its number")]
    UnknownHost { host: String, error: std::io::Error },

    #[error(
        "what listens at {address} does not speak GT's protocol\n  hint: is it a gt server? check host and port"
    )]
    NotGt { address: String },

    #[error(
        "the server at {address} takes no keys\n  hint: it was started with --insecure; say so here, too, if you trust everybody who can reach it"
    )]
    Keyless { address: String },

    #[error(
        "the server at {address} wants a key\n  hint: leave out --insecure; its key is found, or given by --key-file or GT_KEY"
    )]
    Keyed { address: String },

    #[error(
        "the server at {address} refuses the key\n  hint: the key of that very server is needed (its --key-file, or GT_KEY)"
    )]
    WrongKey { address: String },

    #[error(
        "no key for the server at {address} was found{looked}\n  hint: on the server's own machine and account it is found by itself, if XDG_RUNTIME_DIR and TMPDIR are the server's; elsewhere give --key-file or GT_KEY"
    )]
    NoKey { address: String, looked: String },

    #[error(
        "the address {address} is in use{by}\n  hint: choose another port, or stop the other server"
    )]
    InUse { address: String, by: String },

    #[error(
        "binding to {address}, which other machines can reach, needs a key\n  hint: give --key-file FILE or set GT_KEY (make one with `gt key`), or --insecure to let anybody in"
    )]
    KeyRequired { address: String },

    #[error("'{given}' is not a GT key\n  hint: a key begins with gt1- and is made by `gt key`")]
    BadKey { given: String },

    #[error(
        "this key is for {}, a key for {} is needed{}",
        with_article(given),
        with_article(wanted),
        how_to_make(wanted)
    )]
    WrongRole { given: &'static str, wanted: &'static str },

    #[error(
        "the {what} is '{given}', expected 1 to 64 of the characters a-z, A-Z, 0-9, '.', '_', '-', '@', '+'"
    )]
    BadName { what: &'static str, given: String },

    #[error(
        "the server at {address} has no file descriptors left for another connection\n  hint: try again later, or have its limit raised (ulimit -n)"
    )]
    Full { address: String },

    #[error(
        "{what} needs {needed} file descriptors, and this process has {left} left (its limit is {limit})\n  hint: close files that are not needed, or raise the limit (ulimit -n)"
    )]
    Descriptors { what: &'static str, needed: usize, left: usize, limit: u64 },

    #[error("a message's parts do not fit: {0}")]
    Parts(String),

    #[error("the connection to {address} was lost: {reason}")]
    Lost { address: String, reason: String },

    /// Like [`NetError::Lost`], reported by the server.
    #[error("the connection to {address} was lost: {reason}")]
    TurnedAway { address: String, reason: String },

    /// The server has said goodbye to a client.
    #[error("the server at {address} ended the session: {reason}")]
    Ended { address: String, reason: String },

    /// A worker lacks a resource that it needs to start.
    #[error("{reason}")]
    Start { reason: String },

    #[error("{action} {path}: {error}")]
    File { action: &'static str, path: String, error: std::io::Error },

    #[error(
        "making {path}, the folder for keys and sockets: {error}\n  hint: set XDG_RUNTIME_DIR or TMPDIR to a folder in which this user may write"
    )]
    NoFolder { path: String, error: std::io::Error },

    #[error("{path} is not safe: {reason}")]
    UnsafePath { path: String, reason: String },

    #[error("shared memory: {0}")]
    SharedMemory(String),

    #[error("a frame is damaged: {0}")]
    Decode(#[from] crate::codec::DecodeError),

    #[error(
        "listening at {address}: {error}\n  hint: does the host, or the folder, exist on this machine?"
    )]
    Listening { address: String, error: zmq::Error },

    #[error("{action}: {error}")]
    Socket { action: &'static str, error: zmq::Error },
}

fn with_article(role: &str) -> String {
    let article = if role.starts_with(['a', 'o']) { "an" } else { "a" };
    format!("{article} {role}")
}

/// Returns the hint how a key of a role is made, where users may not know.
fn how_to_make(role: &str) -> &'static str {
    match role {
        "operator" => {
            "\n  hint: `gt key --role operator --of-file FILE` makes one from the cluster's key"
        }
        _ => "",
    }
}
