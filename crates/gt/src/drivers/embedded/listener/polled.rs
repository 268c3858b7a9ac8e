//! Other Unix systems, such as macOS, where a shutdown does not end `accept`.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use gt_net::wake::Wake;

pub struct Listener {
    /// Does not wait by itself.
    socket: UnixListener,
    /// Rung once, by `stop`.
    stopped: Wake,
}

impl Listener {
    pub fn bind(path: &Path) -> io::Result<Listener> {
        let socket = UnixListener::bind(path)?;
        socket.set_nonblocking(true)?;
        Ok(Listener { socket, stopped: Wake::new()? })
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// It was stopped, or the system is out of descriptors.
    pub fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let both = [self.socket.as_raw_fd(), self.stopped.fd()];
            let mut polls = both.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
            // SAFETY: two live descriptions of open descriptors are given.
            let ready = unsafe { libc::poll(polls.as_mut_ptr(), 2, -1) };
            if ready < 0 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(error);
            }
            if polls[1].revents != 0 {
                return Err(io::ErrorKind::NotConnected.into());
            }
            match self.socket.accept() {
                // It may have been given up between the two calls.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                accepted => {
                    let (stream, _) = accepted?;
                    // On these systems it waits as little as its listener does.
                    stream.set_nonblocking(false)?;
                    return Ok(stream);
                }
            }
        }
    }

    /// Makes `accept` fail from now on, also where a thread is in it.
    pub fn stop(&self) {
        self.stopped.ring();
    }

    /// Closes the descriptors under a thread that shares them and was not copied by a fork.
    ///
    /// # Safety
    /// Nothing uses or drops the listener afterwards.
    pub unsafe fn close(&self) {
        // SAFETY: the descriptor is open, and by the caller's promise used no more. Those of the
        // wakeup stay open.
        unsafe { libc::close(self.socket.as_raw_fd()) };
    }
}
