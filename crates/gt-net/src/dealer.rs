//! A peer's end of its link to a server: a ZeroMQ DEALER socket.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gt_ir::message::Role;
use zmq::{Context, PollEvents, Socket, SocketEvent, SocketType};

use crate::address::Address;
use crate::descriptors::{self, during};
use crate::error::NetError;
use crate::keyring;
use crate::keys::Key;
use crate::monitor;
use crate::parts::{self, Assembly};
use crate::probe::{Speaks, probe};
use crate::server::{send_part, to_bytes};
use crate::{HEARTBEAT, SILENCE};

/// How long a peer polls for the next message before it sleeps. Most answers arrive sooner, and
/// waking a processor takes as long as a round trip through three processes.
const LOOK: Duration = Duration::from_micros(200);

/// The shortest time for which a socket can sleep.
const LEAST: Duration = Duration::from_millis(1);

/// The number of descriptors that a link needs: for the context, the socket, its monitor, the
/// connection, and name resolution.
const DESCRIPTORS: usize = 12;

/// The value of a failed handshake whose ends have different mechanisms (`zmq.h`).
const OTHER_MECHANISM: u32 = 0x1100_0001;

/// A link to a server. One thread at a time may use it.
pub struct DealerLink {
    socket: Socket,
    /// Receives the connection's events.
    monitor: Socket,
    address: Address,
    /// A message that is still arriving.
    open: Assembly,
    lost: Option<String>,
    /// Whether the last wait received nothing: then polling does not pay.
    quiet: bool,
}

/// Additional events that end a wait for messages.
#[derive(Clone, Copy, Default)]
pub struct Wakeup<'a> {
    pub fd: Option<RawFd>,
    pub sockets: [Option<&'a Socket>; 2],
    /// A socket's monitor.
    pub monitor: Option<&'a Socket>,
}

impl Wakeup<'_> {
    /// Whether a socket is readable; a descriptor is only checked by the poll itself.
    fn is_ready(&self) -> bool {
        let has_events = |socket: &&Socket| {
            socket.get_events().is_ok_and(|events| events.contains(PollEvents::POLLIN))
        };
        self.sockets.iter().flatten().any(has_events)
    }
}

/// A change in a connection's state.
enum Fate {
    Open,
    Refused,
    WrongKey,
    /// The listener speaks another protocol, or ZeroMQ with another security mechanism.
    NotGt {
        is_zeromq: bool,
    },
    Lost,
}

impl Drop for DealerLink {
    fn drop(&mut self) {
        monitor::stop(&mut self.socket);
    }
}

impl DealerLink {
    /// Connects, and waits until the handshake is complete.
    ///
    /// # Errors
    /// No process listens, the key is wrong, the listener is not a GT server, or the handshake
    /// takes longer than `limit`.
    pub fn connect(
        address: &Address,
        role: Role,
        key: Option<&Key>,
        limit: Duration,
    ) -> Result<DealerLink, NetError> {
        descriptors::reserve("a connection", DESCRIPTORS)?;
        address.check_host()?;
        let context = Context::try_new().map_err(during("opening a context"))?;
        let socket = context.socket(SocketType::DEALER).map_err(during("opening a socket"))?;
        let setup = || -> zmq::Result<()> {
            socket.set_linger(500)?;
            socket.set_maxmsgsize(parts::LONGEST)?;
            socket.set_handshake_ivl(i32::try_from(limit.as_millis()).unwrap_or(5_000))?;
            socket.set_heartbeat_ivl(HEARTBEAT)?;
            socket.set_heartbeat_timeout(SILENCE)?;
            socket.set_immediate(true)?;
            socket.set_ipv6(address.is_v6())?;
            socket.set_sndhwm(parts::UNDER_WAY)?;
            socket.set_rcvhwm(parts::UNDER_WAY)?;
            // A client resumes by its token, on a new socket: ZeroMQ must not reconnect.
            socket.set_reconnect_ivl(-1)
        };
        setup().map_err(during("setting up the socket"))?;
        if let Some(key) = key {
            let link = key.link(role)?;
            let encrypt = || -> zmq::Result<()> {
                socket.set_curve_serverkey(&link.server)?;
                socket.set_curve_publickey(&link.own.public)?;
                socket.set_curve_secretkey(&link.own.secret)
            };
            encrypt().map_err(during("encrypting the socket"))?;
        }
        const MONITOR: &str = "inproc://monitor";
        socket.monitor(MONITOR, 0xFFFF).map_err(during("watching the socket"))?;
        let monitor = context.socket(SocketType::PAIR).map_err(during("watching the socket"))?;
        monitor.set_linger(0).map_err(during("watching the socket"))?;
        monitor.connect(MONITOR).map_err(during("watching the socket"))?;
        socket
            .connect(&address.to_connect())
            .map_err(|_| NetError::BadAddress { given: address.to_string() })?;
        let (address, open) = (address.clone(), Assembly::default());
        let mut link = DealerLink { socket, monitor, address, open, lost: None, quiet: false };
        link.await_handshake(key.is_some(), limit)?;
        Ok(link)
    }

