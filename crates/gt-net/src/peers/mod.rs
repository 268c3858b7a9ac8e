//! Links between workers, on which pieces of tensors are sent directly.
//!
//! Every worker listens. A pair of workers has one link, in both directions: the first that has
//! something to send opens it, and the other sends on it, too. (If both begin at the same moment there
//! are two.) All workers of a cluster have the same key pair, which proves to each end that the other
//! is a worker.

mod rate;
mod routes;
mod sockets;

pub use rate::ConnectionCounters;
pub use routes::FailedLink;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::WorkerId;
use gt_ir::message::Role;
use rustc_hash::FxHashMap;
use zmq::{Context, PollEvents, Socket, SocketEvent};

use crate::address::Address;
use crate::dealer::Wakeup;
use crate::descriptors::{self, Refusals, during};
use crate::error::NetError;
use crate::gatekeeper::Gatekeeper;
use crate::keys::Key;
use crate::monitor;
use crate::parts::{self, Assembly};
use crate::server::{LinkId, send_part, set_option, to_bytes};

use routes::{DialState, Route, RouteKind, dialed_link, is_dialed};

/// The time limit for the connection to another worker's machine, which answers by itself: two of
/// the packets that ask for it can be lost.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// The time limit of the handshake after that: the other worker may have to wait for a processor for
/// long. If it has died, the server says so earlier.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(60);

/// The interval at which links are checked for failures.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// The number of descriptors that listening needs: for the context, the sockets, the address and
/// one link.
const DESCRIPTORS: usize = 14;

/// A worker's links with all other workers. Owned by one thread.
pub struct PeerLinks {
    /// The links that other workers have opened.
    accepting: Socket,
    /// The links that this worker has opened, and their events.
    dialing: Socket,
    monitor: Socket,
    /// The link to each worker.
    routes: BTreeMap<WorkerId, Route>,
    addresses: BTreeMap<WorkerId, String>,
    endpoint: String,
    /// How many links were opened, and whether one of them waits for the other worker.
    dialed: u64,
    is_dialing: bool,
    /// Whether a link has failed since [`PeerLinks::failed`] was called.
    has_failed: bool,
    /// Messages that are still arriving.
    open: FxHashMap<LinkId, Assembly>,
    refusals: Refusals,
    /// When the links were last checked.
    checked: Instant,
    _gatekeeper: Option<Gatekeeper>,
}

/// An event on a link.
pub enum PeerEvent {
    Message { link: LinkId, frames: Vec<Bytes> },
    Disconnected(LinkId),
}

impl PeerLinks {
    /// Listens for other workers on this machine's address towards the common server, or on `host`.
    ///
    /// # Errors
    /// The key does not grant the worker role, or the host cannot be bound.
    pub fn bind(
        server: &Address,
        host: Option<&str>,
        key: Option<&Key>,
    ) -> Result<PeerLinks, NetError> {
        let pair = key.map(|key| key.link(Role::Worker)).transpose()?.map(|link| link.own);
        descriptors::reserve("listening for other workers", DESCRIPTORS)?;
        let context = Context::try_new().map_err(during("opening a context"))?;
        let gatekeeper =
            pair.as_ref().map(|pair| Gatekeeper::for_workers(&context, pair.public)).transpose()?;
        let host = host.map_or_else(|| server.own_host(), str::to_string);
        let is_v6 = host.contains(':');
        let host = if is_v6 { format!("[{host}]") } else { host };
        let accepting = sockets::open(&context, pair.as_ref(), true, is_v6)?;
        let dialing = sockets::open(&context, pair.as_ref(), false, is_v6)?;
        let monitor = sockets::watch(&context, &dialing)?;
        accepting.bind(&format!("tcp://{host}:*")).map_err(|error| NetError::Listening {
            address: format!("{host} for other workers"),
            error,
        })?;
        let endpoint = accepting
            .get_last_endpoint()
            .map_err(during("listening for other workers"))?
            .map_err(|_| NetError::BadAddress { given: host })?;
        Ok(PeerLinks {
            accepting,
            dialing,
            monitor,
            routes: BTreeMap::new(),
            addresses: BTreeMap::new(),
            endpoint,
            dialed: 0,
            is_dialing: false,
            has_failed: false,
            open: FxHashMap::default(),
            refusals: Refusals::default(),
            checked: Instant::now(),
            _gatekeeper: gatekeeper,
        })
    }

    /// The endpoint at which other workers reach this one.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The endpoint at which a worker is to be reached, if it is registered.
    pub fn endpoint_of(&self, worker: WorkerId) -> Option<&str> {
        self.addresses.get(&worker).map(String::as_str)
    }

