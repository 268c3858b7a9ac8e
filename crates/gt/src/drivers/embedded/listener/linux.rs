//! Linux, where a shutdown ends `accept`.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

pub struct Listener {
    socket: UnixListener,
}

impl Listener {
    pub fn bind(path: &Path) -> io::Result<Listener> {
        Ok(Listener { socket: UnixListener::bind(path)? })
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// It was stopped, or the system is out of descriptors.
    pub fn accept(&self) -> io::Result<UnixStream> {
        self.socket.accept().map(|(stream, _)| stream)
    }

    /// Makes `accept` fail from now on, also where a thread is in it.
    pub fn stop(&self) {
        // SAFETY: the socket is open while `self` lives.
        unsafe { libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_RDWR) };
    }

    /// Closes the socket under a thread that shares it and was not copied by a fork.
    ///
    /// # Safety
    /// Nothing uses or drops the listener afterwards.
    pub unsafe fn close(&self) {
        // SAFETY: the descriptor is open, and by the caller's promise used no more.
        unsafe { libc::close(self.socket.as_raw_fd()) };
    }
}
