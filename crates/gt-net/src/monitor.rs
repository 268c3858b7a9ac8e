//! Shutdown of ZeroMQ socket monitors.

use zmq::Socket;

/// Stops a socket's monitor. Must be called before either socket is closed: a ZeroMQ thread with
/// an event for a monitor that is no longer read blocks forever, and with it all sockets of the
/// context.
pub fn stop(socket: &mut Socket) {
    // SAFETY: the socket is open; without an address the call only stops its monitor.
    unsafe { zmq_sys::zmq_socket_monitor(socket.as_mut_ptr(), std::ptr::null(), 0) };
}
