//! The server's end of all links: a ZeroMQ ROUTER socket.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use gt_ir::message::Role;
use rustc_hash::{FxHashMap, FxHashSet};
use zmq::{Context, PollEvents, Socket, SocketType};

use crate::address::Address;
use crate::descriptors::{self, Refusals, during};
use crate::error::NetError;
use crate::gatekeeper::{self, Gatekeeper};
use crate::keys::Key;
use crate::lock::AddressLock;
use crate::parts::{self, Assembly};
use crate::private;
use crate::{HEARTBEAT, SILENCE};

/// A link, by the routing id that the socket has assigned.
pub type LinkId = Vec<u8>;

/// What a link's key proves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Proven {
    pub role: Role,
    /// Whether it is a user's key, whose badge must prove the user.
    pub is_user: bool,
}

/// An event on the server's socket.
pub enum ServerEvent {
    /// A message, with the role that the link's key proves, or `None` on a server without keys.
    Message { link: LinkId, proven: Option<Proven>, frames: Vec<Bytes> },
    /// A link was refused; no more is read from it.
    Refused { link: LinkId, reason: String },
    /// The link is lost.
    Disconnected(LinkId),
}

/// The number of descriptors that a server needs: for the context, two sockets, the address, its
/// key, its wakeup, and a few peers.
const DESCRIPTORS: usize = 18;

/// The server's socket. Owned by one thread.
pub struct ServerLink {
    socket: Socket,
    /// Messages for peers whose queues are full.
    backlogs: FxHashMap<LinkId, Backlog>,
    /// Messages that are still arriving, their bytes, and the limit of these bytes.
    open: FxHashMap<LinkId, Assembly>,
    held: usize,
    budget: usize,
    /// Refused links that are still connected.
    muted: FxHashSet<LinkId>,
    /// Links that were admitted.
    admitted: FxHashSet<LinkId>,
    refusals: Refusals,
    _gatekeeper: Option<Gatekeeper>,
    /// Held while the server lives, to report address conflicts.
    _lock: AddressLock,
    secure: bool,
}

/// Parts that wait for a peer to read, oldest first, and whether each is the first of its message.
#[derive(Default)]
struct Backlog {
    parts: VecDeque<(Bytes, bool)>,
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
        descriptors::raise_limit();
        descriptors::reserve("a server", DESCRIPTORS)?;
        let lock = AddressLock::take(address)?;
        if let Address::Ipc { path } = address {
            private::socket(Path::new(path))?;
        }
        let context = Context::try_new().map_err(during("opening a context"))?;
        let gatekeeper = key.map(|key| Gatekeeper::start(&context, key)).transpose()?;
        let mut socket = context.socket(SocketType::ROUTER).map_err(during("opening a socket"))?;
        let setup = || -> zmq::Result<()> {
            socket.set_linger(0)?;
            socket.set_maxmsgsize(parts::LONGEST)?;
            socket.set_handshake_ivl(5_000)?;
            socket.set_heartbeat_ivl(HEARTBEAT)?;
            socket.set_heartbeat_timeout(SILENCE)?;
            socket.set_heartbeat_ttl(SILENCE)?;
            socket.set_router_mandatory(true)?;
            socket.set_backlog(1024)?;
            socket.set_ipv6(address.is_v6())?;
            socket.set_sndhwm(parts::UNDER_WAY)?;
            socket.set_rcvhwm(parts::BEFORE_HELLO)
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
            open: FxHashMap::default(),
            held: 0,
            budget: usize::MAX,
            muted: FxHashSet::default(),
            admitted: FxHashSet::default(),
            refusals: Refusals::default(),
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

    /// Sets the limit of the bytes of all messages that are still arriving.
    pub fn set_budget(&mut self, bytes: usize) {
        self.budget = bytes;
    }

    /// Raises the limits of a peer whose handshake is complete.
    pub fn admit(&mut self, link: &LinkId) {
        let value = [&parts::UNDER_WAY.to_ne_bytes()[..], link].concat();
        // Fails only for a link that is lost.
        let _ = set_option(&mut self.socket, zmq_sys::GT_ROUTER_ADMIT, &value);
        self.admitted.insert(link.clone());
    }

    /// Stops reading from a link.
    pub fn mute(&mut self, link: &LinkId) {
        self.close_message(link);
        self.muted.insert(link.clone());
    }

    /// Returns a message for the log about connections that were refused for lack of descriptors.
    pub fn refusals(&mut self) -> Option<String> {
        self.refusals.report()
    }

    /// Returns the next event, if any.
    pub fn try_receive(&mut self) -> Result<Option<ServerEvent>, NetError> {
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
            let mut part = zmq::Message::new();
            // It arrives with the link's id.
            self.socket.recv(&mut part, 0).map_err(during("receiving"))?;
            if part.is_empty() {
                self.forget(&link);
                return Ok(Some(ServerEvent::Disconnected(link)));
            }
            let proven = part.gets("User-Id").and_then(proven_by);
            // On a server with keys, a link without a role was not admitted.
            if self.secure && proven.is_none() || self.is_muted(&link) {
                continue;
            }
            match self.assemble(&link, to_bytes(part)) {
                Ok(Some(frames)) => return Ok(Some(ServerEvent::Message { link, proven, frames })),
                Ok(None) => {}
                Err(RefusedLink { link, reason }) => {
                    self.mute(&link);
                    return Ok(Some(ServerEvent::Refused { link, reason }));
                }
            }
        }
    }

