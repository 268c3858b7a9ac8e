//! Authentication: checks each new link's key (ZeroMQ's ZAP, RFC 27) and tags its messages with
//! the role, or as a user's.

use std::thread::{self, JoinHandle};

use gt_ir::message::Role;
use zmq::{Context, Socket, SocketType};

use crate::descriptors::during;
use crate::error::NetError;
use crate::keys::Key;

/// The endpoint to which ZeroMQ sends an authentication request for each new link.
const ENDPOINT: &str = "inproc://zeromq.zap.01";

/// The tag of users' links.
pub(crate) const USER: &str = "user";

/// The thread that answers authentication requests.
pub struct Gatekeeper {
    context: Context,
    thread: Option<JoinHandle<()>>,
}

impl Gatekeeper {
    /// Admits peers that have the key of any role, or of a user.
    pub fn start(context: &Context, key: &Key) -> Result<Gatekeeper, NetError> {
        let mut tags = vec![(key.users_public()?, USER)];
        for role in Role::ALL {
            tags.push((key.link(role)?.own.public, role.name()));
        }
        Gatekeeper::admit(context, tags)
    }

    /// Admits workers, which all have this public key.
    pub fn for_workers(context: &Context, public: [u8; 32]) -> Result<Gatekeeper, NetError> {
        Gatekeeper::admit(context, vec![(public, Role::Worker.name())])
    }

    fn admit(
        context: &Context,
        tags: Vec<([u8; 32], &'static str)>,
    ) -> Result<Gatekeeper, NetError> {
        let socket = context.socket(SocketType::REP).map_err(during("opening the gatekeeper"))?;
        socket.set_linger(0).map_err(during("setting up the gatekeeper"))?;
        socket.bind(ENDPOINT).map_err(during("starting the gatekeeper"))?;
        let thread = thread::Builder::new()
            .name("gt-gatekeeper".into())
            .spawn(move || {
                // It ends with the context, or at a request without frames.
                while let Ok(frames) = receive(&socket) {
                    if frames.len() < 2 {
                        break;
                    }
                    answer(&socket, &frames, &tags);
                }
            })
            .map_err(|error| NetError::File {
                action: "starting",
                path: "a thread".into(),
                error,
            })?;
        Ok(Gatekeeper { context: context.clone(), thread: Some(thread) })
    }
}

impl Drop for Gatekeeper {
    fn drop(&mut self) {
        let mut ask = || -> zmq::Result<()> {
            let socket = self.context.socket(SocketType::REQ)?;
            socket.connect(ENDPOINT)?;
            socket.set_linger(0)?;
            socket.send("stop", 0)?;
            // The socket stays until the thread, which drops its own, has ended.
            if let Some(thread) = self.thread.take() {
                let _ = thread.join();
            }
            Ok(())
        };
        // Without a descriptor for the socket, the thread ends with the process.
        let _ = ask();
    }
}

fn receive(socket: &Socket) -> zmq::Result<Vec<Vec<u8>>> {
    loop {
        match socket.recv_multipart(0) {
            Err(zmq::Error::EINTR) => {}
            result => return result,
        }
    }
}

fn answer(socket: &Socket, frames: &[Vec<u8>], tags: &[([u8; 32], &'static str)]) {
    let id = frames.get(1).cloned().unwrap_or_default();
    let (status, text, user): (&[u8], &[u8], &[u8]) = match tag_of(frames, tags) {
        Some(tag) => (b"200", b"OK", tag.as_bytes()),
        None => (b"400", b"unknown key", b""),
    };
    // Fails only when the context is terminated, when the answer is not needed.
    let _ = socket.send_multipart([b"1.0", &id[..], status, text, user, b""], 0);
}

/// The request's frames: version, id, domain, address, identity, mechanism, public key.
fn tag_of(frames: &[Vec<u8>], tags: &[([u8; 32], &'static str)]) -> Option<&'static str> {
    let [version, _, _, _, _, mechanism, key, ..] = frames else { return None };
    if version != b"1.0" || mechanism != b"CURVE" {
        return None;
    }
    tags.iter().find(|(public, _)| public[..] == key[..]).map(|(_, tag)| *tag)
}
