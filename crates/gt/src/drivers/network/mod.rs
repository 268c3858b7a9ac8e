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

use gt_ir::message::{Frame, Goodbye, Handshake, Hello, Welcome};
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::published::ServerAddress;
use gt_net::{NetError, codec, keyring};

/// The time limit for connecting.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Returns the key for a server: `key_file` or `GT_KEY` if given, or else the one beside its published
/// address, or the key that a server of this user on this machine has generated; none if `insecure`.
pub(super) fn find_key(
    server: &ServerAddress,
    key_file: Option<&Path>,
    insecure: bool,
) -> Result<Option<Key>, NetError> {
    let published = || server.key_file().map(|path| keyring::read(&path)).transpose();
    match keyring::given(key_file)? {
        _ if insecure => Ok(None),
        Some(key) => Ok(Some(key)),
        None => match (published()?, server.resolve()?) {
            (Some(key), _) => Ok(Some(key)),
            (None, address) if address.is_local() => keyring::find(&address),
            (None, _) => Ok(None),
        },
    }
}

/// Connects with a key, and completes the handshake of a role.
pub(super) fn handshake<H: Handshake>(
    server: &ServerAddress,
    key: Option<&Key>,
    insecure: bool,
    hello: H,
) -> Result<(DealerLink, H::Welcome), NetError> {
    handshake_within(CONNECT_LIMIT, server, key, insecure, hello)
}

/// Like [`handshake`], with a time limit.
fn handshake_within<H: Handshake>(
    limit: Duration,
    server: &ServerAddress,
    key: Option<&Key>,
    insecure: bool,
    hello: H,
) -> Result<(DealerLink, H::Welcome), NetError> {
    let address = server.resolve()?;
    let mut link = DealerLink::connect(&address, H::ROLE, key, limit)
        .map_err(|error| although_insecure(error, insecure))?;
    link.send(&codec::encode::<Hello>(&hello.into()))?;
    let lost =
        |reason: &str| NetError::Lost { address: address.to_string(), reason: reason.into() };
    let frames = link.receive(limit, Wakeup::default())?;
    let frames = frames.ok_or_else(|| lost("it does not answer"))?;
    match codec::decode_frame::<Welcome>(&frames)? {
        Frame::Message(welcome) => {
            let unexpected = |_| lost("it welcomes a peer of another role");
            Ok((link, welcome.try_into().map_err(unexpected)?))
        }
        Frame::Goodbye(Goodbye { reason }) => {
            Err(NetError::TurnedAway { address: address.to_string(), reason })
        }
    }
}

/// Adapts an error to `insecure`: the user chose to use no key, so no key is missing.
fn although_insecure(error: NetError, insecure: bool) -> NetError {
    match error {
        NetError::NoKey { address, .. } if insecure => NetError::Keyed { address },
        other => other,
    }
}
