//! Opens sessions on servers.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use gt_client::{ClientError, Driver, Result, Session};
use gt_ir::SessionOrigin;
use gt_ir::message::{Attach, ClientHello};
use gt_ir::stored::StoredValues;
use gt_net::published::ServerAddress;
use gt_net::wake::Wake;
use gt_net::{NetError, shm};
use gt_recording::RecordedPlace;

use super::super::resume::{ClientLink, ServerRoute};
use super::super::{CONNECT_LIMIT, blocks::SharedBlocks, fork, handshake_within};
use super::{ClientShared, ClientState, NetworkDriver, lock};
use crate::drivers::answers::SessionAnswers;
use crate::drivers::issues::Issues;
use crate::drivers::origin;
use crate::drivers::run_ahead::RunAhead;
use crate::drivers::undone::UndoneSteps;

/// The time limit for attaching to a session: the server waits for a while for one whose client
/// may be gone.
const ATTACH_LIMIT: Duration = Duration::from_secs(15);

/// Connects to a server and opens a session there.
///
/// # Errors
/// The address is not valid or not reachable, the key is missing or wrong, or the server is of
/// another version.
pub fn connect(address: &str, key_file: Option<&Path>, insecure: bool) -> Result<Session> {
    connect_as(origin(None), address, key_file, insecure)
}

/// As [`connect`]; the session has the name of `origin`.
///
/// # Errors
/// As [`connect`].
pub fn connect_as(
    origin: SessionOrigin,
    address: &str,
    key_file: Option<&Path>,
    insecure: bool,
) -> Result<Session> {
    let driver = driver(origin, address, key_file, insecure)?;
    // A file of this name may be another one on the workers' machines.
    let read = |_: &StoredValues| None;
    Ok(Session::new(gt_recording::record_if_asked(driver, RecordedPlace::of_server, read)?))
}

/// The driver of such a session, which is not recorded.
///
/// # Errors
/// As [`connect`].
pub fn driver(
    origin: SessionOrigin,
    address: &str,
    key_file: Option<&Path>,
    insecure: bool,
) -> Result<Arc<dyn Driver>> {
    open(origin, address, key_file, insecure, None).map(|(driver, _)| driver)
}

/// Connects to a server and attaches to a named session there. Returns also whether it existed.
///
/// # Errors
/// As [`connect`]; there is no session of this name, or another client has it.
pub fn attach(
    origin: SessionOrigin,
    address: &str,
    key_file: Option<&Path>,
    insecure: bool,
    attach: Attach,
) -> Result<(Session, bool)> {
    let (driver, is_attached) = open(origin, address, key_file, insecure, Some(attach))?;
    if gt_recording::is_asked() {
        tracing::warn!(
            "this session is not recorded: it outlives its program, and a recording begins with a session's first instruction"
        );
    }
    Ok((Session::new(driver), is_attached))
}

/// Returns a random token for a session that is detached as private.
pub fn new_token() -> u128 {
    gt_net::resume::token()
}

fn open(
    origin: SessionOrigin,
    address: &str,
    key_file: Option<&Path>,
    insecure: bool,
    attach: Option<Attach>,
) -> Result<(Arc<dyn Driver>, bool)> {
    fork::watch();
    if std::env::var_os("GT_AUTO_SHARD").is_some() {
        tracing::warn!(
            "GT_AUTO_SHARD has no effect here: the server at {address} was started with its own"
        );
    }
    let is_named = attach.is_some();
    let failed = |error: NetError| match error {
        // Of a session that was asked for, the reason says all.
        NetError::TurnedAway { reason, .. } if is_named => {
            ClientError::Connection(format!("attach: {reason}"))
        }
        error => ClientError::Connection(error.to_string()),
    };
    let address = ServerAddress::parse(address).map_err(failed)?;
    let way = ServerRoute { address, key_file: key_file.map(Path::to_path_buf), insecure, origin };
    let key = way.key().map_err(failed)?;
    let hello = ClientHello { attach: attach.map(Box::new), ..way.hello(key.as_ref()) };
    let wake = Wake::new().map_err(|error| {
        ClientError::Connection(format!("no wakeup for the connection: {error}"))
    })?;
    let limit = if is_named { ATTACH_LIMIT } else { CONNECT_LIMIT };
    let (link, welcome) =
        handshake_within(limit, &way.address, key.as_ref(), insecure, hello).map_err(failed)?;
    let is_attached = welcome.is_attached;
    let address = way.address.to_string();
    let machine = shm::machine_token();
    let shared = Arc::new(ClientShared {
        state: Mutex::new(ClientState {
            link: ClientLink::new(way, link, &welcome),
            answers: SessionAnswers::default(),
            blocks: SharedBlocks::default(),
            // A session that continues without this process must not need its memory.
            shares_memory: !is_named && !machine.is_empty() && machine == welcome.machine,
            ended: None,
            events: Vec::new(),
            events_since: Duration::ZERO,
        }),
        address,
        name: welcome.name,
        data_roots: welcome.data_roots,
        numbers: welcome.numbers,
        contenders: AtomicUsize::new(0),
        wake,
        ahead: RunAhead::new(welcome.window),
        session: Mutex::new(None),
        closing: AtomicBool::new(false),
        idle: AtomicBool::new(false),
        flusher: Mutex::new(None),
        process: std::process::id(),
        started: Instant::now(),
        issues: Issues::default(),
        undone: UndoneSteps::default(),
        lister: OnceLock::new(),
    });
    let flusher = Arc::clone(&shared);
    let thread = thread::Builder::new()
        .name("gt-flush".into())
        .spawn(move || flusher.flush_now_and_then())
        .map_err(|error| ClientError::Connection(format!("no thread could be started: {error}")))?;
    *lock(&shared.flusher) = Some(thread);
    Ok((Arc::new(NetworkDriver { shared }), is_attached))
}
