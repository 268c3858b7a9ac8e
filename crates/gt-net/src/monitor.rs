//! Ends the watching of a socket.

use zmq::Socket;

/// Stops a socket's monitor. To be called before either is closed: whichever of ZeroMQ's threads
/// has a notice for a monitor that nobody reads any more waits for a reader forever, and with it
/// all sockets of the context.
pub fn stop(socket: &mut Socket) {
    // SAFETY: the socket is open; without an address the call only ends what was begun on it.
    unsafe { zmq_sys::zmq_socket_monitor(socket.as_mut_ptr(), std::ptr::null(), 0) };
}
