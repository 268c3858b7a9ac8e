//! The server's end of all links: a ZeroMQ ROUTER socket.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use gt_ir::message::Role;
use rustc_hash::FxHashMap;
use zmq::{Context, PollEvents, Socket, SocketType};

use crate::address::Address;
use crate::codec::{DATA_FRAME, MAX_FRAMES};
use crate::error::{NetError, during};
use crate::gatekeeper::{self, Gatekeeper};
use crate::keys::Key;
use crate::lock::AddressLock;
use crate::private;
use crate::{HEARTBEAT, SILENCE};

/// A link, by the routing id that the socket gave it.
pub type LinkId = Vec<u8>;

/// What a link's key proves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proven {
    pub role: Role,
    /// Whether it is a user's key, whose badge must say who.
    pub is_user: bool,
}

/// An event on the server's socket.
pub enum Event {
    /// A message; who sent it is proven by the link's key, or `None` on a server without keys.
    Message { link: LinkId, proven: Option<Proven>, frames: Vec<Bytes> },
    /// The link is lost.
    Disconnected(LinkId),
}

/// The server's socket. Owned by one thread.
pub struct ServerLink {
    socket: Socket,
    /// Messages for peers whose queues are full.
    backlogs: FxHashMap<LinkId, Backlog>,
    _gatekeeper: Option<Gatekeeper>,
    /// Held while the server lives, to report address conflicts.
    _lock: AddressLock,
    secure: bool,
}

/// Messages that wait for a peer to read, oldest first.
#[derive(Default)]
struct Backlog {
    messages: VecDeque<Vec<Bytes>>,
    bytes: usize,
}

/// ZeroMQ's draft option for notifications of links, and its value for lost ones only.
const ROUTER_NOTIFY: i32 = 97;
const NOTIFY_DISCONNECT: i32 = 2;

impl ServerLink {
    /// Listens on an address; without a key, any peer may connect.
    ///
    /// # Errors
    /// The address is in use or cannot be bound.
    pub fn bind(address: &Address, key: Option<&Key>) -> Result<ServerLink, NetError> {
        let lock = AddressLock::take(address)?;
        if let Address::Ipc { path } = address {
            private::socket(Path::new(path))?;
        }
        let context = Context::new();
        let gatekeeper = key.map(|key| Gatekeeper::start(&context, key)).transpose()?;
        let mut socket = context.socket(SocketType::ROUTER).map_err(during("opening a socket"))?;
        let setup = || -> zmq::Result<()> {
            socket.set_linger(0)?;
            socket.set_maxmsgsize((DATA_FRAME + (4 << 20)) as i64)?;
            socket.set_handshake_ivl(5_000)?;
            socket.set_heartbeat_ivl(HEARTBEAT)?;
            socket.set_heartbeat_timeout(SILENCE)?;
            socket.set_heartbeat_ttl(SILENCE)?;
            socket.set_router_mandatory(true)?;
            socket.set_backlog(1024)?;
            socket.set_sndhwm(1000)?;
            socket.set_rcvhwm(1000)
        };
        setup().map_err(during("setting up the socket"))?;
        notify_of_lost_links(&mut socket)?;
        if let Some(key) = key {
            let pair = key.server_pair()?;
            socket.set_curve_server(true).map_err(during("encrypting the socket"))?;
            socket.set_curve_secretkey(&pair.secret).map_err(during("encrypting the socket"))?;
            socket.set_zap_domain("gt").map_err(during("encrypting the socket"))?;
        }
        socket.bind(&address.to_bind()).map_err(|error| match error {
            zmq::Error::EADDRINUSE => {
                NetError::InUse { address: address.to_string(), by: String::new() }
            }
            error => NetError::Listening { address: address.to_string(), error },
        })?;
        Ok(ServerLink {
            socket,
            backlogs: FxHashMap::default(),
            _gatekeeper: gatekeeper,
            _lock: lock,
            secure: key.is_some(),
        })
    }