    fn is_muted(&self, link: &LinkId) -> bool {
        !self.muted.is_empty() && self.muted.contains(link)
    }

    /// Adds a part. Returns the message that it completes, if any.
    fn assemble(&mut self, link: &LinkId, part: Bytes) -> Result<Option<Vec<Bytes>>, RefusedLink> {
        let refuse = |link: &LinkId, reason| RefusedLink { link: link.clone(), reason };
        if !self.open.contains_key(link) {
            if parts::is_whole(&part) {
                return Ok(Some(vec![part]));
            }
            if !self.admitted.contains(link) {
                return Err(refuse(link, "a message is longer than a hello may be".into()));
            }
            self.open.insert(link.clone(), Assembly::default());
        }
        let assembly = self.open.get_mut(link).expect("it is there, or was added");
        let before = assembly.bytes();
        let message = assembly.take(part).map_err(|error| refuse(link, error.to_string()))?;
        if let Some(message) = message {
            self.held -= before;
            self.open.remove(link);
            return Ok(Some(message));
        }
        self.held += assembly.bytes() - before;
        if self.held <= self.budget {
            return Ok(None);
        }
        let largest = self.open.iter().max_by_key(|(link, open)| (open.bytes(), *link));
        let (largest, bytes) =
            largest.map(|(link, open)| (link, open.bytes())).expect("one is open");
        let reason = format!(
            "the server has room for {} bytes of messages that are arriving, and {bytes} were of yours\n  hint: send less at a time, or one after the other",
            self.budget
        );
        Err(refuse(largest, reason))
    }

    /// Drops an incomplete message.
    fn close_message(&mut self, link: &LinkId) {
        if let Some(assembly) = self.open.remove(link) {
            self.held -= assembly.bytes();
        }
    }

    /// Handles the loss of a link.
    fn forget(&mut self, link: &LinkId) {
        self.close_message(link);
        self.backlogs.remove(link);
        self.muted.remove(link);
        self.admitted.remove(link);
    }