    /// The wakeup of a thread that waits for messages.
    pub fn wakeup(&self) -> Wakeup<'_> {
        Wakeup {
            sockets: [Some(&self.accepting), Some(&self.dialing)],
            monitor: self.is_dialing.then_some(&self.monitor),
            fd: None,
        }
    }

    /// Registers the endpoint of another worker.
    pub fn know(&mut self, worker: WorkerId, endpoint: String) {
        self.addresses.insert(worker, endpoint);
    }

    /// Notes that a link leads to a worker: it has sent a message on it. Messages to that worker take
    /// it, if there is no other.
    pub fn note_sender(&mut self, worker: WorkerId, link: &LinkId) {
        let has_route = self.routes.get(&worker).is_some_and(|route| {
            // A link that could not be opened does not matter if the other worker could.
            !matches!(route.kind, RouteKind::Failed { is_new: false, .. })
        });
        if !has_route && self.addresses.contains_key(&worker) && !is_dialed(link) {
            self.routes.insert(worker, Route { link: link.clone(), kind: RouteKind::Accepted });
        }
    }

    /// Removes a lost worker.
    pub fn forget(&mut self, worker: WorkerId) {
        self.addresses.remove(&worker);
        self.look();
        if let Some(Route { kind: RouteKind::Dialed { endpoint, .. }, .. }) =
            self.routes.remove(&worker)
        {
            // Fails if it has ended already.
            let _ = self.dialing.disconnect(&endpoint);
        }
    }

    /// Sends a message to another worker, queued until the link is open. Never blocks.
    ///
    /// # Errors
    /// The worker is not registered, or cannot be reached.
    pub fn send(&mut self, worker: WorkerId, frames: &[Bytes]) -> Result<(), NetError> {
        let Some(endpoint) = self.addresses.get(&worker).cloned() else {
            return Err(NetError::BadAddress { given: format!("worker {worker}") });
        };
        if !self.routes.contains_key(&worker) {
            let route = self.dial(endpoint.clone())?;
            self.routes.insert(worker, route);
        }
        let route = &self.routes[&worker];
        let socket = match route.kind {
            RouteKind::Accepted => &self.accepting,
            RouteKind::Dialed { .. } => &self.dialing,
            RouteKind::Failed { .. } => return Err(unreachable(&endpoint)),
        };
        // The id fails if the link has ended; the part then cannot fail.
        let put = |part: Bytes| {
            socket.send(&route.link[..], zmq::SNDMORE | zmq::DONTWAIT)?;
            send_part(socket, &part)
        };
        match parts::cut(frames, put) {
            // The queue is unbounded, so EAGAIN also means that the link has ended.
            Err(zmq::Error::EHOSTUNREACH | zmq::Error::EAGAIN) => {
                self.look();
                self.fail(worker);
                Err(unreachable(&endpoint))
            }
            result => result.map_err(during("sending to a worker")),
        }
    }

    /// Gives up the link to a worker.
    fn fail(&mut self, worker: WorkerId) {
        let Some(route) = self.routes.get_mut(&worker) else { return };
        if matches!(route.kind, RouteKind::Failed { .. }) {
            return;
        }
        let failed = RouteKind::Failed { is_new: true, was_open: route.is_open() };
        let before = std::mem::replace(&mut route.kind, failed);
        if let RouteKind::Dialed { endpoint, .. } = before {
            // Nothing that is queued may arrive later. Fails if the link has ended.
            let _ = self.dialing.disconnect(&endpoint);
        }
        self.has_failed = true;
    }

    /// Whether the link to a worker is open: what is sent on it leaves this process.
    pub fn is_open(&self, worker: WorkerId) -> bool {
        self.routes.get(&worker).is_some_and(Route::is_open)
    }

    /// Whether no link to a worker could be opened.
    pub fn is_unreachable(&self, worker: WorkerId) -> bool {
        let kind = self.routes.get(&worker).map(|route| &route.kind);
        matches!(kind, Some(RouteKind::Failed { was_open: false, .. }))
    }

    /// Whether [`PeerLinks::failed`] has something new to return.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    fn dial(&mut self, endpoint: String) -> Result<Route, NetError> {
        self.look();
        self.dialed += 1;
        self.is_dialing = true;
        let link = dialed_link(self.dialed);
        let socket = &mut self.dialing;
        socket
            .set_ipv6(endpoint.contains('['))
            .and_then(|()| set_option(socket, zmq_sys::ZMQ_CONNECT_ROUTING_ID as i32, &link))
            .and_then(|()| socket.connect(&endpoint))
            .map_err(during("connecting to a worker"))?;
        let (since, state) = (Instant::now(), DialState::Connecting);
        Ok(Route { link, kind: RouteKind::Dialed { endpoint, since, state } })
    }

    /// The links that have failed since the last call.
    pub fn failed(&mut self) -> Vec<FailedLink> {
        let is_due = self.checked.elapsed() >= CHECK_EVERY;
        if !self.is_dialing && !self.has_failed && !is_due {
            return Vec::new();
        }
        self.checked = Instant::now();
        self.look();
        self.is_dialing = false;
        let mut late = Vec::new();
        for (worker, route) in &self.routes {
            let RouteKind::Dialed { since, state, .. } = &route.kind else { continue };
            let limit = match state {
                DialState::Connecting => CONNECT_LIMIT,
                DialState::Connected(_) => HANDSHAKE_LIMIT,
                DialState::Open(_) => continue,
            };
            if since.elapsed() > limit {
                late.push(*worker);
            } else {
                self.is_dialing = true;
            }
        }
        late.into_iter().for_each(|worker| self.fail(worker));
        self.has_failed = false;
        let mut failed = Vec::new();
        for (worker, route) in &mut self.routes {
            if let RouteKind::Failed { is_new, was_open } = &mut route.kind
                && std::mem::take(is_new)
            {
                failed.push(FailedLink { worker: *worker, was_open: *was_open });
            }
        }
        failed
    }

    /// Updates the links that this worker has opened from the monitor's events.
    fn look(&mut self) {
        while matches!(self.monitor.poll(PollEvents::POLLIN, 0), Ok(1..)) {
            let Ok(frames) = self.monitor.recv_multipart(0) else { break };
            let [event, at] = &frames[..] else { continue };
            let Some((event, value)) = monitor::parse(event) else { continue };
            let of = self.routes.iter_mut().find_map(|(worker, route)| match &mut route.kind {
                RouteKind::Dialed { endpoint, state, .. } if endpoint.as_bytes() == at => {
                    Some((*worker, state))
                }
                _ => None,
            });
            let Some((worker, state)) = of else { continue };
            // An earlier link to the same endpoint may still have events.
            match (event, *state) {
                (SocketEvent::CONNECTED, DialState::Connecting) => {
                    *state = DialState::Connected(value);
                }
                (SocketEvent::HANDSHAKE_SUCCEEDED, DialState::Connected(connection)) => {
                    *state = DialState::Open(connection);
                }
                (SocketEvent::CLOSED, DialState::Connecting)
                | (
                    SocketEvent::HANDSHAKE_FAILED_AUTH
                    | SocketEvent::HANDSHAKE_FAILED_PROTOCOL
                    | SocketEvent::HANDSHAKE_FAILED_NO_DETAIL,
                    DialState::Connected(_),
                ) => self.fail(worker),
                (
                    SocketEvent::DISCONNECTED,
                    DialState::Connected(connection) | DialState::Open(connection),
                ) if connection == value => self.fail(worker),
                _ => {}
            }
        }
    }

    /// Returns a message for the log about links that were refused for lack of descriptors.
    pub fn refusals(&mut self) -> Option<String> {
        self.refusals.report()
    }

    /// Returns the next event, if any.
    pub fn try_receive(&mut self) -> Result<Option<PeerEvent>, NetError> {
        Ok(match self.receive_from(true)? {
            None => self.receive_from(false)?,
            event => event,
        })
    }

    /// Returns the next event on the links that others have opened, or on those of this worker.
    fn receive_from(&mut self, accepted: bool) -> Result<Option<PeerEvent>, NetError> {
        loop {
            let socket = if accepted { &self.accepting } else { &self.dialing };
            let events = socket.get_events().map_err(during("receiving"))?;
            if !events.contains(PollEvents::POLLIN) {
                return Ok(None);
            }
            let mut first = zmq::Message::new();
            match socket.recv(&mut first, zmq::DONTWAIT) {
                Ok(()) => {}
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => return Ok(None),
                Err(error) => return Err(NetError::Socket { action: "receiving", error }),
            }
            let link = first.to_vec();
            let mut part = zmq::Message::new();
            socket.recv(&mut part, 0).map_err(during("receiving"))?;
            if part.is_empty() {
                self.open.remove(&link);
                let lost = self.routes.iter().find(|(_, route)| route.link == link);
                if let Some(worker) = lost.map(|(worker, _)| *worker) {
                    self.look();
                    self.fail(worker);
                }
                return Ok(Some(PeerEvent::Disconnected(link)));
            }
            let mut assembly = self.open.remove(&link).unwrap_or_default();
            match assembly.take(to_bytes(part)) {
                Ok(Some(frames)) => return Ok(Some(PeerEvent::Message { link, frames })),
                Ok(None) => drop(self.open.insert(link, assembly)),
                // Unannounced parts are dropped, like messages that do not decode.
                Err(_) => {}
            }
        }
    }
}

impl Drop for PeerLinks {
    fn drop(&mut self) {
        monitor::stop(&mut self.dialing);
    }
}

fn unreachable(endpoint: &str) -> NetError {
    let reason = "the other worker cannot be reached".to_string();
    NetError::Lost { address: endpoint.to_string(), reason }
}
