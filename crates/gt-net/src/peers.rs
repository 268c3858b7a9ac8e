//! Links between workers, on which pieces of tensors are sent directly.
//!
//! Every worker listens. A link is one-way, from the sender of pieces to their receiver, and is
//! opened with the first piece. All workers of a cluster have the same key pair, which proves to
//! each end that the other is a worker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::WorkerId;
use gt_ir::message::Role;
use rustc_hash::FxHashMap;
use zmq::{Context, PollEvents, Socket, SocketEvent, SocketType};

use crate::address::Address;
use crate::dealer::Wakeup;
use crate::descriptors::{self, Refusals, during};
use crate::error::NetError;
use crate::gatekeeper::Gatekeeper;
use crate::keys::{Key, KeyPair};
use crate::monitor;
use crate::parts::{self, Assembly};
use crate::server::{LinkId, notify_of_lost_links, send_part, to_bytes};
use crate::{HEARTBEAT, SILENCE};

/// The time limit of the handshake with another worker.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The interval at which links are checked for failures.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// The number of descriptors that listening needs: for the context, the sockets, the address and
/// one link.
const DESCRIPTORS: usize = 12;

/// A worker's links with all other workers. Owned by one thread.
pub struct PeerLinks {
    context: Context,
    incoming: Socket,
    outgoing: BTreeMap<WorkerId, SendQueue>,
    addresses: BTreeMap<WorkerId, String>,
    endpoint: String,
    pair: Option<KeyPair>,
    monitors: u64,
    /// Messages that are still arriving.
    open: FxHashMap<LinkId, Assembly>,
    refusals: Refusals,
    /// When the links were last checked.
    checked: Instant,
    _gatekeeper: Option<Gatekeeper>,
}

struct SendQueue {
    socket: Socket,
    monitor: Socket,
    since: Instant,
    state: LinkState,
}

#[derive(Clone, Copy, PartialEq)]
enum LinkState {
    Connecting,
    Open,
    Failed,
}