    /// Sends a message, or queues it while the peer's queue is full. Never blocks. Returns `false`
    /// if the peer is gone, or more than `most` bytes were queued for it.
    pub fn send(
        &mut self,
        link: &LinkId,
        frames: Vec<Bytes>,
        most: usize,
    ) -> Result<bool, NetError> {
        if let Some(backlog) = self.backlogs.get_mut(link)
            && backlog.bytes > most
        {
            backlog.drop_messages();
            return Ok(false);
        }
        let mut is_full = self.backlogs.contains_key(link);
        let mut is_first = true;
        let sent = parts::cut(&frames, |part| {
            if !is_full {
                match self.try_send(link, &part).map_err(Some)? {
                    SendOutcome::Yes => {}
                    SendOutcome::Gone => return Err(None),
                    SendOutcome::Full => is_full = true,
                }
            }
            if is_full {
                let backlog = self.backlogs.entry(link.clone()).or_default();
                backlog.bytes += part.len();
                backlog.parts.push_back((part, is_first));
            }
            is_first = false;
            Ok(())
        });
        match sent {
            Ok(()) => Ok(true),
            Err(None) => Ok(false),
            Err(Some(error)) => Err(error),
        }
    }

    fn try_send(&mut self, link: &LinkId, part: &Bytes) -> Result<SendOutcome, NetError> {
        // The id fails if the peer is gone or full; the part then cannot fail.
        match self.socket.send(&link[..], zmq::SNDMORE | zmq::DONTWAIT) {
            Ok(()) => {}
            Err(zmq::Error::EAGAIN) => return Ok(SendOutcome::Full),
            Err(zmq::Error::EHOSTUNREACH) => return Ok(SendOutcome::Gone),
            Err(error) => return Err(NetError::Socket { action: "sending", error }),
        }
        send_part(&self.socket, part).map_err(during("sending"))?;
        Ok(SendOutcome::Yes)
    }

    /// Sends the backlogs, as far as there is room.
    fn retry(&mut self) {
        for (link, mut backlog) in std::mem::take(&mut self.backlogs) {
            while let Some((part, is_first)) = backlog.parts.pop_front() {
                if matches!(self.try_send(&link, &part), Ok(SendOutcome::Full)) {
                    backlog.parts.push_front((part, is_first));
                    break;
                }
                backlog.bytes -= part.len();
            }
            if !backlog.parts.is_empty() {
                self.backlogs.insert(link, backlog);
            }
        }
    }
}

impl Backlog {
    /// Drops all messages of which no part was sent.
    fn drop_messages(&mut self) {
        let begun = self.parts.iter().position(|(_, is_first)| *is_first);
        self.parts.truncate(begun.unwrap_or(self.parts.len()));
        self.bytes = self.parts.iter().map(|(part, _)| part.len()).sum();
    }
}

/// A link that is refused, with the reason.
struct RefusedLink {
    link: LinkId,
    reason: String,
}

enum SendOutcome {
    Yes,
    Full,
    Gone,
}

/// The shortest part that is sent without being copied.
const SHARED: usize = 4096;

/// Sends a part. Never blocks: without room or a connection, it fails with EAGAIN.
pub(crate) fn send_part(socket: &Socket, part: &Bytes) -> zmq::Result<()> {
    if part.len() < SHARED {
        return socket.send(&part[..], zmq::DONTWAIT);
    }
    socket.send(zmq::Message::from_owner(part.clone()), zmq::DONTWAIT)
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
    let mut roles = Role::ALL.into_iter();
    roles.find(|role| role.name() == tag).map(|role| Proven { role, is_user: false })
}

pub(crate) fn notify_of_lost_links(socket: &mut Socket) -> Result<(), NetError> {
    set_option(socket, ROUTER_NOTIFY, &NOTIFY_DISCONNECT.to_ne_bytes())
        .map_err(during("asking for notices of lost links"))
}

/// Sets an option that the bindings lack.
pub(crate) fn set_option(socket: &mut Socket, option: i32, value: &[u8]) -> zmq::Result<()> {
    // SAFETY: the socket is open, and the option takes a pointer to `length` bytes, which live through
    // the call.
    let status = unsafe {
        zmq_sys::zmq_setsockopt(socket.as_mut_ptr(), option, value.as_ptr().cast(), value.len())
    };
    if status == 0 { Ok(()) } else { Err(zmq::Error::from_raw(errno())) }
}

fn errno() -> i32 {
    // SAFETY: the function only reads the calling thread's number of its last error.
    unsafe { zmq_sys::zmq_errno() }
}
