//! ZeroMQ socket monitors: reading their events, and stopping them.

use zmq::{Socket, SocketEvent};

/// An event and its value, from the first frame of its message.
pub fn parse(frame: &[u8]) -> Option<(SocketEvent, u32)> {
    let (event, rest) = frame.split_first_chunk::<2>()?;
    let value = rest.first_chunk::<4>()?;
    Some((SocketEvent::from_raw(u16::from_le_bytes(*event)), u32::from_le_bytes(*value)))
}

/// Stops a socket's monitor. Must be called before either socket is closed: a ZeroMQ thread with
/// an event for a monitor that is no longer read blocks forever, and with it all sockets of the
/// context.
pub fn stop(socket: &mut Socket) {
    // SAFETY: the socket is open; without an address the call only stops its monitor.
    unsafe { zmq_sys::zmq_socket_monitor(socket.as_mut_ptr(), std::ptr::null(), 0) };
}