/// An event on the incoming links.
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
            pair.map(|pair| Gatekeeper::for_workers(&context, pair.public)).transpose()?;
        let mut incoming =
            context.socket(SocketType::ROUTER).map_err(during("opening a socket"))?;
        let setup = || -> zmq::Result<()> {
            incoming.set_linger(0)?;
            incoming.set_maxmsgsize(parts::LONGEST)?;
            incoming.set_handshake_ivl(5_000)?;
            incoming.set_heartbeat_ivl(HEARTBEAT)?;
            incoming.set_heartbeat_timeout(SILENCE)?;
            incoming.set_rcvhwm(parts::UNDER_WAY)?;
            if let Some(pair) = &pair {
                incoming.set_curve_server(true)?;
                incoming.set_curve_secretkey(&pair.secret)?;
                incoming.set_zap_domain("gt")?;
            }
            Ok(())
        };
        setup().map_err(during("setting up the socket"))?;
        notify_of_lost_links(&mut incoming)?;
        let host = host.map_or_else(|| server.own_host(), str::to_string);
        let is_v6 = host.contains(':');
        let host = if is_v6 { format!("[{host}]") } else { host };
        incoming.set_ipv6(is_v6).map_err(during("setting up the socket"))?;
        incoming.bind(&format!("tcp://{host}:*")).map_err(|error| NetError::Listening {
            address: format!("{host} for other workers"),
            error,
        })?;
        let endpoint = incoming
            .get_last_endpoint()
            .map_err(during("listening for other workers"))?
            .map_err(|_| NetError::BadAddress { given: host })?;
        Ok(PeerLinks {
            context,
            incoming,
            outgoing: BTreeMap::new(),
            addresses: BTreeMap::new(),
            endpoint,
            pair,
            monitors: 0,
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

    /// The wakeup of a thread that waits for messages.
    pub fn wakeup(&self) -> Wakeup<'_> {
        Wakeup { socket: Some(&self.incoming), fd: None }
    }

    /// Registers the endpoint of another worker.
    pub fn know(&mut self, worker: WorkerId, endpoint: String) {
        self.addresses.insert(worker, endpoint);
    }

    /// Removes a lost worker.
    pub fn forget(&mut self, worker: WorkerId) {
        self.addresses.remove(&worker);
        self.outgoing.remove(&worker);
    }

    /// Sends a message to another worker, queued until the link is open. Never blocks.
    ///
    /// # Errors
    /// The worker is not registered, or cannot be reached.
    pub fn send(&mut self, worker: WorkerId, frames: &[Bytes]) -> Result<(), NetError> {
        let Some(endpoint) = self.addresses.get(&worker).cloned() else {
            return Err(NetError::BadAddress { given: format!("worker {worker}") });
        };
        if !self.outgoing.contains_key(&worker) {
            let link = self.open(&endpoint)?;
            self.outgoing.insert(worker, link);
        }
        let link = &self.outgoing[&worker];
        let lost = || {
            let reason = "the other worker cannot be reached".to_string();
            Err(NetError::Lost { address: endpoint.clone(), reason })
        };
        if link.state == LinkState::Failed {
            return lost();
        }
        match parts::cut(frames, |part| send_part(&link.socket, &part)) {
            // The queue is unbounded, so EAGAIN means that the link is gone.
            Err(zmq::Error::EAGAIN) => lost(),
            result => result.map_err(during("sending to a worker")),
        }
    }

    fn open(&mut self, endpoint: &str) -> Result<SendQueue, NetError> {
        let socket = self.context.socket(SocketType::DEALER).map_err(during("opening a socket"))?;
        self.monitors += 1;
        let watch = format!("inproc://monitor-{}", self.monitors);
        let setup = || -> zmq::Result<Socket> {
            socket.set_linger(0)?;
            socket.set_sndhwm(0)?;
            socket.set_handshake_ivl(5_000)?;
            socket.set_heartbeat_ivl(HEARTBEAT)?;
            socket.set_heartbeat_timeout(SILENCE)?;
            // Messages in flight on a lost link are lost, so the link is given up, not reconnected.
            socket.set_reconnect_ivl(-1)?;
            socket.set_ipv6(endpoint.contains('['))?;
            if let Some(pair) = &self.pair {
                socket.set_curve_serverkey(&pair.public)?;
                socket.set_curve_publickey(&pair.public)?;
                socket.set_curve_secretkey(&pair.secret)?;
            }
            socket.monitor(&watch, 0xFFFF)?;
            let monitor = self.context.socket(SocketType::PAIR)?;
            monitor.set_linger(0)?;
            monitor.connect(&watch)?;
            socket.connect(endpoint)?;
            Ok(monitor)
        };
        let monitor = setup().map_err(during("connecting to a worker"))?;
        Ok(SendQueue { socket, monitor, since: Instant::now(), state: LinkState::Connecting })
    }

    /// The workers whose links have failed since the last call.
    pub fn failed(&mut self) -> Vec<WorkerId> {
        let mut failed = Vec::new();
        if self.checked.elapsed() < CHECK_EVERY {
            return failed;
        }
        self.checked = Instant::now();
        for (worker, link) in &mut self.outgoing {
            let before = link.state;
            link.look();
            if link.state == LinkState::Failed && before != LinkState::Failed {
                failed.push(*worker);
            }
        }
        failed
    }

    /// Returns a message for the log about links that were refused for lack of descriptors.
    pub fn refusals(&mut self) -> Option<String> {
        self.refusals.report()
    }

    /// Returns the next event on incoming links, if any.
    pub fn try_receive(&mut self) -> Result<Option<PeerEvent>, NetError> {
        loop {
            let events = self.incoming.get_events().map_err(during("receiving"))?;
            if !events.contains(PollEvents::POLLIN) {
                return Ok(None);
            }
            let mut first = zmq::Message::new();
            match self.incoming.recv(&mut first, zmq::DONTWAIT) {
                Ok(()) => {}
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => return Ok(None),
                Err(error) => return Err(NetError::Socket { action: "receiving", error }),
            }
            let link = first.to_vec();
            let mut part = zmq::Message::new();
            self.incoming.recv(&mut part, 0).map_err(during("receiving"))?;
            if part.is_empty() {
                self.open.remove(&link);
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

impl Drop for SendQueue {
    fn drop(&mut self) {
        monitor::stop(&mut self.socket);
    }
}

impl SendQueue {
    /// Updates the state from the monitor's events.
    fn look(&mut self) {
        while matches!(self.monitor.poll(PollEvents::POLLIN, 0), Ok(1..)) {
            let Ok(frames) = self.monitor.recv_multipart(0) else { break };
            let Some((event, _)) = frames.first().and_then(|frame| monitor::parse(frame)) else {
                continue;
            };
            match event {
                SocketEvent::HANDSHAKE_SUCCEEDED => self.state = LinkState::Open,
                SocketEvent::HANDSHAKE_FAILED_AUTH
                | SocketEvent::HANDSHAKE_FAILED_PROTOCOL
                | SocketEvent::HANDSHAKE_FAILED_NO_DETAIL
                | SocketEvent::DISCONNECTED
                | SocketEvent::CLOSED => self.state = LinkState::Failed,
                _ => {}
            }
        }
        if self.state == LinkState::Connecting && self.since.elapsed() > CONNECT_LIMIT {
            self.state = LinkState::Failed;
        }
    }
}