    /// Waits until a message has arrived, `wake` is readable or `limit` is over.
    pub fn wait(&mut self, limit: Duration, wake: Option<RawFd>) -> Result<(), NetError> {
        self.retry();
        let mut items = vec![self.socket.as_poll_item(zmq::POLLIN)];
        if let Some(fd) = wake {
            items.push(zmq::PollItem::from_fd(fd, zmq::POLLIN));
        }
        // With a backlog, retry soon.
        let limit =
            if self.backlogs.is_empty() { limit } else { limit.min(Duration::from_millis(1)) };
        match zmq::poll(&mut items, i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)) {
            Ok(_) | Err(zmq::Error::EINTR) => Ok(()),
            Err(error) => Err(NetError::Socket { action: "waiting", error }),
        }
    }

    /// The next event, if there is one.
    pub fn try_receive(&mut self) -> Result<Option<Event>, NetError> {
        loop {
            let events = self.socket.get_events().map_err(during("receiving"))?;
            if !events.contains(PollEvents::POLLIN) {
                return Ok(None);
            }
            let mut first = zmq::Message::new();
            match self.socket.recv(&mut first, zmq::DONTWAIT) {
                Ok(()) => {}
                Err(zmq::Error::EAGAIN | zmq::Error::EINTR) => return Ok(None),
                Err(error) => return Err(NetError::Socket { action: "receiving", error }),
            }
            let link = first.to_vec();
            let mut frames = Vec::new();
            let mut proven = None;
            let mut more = first.get_more();
            while more {
                let mut frame = zmq::Message::new();
                // The frames of a message arrive together.
                self.socket.recv(&mut frame, 0).map_err(during("receiving"))?;
                more = frame.get_more();
                proven = frame.gets("User-Id").and_then(proven_by);
                if frames.len() <= MAX_FRAMES {
                    frames.push(to_bytes(frame));
                }
            }
            if frames.len() == 1 && frames[0].is_empty() {
                self.backlogs.remove(&link);
                return Ok(Some(Event::Disconnected(link)));
            }
            // On a server with keys, a link without a role was not admitted.
            if frames.len() > MAX_FRAMES || (self.secure && proven.is_none()) {
                continue;
            }
            return Ok(Some(Event::Message { link, proven, frames }));
        }
    }

    /// Sends a message, or queues it while the peer's queue is full. Never blocks. Returns `false`
    /// if the peer is gone, or more than `most` bytes are queued for it.
    pub fn send(
        &mut self,
        link: &LinkId,
        frames: Vec<Bytes>,
        most: usize,
    ) -> Result<bool, NetError> {
        if !self.backlogs.contains_key(link) {
            match self.try_send(link, &frames)? {
                Sent::Yes => return Ok(true),
                Sent::Gone => return Ok(false),
                Sent::Full => {}
            }
        }
        let backlog = self.backlogs.entry(link.clone()).or_default();
        backlog.bytes += length(&frames);
        if backlog.bytes > most {
            self.backlogs.remove(link);
            return Ok(false);
        }
        backlog.messages.push_back(frames);
        Ok(true)
    }

    fn try_send(&mut self, link: &LinkId, frames: &[Bytes]) -> Result<Sent, NetError> {
        // The first frame fails if the peer is gone or full; the others then cannot fail.
        match self.socket.send(&link[..], zmq::SNDMORE | zmq::DONTWAIT) {
            Ok(()) => {}
            Err(zmq::Error::EAGAIN) => return Ok(Sent::Full),
            Err(zmq::Error::EHOSTUNREACH) => return Ok(Sent::Gone),
            Err(error) => return Err(NetError::Socket { action: "sending", error }),
        }
        send_frames(&self.socket, frames).map_err(during("sending"))?;
        Ok(Sent::Yes)
    }

    /// Sends the backlogs, as far as there is room.
    fn retry(&mut self) {
        for (link, mut backlog) in std::mem::take(&mut self.backlogs) {
            while let Some(frames) = backlog.messages.pop_front() {
                if matches!(self.try_send(&link, &frames), Ok(Sent::Full)) {
                    backlog.messages.push_front(frames);
                    break;
                }
                backlog.bytes -= length(&frames);
            }
            if !backlog.messages.is_empty() {
                self.backlogs.insert(link, backlog);
            }
        }
    }
}

fn length(frames: &[Bytes]) -> usize {
    frames.iter().map(Bytes::len).sum()
}

enum Sent {
    Yes,
    Full,
    Gone,
}

/// Sends frames as one message. Never blocks: without room or a connection, the first frame fails
/// with EAGAIN.
pub(crate) fn send_frames(socket: &Socket, frames: &[Bytes]) -> zmq::Result<()> {
    for (index, frame) in frames.iter().enumerate() {
        let more = if index + 1 < frames.len() { zmq::SNDMORE } else { 0 };
        socket.send(&frame[..], more | zmq::DONTWAIT)?;
    }
    Ok(())
}

/// A received frame's bytes; long frames are not copied.
pub(crate) fn to_bytes(frame: zmq::Message) -> Bytes {
    struct Frame(zmq::Message);
    impl AsRef<[u8]> for Frame {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    // SAFETY: a received message is plain memory with an atomic reference count; ZeroMQ lets any
    // thread read and close it, one at a time, and `Bytes` hands out shared reads only.
    unsafe impl Send for Frame {}
    // SAFETY: as above; reading through a shared reference changes nothing.
    unsafe impl Sync for Frame {}
    if frame.len() < 256 { Bytes::copy_from_slice(&frame) } else { Bytes::from_owner(Frame(frame)) }
}

fn proven_by(tag: &str) -> Option<Proven> {
    if tag == gatekeeper::USER {
        return Some(Proven { role: Role::Client, is_user: true });
    }
    let mut roles = [Role::Client, Role::Worker, Role::Watcher].into_iter();
    roles.find(|role| role.name() == tag).map(|role| Proven { role, is_user: false })
}

pub(crate) fn notify_of_lost_links(socket: &mut Socket) -> Result<(), NetError> {
    let value = NOTIFY_DISCONNECT;
    // SAFETY: the socket is open, and the option takes a pointer to one int and its size.
    let status = unsafe {
        zmq_sys::zmq_setsockopt(
            socket.as_mut_ptr(),
            ROUTER_NOTIFY,
            std::ptr::from_ref(&value).cast(),
            size_of::<i32>(),
        )
    };
    if status == 0 {
        return Ok(());
    }
    Err(NetError::Socket { action: "asking for notices of lost links", error: zmq::Error::EINVAL })
}
