//! Dispatcher, workers and clients as processes of their own, joined by encrypted links.
//!
//! - [`server`]: a dispatcher that listens at an address.
//! - [`worker`]: a worker that serves it.
//! - [`client`]: a session on it.
//! - [`blocks`]: tensor data by shared memory, where both ends are on one machine.

mod blocks;
pub mod client;
pub mod server;
pub mod worker;

use std::path::Path;
use std::time::Duration;

use gt_ir::message::{Hello, Message, PROTOCOL_VERSION, Role, Welcome, schema};
use gt_net::address::Address;
use gt_net::dealer::DealerLink;
use gt_net::{NetError, codec, keyring, shm};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Connects to a server as `role` and introduces itself. `key_file` or `GT_KEY` if given, else
/// the key that the server made, if it is this user's on this machine; `insecure` uses none.
fn join(
    address: &Address,
    role: Role,
    name: &str,
    key_file: Option<&Path>,
    insecure: bool,
) -> Result<(DealerLink, Welcome), NetError> {
    let key = match keyring::given(key_file)? {
        _ if insecure => None,
        Some(key) => Some(key),
        None if address.is_local() => keyring::find(address)?,
        None => None,
    };
    let mut link = DealerLink::connect(address, role, key.as_ref(), CONNECT_LIMIT)
        .map_err(|error| without_key(error, key.is_none() && !insecure))?;
    let hello = Message::Hello(Hello {
        version: PROTOCOL_VERSION,
        schema: schema(),
        role,
        name: name.to_string(),
        machine: shm::machine_token(),
    });
    link.send(&codec::encode(&hello))?;
    let lost = |reason: String| NetError::Lost { address: address.to_string(), reason };
    let frames = link.receive(CONNECT_LIMIT, None)?;
    let frames = frames.ok_or_else(|| lost("it does not answer".into()))?;
    match codec::decode(&frames)? {
        Message::Welcome(welcome) => Ok((link, welcome)),
        Message::Goodbye { reason } => Err(lost(reason)),
        _ => Err(lost("it answers something unexpected".into())),
    }
}

/// Where a server hung up on a peer that showed no key, the key is what is missing.
fn without_key(error: NetError, keyless: bool) -> NetError {
    match error {
        NetError::NotGt { address } if keyless => NetError::NoKey { address },
        other => other,
    }
}
