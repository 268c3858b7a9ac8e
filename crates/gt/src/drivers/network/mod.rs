//! The network drivers: dispatcher, workers and clients in separate processes, connected by
//! encrypted links.
//!
//! - [`server`]: the dispatcher's process; [`worker`]: a worker's process; [`client`]: a session.
//! - [`neighbours`]: a worker's links to the other workers.
//! - [`resume`]: a client's link, which outlives its connection.
//! - [`fork`]: fork safety of clients.
//! - [`journal`]: the journal from which a process resumes after a restart.
//! - [`blocks`]: tensor data in shared memory, for links within one machine.

mod blocks;
pub mod client;
mod fork;
mod journal;
mod neighbours;
mod resume;
pub mod server;
pub mod worker;

use std::path::Path;
use std::time::Duration;

use gt_ir::message::{Hello, Message, Role, Welcome};
use gt_net::address::Address;
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::{NetError, codec, keyring, process, shm};

/// The time limit for connecting.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Connects to a server as `role`, with the key of [`find_key`].
pub(super) fn join(
    address: &Address,
    role: Role,
    name: &str,
    key_file: Option<&Path>,
    insecure: bool,
) -> Result<(DealerLink, Welcome), NetError> {
    let key = find_key(address, key_file, insecure)?;
    handshake(address, key.as_ref(), insecure, introduction(role, name, key.as_ref()))
}

/// Returns the key for a server: `key_file` or `GT_KEY` if given, or else the key that a server of
/// this user on this machine has generated; none if `insecure`.
fn find_key(
    address: &Address,
    key_file: Option<&Path>,
    insecure: bool,
) -> Result<Option<Key>, NetError> {
    match keyring::given(key_file)? {
        _ if insecure => Ok(None),
        Some(key) => Ok(Some(key)),
        None if address.is_local() => keyring::find(address),
        None => Ok(None),
    }
}

/// Returns the hello of this process, with the user whose key it has. A worker adds its endpoint.
pub(super) fn introduction(role: Role, name: &str, key: Option<&Key>) -> Hello {
    let machine = shm::machine_token();
    let badge = key.and_then(Key::badge).cloned().map(Box::new);
    Hello { machine, badge, process: process::own(), ..Hello::new(role, name) }
}

/// Connects with a key, and completes the handshake.
fn handshake(
    address: &Address,
    key: Option<&Key>,
    insecure: bool,
    hello: Hello,
) -> Result<(DealerLink, Welcome), NetError> {
    handshake_within(CONNECT_LIMIT, address, key, insecure, hello)
}

/// Like [`handshake`], with a time limit.
fn handshake_within(
    limit: Duration,
    address: &Address,
    key: Option<&Key>,
    insecure: bool,
    hello: Hello,
) -> Result<(DealerLink, Welcome), NetError> {
    let mut link = DealerLink::connect(address, hello.role, key, limit)
        .map_err(|error| although_insecure(error, insecure))?;
    link.send(&codec::encode(&Message::Hello(hello)))?;
    let lost = |reason: String| NetError::Lost { address: address.to_string(), reason };
    let frames = link.receive(limit, Wakeup::None)?;
    let frames = frames.ok_or_else(|| lost("it does not answer".into()))?;
    match codec::decode(&frames)? {
        Message::Welcome(welcome) => Ok((link, welcome)),
        Message::Goodbye { reason } => {
            Err(NetError::TurnedAway { address: address.to_string(), reason })
        }
        _ => Err(lost("it answers something unexpected".into())),
    }
}

/// Adapts an error to `insecure`: the user chose to use no key, so no key is missing.
fn although_insecure(error: NetError, insecure: bool) -> NetError {
    match error {
        NetError::NoKey { address, .. } if insecure => NetError::Keyed { address },
        other => other,
    }
}
