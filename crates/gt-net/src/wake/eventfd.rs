//! A wakeup by an event descriptor.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// An event descriptor: readable from `ring` until `clear`.
pub struct Wake {
    fd: OwnedFd,
}

impl Wake {
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> io::Result<Wake> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and nothing else owns it.
        Ok(Wake { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: the descriptor is open, and 8 bytes are read from a live u64. The write fails if
        // the counter is full, but then it is readable already.
        unsafe { libc::write(self.fd.as_raw_fd(), std::ptr::from_ref(&one).cast(), 8) };
    }

    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: the descriptor is open, and 8 bytes are written to a live u64.
        unsafe { libc::read(self.fd.as_raw_fd(), std::ptr::from_mut(&mut count).cast(), 8) };
    }

    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
