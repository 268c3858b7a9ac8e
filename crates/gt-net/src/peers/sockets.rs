//! The sockets of a worker's links.

use zmq::{Context, Socket, SocketEvent, SocketType};

use super::HANDSHAKE_LIMIT;
use crate::descriptors::during;
use crate::error::NetError;
use crate::keys::KeyPair;
use crate::parts;
use crate::server::notify_of_lost_links;
use crate::{HEARTBEAT, SILENCE};

/// The endpoint of the events of the links that this worker opens.
const MONITOR: &str = "inproc://monitor-of-peers";

/// The events that are watched.
const EVENTS: i32 = SocketEvent::CONNECTED as i32
    | SocketEvent::HANDSHAKE_SUCCEEDED as i32
    | SocketEvent::HANDSHAKE_FAILED_AUTH as i32
    | SocketEvent::HANDSHAKE_FAILED_PROTOCOL as i32
    | SocketEvent::HANDSHAKE_FAILED_NO_DETAIL as i32
    | SocketEvent::DISCONNECTED as i32
    | SocketEvent::CLOSED as i32;

/// Opens a socket for links, as the end that accepts them or as the one that opens them.
pub fn open(
    context: &Context,
    pair: Option<&KeyPair>,
    accepts: bool,
    is_v6: bool,
) -> Result<Socket, NetError> {
    let mut socket = context.socket(SocketType::ROUTER).map_err(during("opening a socket"))?;
    let setup = || -> zmq::Result<()> {
        socket.set_linger(0)?;
        socket.set_maxmsgsize(parts::LONGEST)?;
        socket.set_handshake_ivl(HANDSHAKE_LIMIT.as_millis() as i32)?;
        socket.set_heartbeat_ivl(HEARTBEAT)?;
        socket.set_heartbeat_timeout(SILENCE)?;
        socket.set_rcvhwm(parts::UNDER_WAY)?;
        socket.set_sndhwm(0)?;
        socket.set_backlog(1024)?;
        socket.set_router_mandatory(true)?;
        // Messages in flight on a lost link are lost, so the link is given up, not reconnected.
        socket.set_reconnect_ivl(-1)?;
        socket.set_ipv6(is_v6)?;
        if let Some(pair) = pair {
            if accepts {
                socket.set_curve_server(true)?;
                socket.set_zap_domain("gt")?;
            } else {
                socket.set_curve_serverkey(&pair.public)?;
                socket.set_curve_publickey(&pair.public)?;
            }
            socket.set_curve_secretkey(&pair.secret)?;
        }
        Ok(())
    };
    setup().map_err(during("setting up the socket"))?;
    notify_of_lost_links(&mut socket)?;
    Ok(socket)
}

/// Returns the socket on which the events of the opened links arrive.
pub fn watch(context: &Context, dialing: &Socket) -> Result<Socket, NetError> {
    let watch = || -> zmq::Result<Socket> {
        dialing.monitor(MONITOR, EVENTS)?;
        let monitor = context.socket(SocketType::PAIR)?;
        // A full monitor would stop all links.
        monitor.set_rcvhwm(0)?;
        monitor.set_linger(0)?;
        monitor.connect(MONITOR)?;
        Ok(monitor)
    };
    watch().map_err(during("watching the links to other workers"))
}
