//! An operator of a server: the requests that change a cluster, one at a time.

use std::path::Path;
use std::time::{Duration, Instant};

use gt_ir::message::{Frame, Goodbye, OperatorHello, OperatorToServer, Role, ServerToOperator};
use gt_ir::{RequestId, SessionOrigin};
use gt_net::dealer::{DealerLink, Wakeup};
use gt_net::keys::Key;
use gt_net::published::ServerAddress;
use gt_net::{NetError, codec};

/// The time limit for the server's answer to a request that takes none.
pub const ANSWER: Duration = Duration::from_secs(5);

/// How long a wait lasts before `interrupt` is asked again.
const SLICE: Duration = Duration::from_millis(100);

/// What an operator's request asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperatorRequest {
    /// See [`OperatorToServer::Drain`].
    Drain { worker: String, within: Duration, force: bool },
    /// See [`OperatorToServer::EndSession`].
    EndSession { user: Option<String>, name: String },
    /// See [`OperatorToServer::Weigh`].
    Weigh { user: Option<String>, name: Option<String>, weight: Option<u32> },
    /// See [`OperatorToServer::Pause`].
    Pause { user: Option<String>, name: Option<String>, is_paused: bool },
}

impl OperatorRequest {
    /// Returns the message, and the time limit for its answer.
    fn message(self) -> (OperatorToServer, Duration) {
        let request = RequestId(0);
        match self {
            OperatorRequest::Drain { worker, within, force } => {
                let limit = within.saturating_add(ANSWER);
                (OperatorToServer::Drain { request, worker, within, force }, limit)
            }
            OperatorRequest::EndSession { user, name } => {
                (OperatorToServer::EndSession { request, user, name }, ANSWER)
            }
            OperatorRequest::Weigh { user, name, weight } => {
                (OperatorToServer::Weigh { request, user, name, weight }, ANSWER)
            }
            OperatorRequest::Pause { user, name, is_paused } => {
                (OperatorToServer::Pause { request, user, name, is_paused }, ANSWER)
            }
        }
    }
}

/// Why an operation was not done.
pub enum OperationError {
    /// The server cannot be reached, or does not answer.
    Link(NetError),
    /// The server refuses it.
    Refused(String),
    /// The caller has interrupted the wait; the server may still do it.
    Interrupted,
}

impl From<NetError> for OperationError {
    fn from(error: NetError) -> OperationError {
        OperationError::Link(error)
    }
}

/// Returns the name of this process as an operator: its account, machine and number.
pub fn name() -> String {
    let SessionOrigin { user, host, .. } = super::origin(None);
    format!("{user}@{host}, process {}", std::process::id())
}

/// Checks that the key for the server at an address is one for operators, without connecting.
/// Returns the user on whose sessions alone it operates, if it is a user's.
///
/// # Errors
/// It is for another role, or cannot be read.
pub fn check_key(
    address: &str,
    key_file: Option<&Path>,
    insecure: bool,
) -> Result<Option<String>, NetError> {
    let address = ServerAddress::parse(address)?;
    let Some(key) = super::network::find_key(&address, key_file, insecure)? else {
        return Ok(None);
    };
    key.link(Role::Operator)?;
    Ok(key.badge().map(|badge| badge.user.clone()))
}

/// Has the server at an address do something. Returns what was done, for people. The server's log
/// says that the operator of this name has asked for it.
///
/// # Errors
/// The server is not reachable, takes another key, refuses, or does not answer in time.
pub fn operate(
    address: &str,
    key_file: Option<&Path>,
    insecure: bool,
    name: String,
    operation: OperatorRequest,
    interrupt: &mut dyn FnMut() -> bool,
) -> Result<String, OperationError> {
    let address = ServerAddress::parse(address)?;
    let key = super::network::find_key(&address, key_file, insecure)?;
    let badge = key.as_ref().and_then(Key::badge).cloned().map(Box::new);
    let hello = OperatorHello { name, badge };
    let (mut link, _) = super::network::handshake(&address, key.as_ref(), insecure, hello)?;
    let (message, limit) = operation.message();
    link.send(&codec::encode(&message))?;
    answer(&mut link, &address, limit, interrupt)
}

fn answer(
    link: &mut DealerLink,
    address: &ServerAddress,
    limit: Duration,
    interrupt: &mut dyn FnMut() -> bool,
) -> Result<String, OperationError> {
    let lost = |reason| NetError::Lost { address: address.to_string(), reason };
    let start = Instant::now();
    while start.elapsed() < limit {
        if interrupt() {
            return Err(OperationError::Interrupted);
        }
        let Some(frames) = link.receive(SLICE, Wakeup::default())? else { continue };
        let decoded = codec::decode_frame::<ServerToOperator>(&frames);
        match decoded.map_err(NetError::from)? {
            Frame::Message(ServerToOperator::Done { result, .. }) => {
                return result.map_err(OperationError::Refused);
            }
            Frame::Goodbye(Goodbye { reason }) => return Err(lost(reason).into()),
        }
    }
    Err(lost(format!("it has not answered within {} s", limit.as_secs())).into())
}
