//! Connecting to a Unix socket, whose accept queue fills up when its process is stopped.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Whether a listener with a full accept queue refuses connections, as one that is gone does.
pub const REFUSES_WHEN_FULL: bool = cfg!(not(target_os = "linux"));

/// Connects to a Unix socket, waiting at most `limit` while the accept queue is full.
///
/// # Errors
/// Nothing listens there, or the queue stays full.
#[cfg(target_os = "linux")]
pub fn connect(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    queued::connect(path, limit)
}

/// As above. The kernels of the BSD family, to which macOS belongs, never wait here: a full queue
/// refuses ([`REFUSES_WHEN_FULL`]).
#[cfg(not(target_os = "linux"))]
pub fn connect(path: &Path, _limit: Duration) -> io::Result<UnixStream> {
    UnixStream::connect(path)
}

/// Linux, where a connection to a full queue waits: it is tried without, again and again.
#[cfg(target_os = "linux")]
mod queued {
    use std::io::{Error, ErrorKind};
    use std::os::fd::FromRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::{Duration, Instant};

    pub fn connect(path: &Path, limit: Duration) -> std::io::Result<UnixStream> {
        let name = path.as_os_str().as_bytes();
        // SAFETY: all zero bytes are a valid `sockaddr_un`.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // The last byte is the terminator.
        if name.len() >= address.sun_path.len() {
            return Err(ErrorKind::InvalidFilename.into());
        }
        for (to, from) in address.sun_path.iter_mut().zip(name) {
            *to = *from as libc::c_char;
        }
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: the call takes no pointers.
        let descriptor = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
        if descriptor < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the descriptor is an open socket that nothing else owns.
        let stream = unsafe { UnixStream::from_raw_fd(descriptor) };
        let until = Instant::now() + limit;
        loop {
            let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
            // SAFETY: the address is live during the call, and has this size.
            let status = unsafe { libc::connect(descriptor, (&raw const address).cast(), size) };
            if status == 0 {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            match Error::last_os_error() {
                error if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ if Instant::now() >= until => return Err(ErrorKind::TimedOut.into()),
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}