    /// The error of a failed handshake, by probing what protocol the listener speaks.
    fn turned_away(&self, keyed: bool, is_other_zeromq: bool) -> NetError {
        let address = self.address.to_string();
        match (probe(&self.address), keyed) {
            (Speaks::Full, _) => NetError::Full { address },
            // Another mechanism a moment ago means that the server had no free descriptor.
            (Speaks::Keyed, true) | (Speaks::Open, false) if is_other_zeromq => {
                NetError::Full { address }
            }
            (Speaks::Keyed, true) => NetError::WrongKey { address },
            (Speaks::Keyed, false) => {
                NetError::NoKey { address, looked: keyring::looked_for(&self.address) }
            }
            (Speaks::Open, true) => NetError::Keyless { address },
            (Speaks::Open, false) | (Speaks::SomethingElse, _) => NetError::NotGt { address },
        }
    }

    fn await_handshake(&mut self, keyed: bool, limit: Duration) -> Result<(), NetError> {
        let text = self.address.to_string();
        let unreachable = || NetError::Unreachable {
            address: text.clone(),
            option: self.address.server_option(),
        };
        let until = Instant::now() + limit;
        let mut connected = false;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(if connected { self.turned_away(keyed, false) } else { unreachable() });
            }
            let ready = self.monitor.poll(PollEvents::POLLIN, left.as_millis() as i64 + 1);
            if !matches!(ready, Ok(1..)) {
                continue;
            }
            match self.fate(&mut connected)? {
                Some(Fate::Open) => return Ok(()),
                Some(Fate::Refused) => return Err(unreachable()),
                Some(Fate::WrongKey) => return Err(NetError::WrongKey { address: text }),
                // A server with another key cannot decrypt the handshake, and just closes the
                // connection.
                Some(Fate::Lost) => return Err(self.turned_away(keyed, false)),
                Some(Fate::NotGt { is_zeromq }) => {
                    return Err(self.turned_away(keyed, is_zeromq));
                }
                None => {}
            }
        }
    }

    /// The next event of the monitor.
    fn fate(&self, connected: &mut bool) -> Result<Option<Fate>, NetError> {
        let frames = self.monitor.recv_multipart(0).map_err(during("watching the socket"))?;
        let Some((event, value)) = frames.first().and_then(|frame| monitor::parse(frame)) else {
            return Ok(None);
        };
        Ok(match event {
            SocketEvent::CONNECTED => {
                *connected = true;
                None
            }
            SocketEvent::HANDSHAKE_SUCCEEDED => Some(Fate::Open),
            SocketEvent::HANDSHAKE_FAILED_AUTH => Some(Fate::WrongKey),
            SocketEvent::HANDSHAKE_FAILED_PROTOCOL => {
                Some(Fate::NotGt { is_zeromq: value == OTHER_MECHANISM })
            }
            SocketEvent::HANDSHAKE_FAILED_NO_DETAIL => Some(Fate::Lost),
            SocketEvent::CLOSED | SocketEvent::CONNECT_RETRIED if !*connected => {
                Some(Fate::Refused)
            }
            SocketEvent::DISCONNECTED => Some(Fate::Lost),
            _ => None,
        })
    }

    /// Sends a message. Blocks only while many are queued for the server.
    pub fn send(&mut self, frames: &[Bytes]) -> Result<(), NetError> {
        parts::cut(frames, |part| self.send_part(&part))
    }

    fn send_part(&mut self, part: &Bytes) -> Result<(), NetError> {
        loop {
            self.check()?;
            match self.socket.poll(PollEvents::POLLOUT, 100) {
                Ok(1..) => match send_part(&self.socket, part) {
                    // The connection was lost between the poll and the send.
                    Err(zmq::Error::EAGAIN) => {}
                    result => return result.map_err(during("sending")),
                },
                Ok(_) | Err(zmq::Error::EINTR) => {}
                Err(error) => return Err(NetError::Socket { action: "sending", error }),
            }
        }
    }

    /// Returns the next message, waiting at most `limit`, or until `wake` is ready.
    pub fn receive(
        &mut self,
        limit: Duration,
        wake: Wakeup,
    ) -> Result<Option<Vec<Bytes>>, NetError> {
        if let Some(frames) = self.take()? {
            return Ok(Some(frames));
        }
        if limit.is_zero() {
            self.check()?;
            return self.take();
        }
        let is_short = limit < LEAST;
        let until = Instant::now() + if is_short { limit } else { LOOK };
        // A worker that waits while its device computes leaves the processor to that.
        let computes = wake.fd.is_some() && wake.sockets[0].is_some();
        while (is_short || !self.quiet && !computes) && Instant::now() < until {
            if let Some(frames) = self.take()? {
                return Ok(Some(frames));
            }
            if wake.is_ready() {
                return Ok(None);
            }
            std::thread::yield_now();
        }
        if is_short {
            self.check()?;
            return self.take();
        }
        let until = Instant::now().checked_add(limit);
        loop {
            let left = until.map_or(limit, |until| until.saturating_duration_since(Instant::now()));
            self.poll(left, wake)?;
            let found = self.take()?;
            let is_woken = wake.is_ready();
            self.quiet = found.is_none() && !is_woken;
            if let Some(frames) = found {
                return Ok(Some(frames));
            }
            self.check()?;
            // A part of a long message is no reason to return, unless something else is awaited.
            if !self.open.is_open() || is_woken || left.is_zero() || wake.fd.is_some() {
                return Ok(None);
            }
        }
    }

    /// Waits until something has arrived, or the connection has changed, or `wake` is ready.
    fn poll(&self, limit: Duration, wake: Wakeup) -> Result<(), NetError> {
        let mut items =
            vec![self.socket.as_poll_item(zmq::POLLIN), self.monitor.as_poll_item(zmq::POLLIN)];
        items.extend(wake.fd.map(|fd| zmq::PollItem::from_fd(fd, zmq::POLLIN)));
        let sockets = wake.sockets.into_iter().chain([wake.monitor]).flatten();
        items.extend(sockets.map(|socket| socket.as_poll_item(zmq::POLLIN)));
        let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX).max(1);
        match zmq::poll(&mut items, limit) {
            Ok(_) | Err(zmq::Error::EINTR) => Ok(()),
            Err(error) => Err(NetError::Socket { action: "waiting", error }),
        }
    }

    /// Returns the next message, if all of it has arrived.
    fn take(&mut self) -> Result<Option<Vec<Bytes>>, NetError> {
        loop {
            let mut part = zmq::Message::new();
            match self.socket.recv(&mut part, zmq::DONTWAIT) {
                Ok(()) => {}
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => return Ok(None),
                Err(error) => return Err(NetError::Socket { action: "receiving", error }),
            }
            if let Some(frames) = self.open.take(to_bytes(part))? {
                return Ok(Some(frames));
            }
        }
    }

    /// Checks that the connection is not lost.
    pub fn check(&mut self) -> Result<(), NetError> {
        while self.lost.is_none() && matches!(self.monitor.poll(PollEvents::POLLIN, 0), Ok(1..)) {
            if matches!(self.fate(&mut true)?, Some(Fate::Lost | Fate::Refused)) {
                self.lost = Some("the server closed it or died".to_string());
            }
        }
        match &self.lost {
            None => Ok(()),
            Some(reason) => {
                Err(NetError::Lost { address: self.address.to_string(), reason: reason.clone() })
            }
        }
    }

    /// Returns whether the connection is lost.
    pub fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    pub fn address(&self) -> &Address {
        &self.address
    }
}
