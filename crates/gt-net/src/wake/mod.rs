//! Wakes a thread that waits on a socket.
//!
//! - [`eventfd`]: on Linux, one descriptor with a counter.
//! - [`pipe`]: on other Unix systems.

#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod eventfd;
#[cfg(any(test, not(target_os = "linux"), feature = "portable"))]
mod pipe;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub use eventfd::Wake;
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
pub use pipe::Wake;

#[cfg(test)]
mod tests {
    use std::os::fd::RawFd;

    use super::*;

    fn is_readable(fd: RawFd) -> bool {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one live description of a descriptor is given.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }

    fn check(fd: RawFd, ring: impl Fn(), clear: impl Fn()) {
        assert!(!is_readable(fd));
        clear();
        for rings in [1, 2, 100_000] {
            (0..rings).for_each(|_| ring());
            assert!(is_readable(fd), "{rings}");
            clear();
            assert!(!is_readable(fd), "{rings}");
        }
    }

    #[test]
    fn a_wakeup_is_readable_from_a_ring_until_it_is_cleared() {
        let wake = Wake::new().unwrap();
        check(wake.fd(), || wake.ring(), || wake.clear());
        let wake = pipe::Wake::new().unwrap();
        check(wake.fd(), || wake.ring(), || wake.clear());
    }
}
