//! File descriptors: the process's limit, and checks that enough are free.
//!
//! ZeroMQ needs several for a context and each socket, and fails in the middle if it gets too few.
//! So callers check first.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::error::NetError;

/// The highest limit that is requested: a higher one costs programs that iterate over all
/// descriptors.
const MOST: u64 = 1 << 20;

/// The least pause between two reports of refused connections.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// The soft and the hard limit of this process.
fn limits() -> libc::rlimit {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes into the struct that it is given, which lives through the call.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limits) };
    limits
}

/// How many descriptors this process may have.
pub fn limit() -> u64 {
    limits().rlim_cur
}

/// Raises the soft limit to the hard one.
pub fn raise_limit() {
    let mut limits = limits();
    let wanted = limits.rlim_max.min(MOST);
    if wanted > limits.rlim_cur {
        limits.rlim_cur = wanted;
        // SAFETY: the call reads the struct that it is given. Where the system refuses, as macOS
        // does beyond a limit of its own, the one that there was stays.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limits) };
    }
}

/// Checks that this process can open `count` descriptors, raising its soft limit if needed.
///
/// # Errors
/// It cannot open that many.
pub fn reserve(what: &'static str, needed: usize) -> Result<(), NetError> {
    if available(needed) >= needed {
        return Ok(());
    }
    raise_limit();
    let left = available(needed);
    if left >= needed {
        return Ok(());
    }
    Err(NetError::Descriptors { what, needed, left, limit: limit() })
}

/// Adds the attempted action to a ZeroMQ error.
pub(crate) fn during(action: &'static str) -> impl Fn(zmq::Error) -> NetError {
    move |error| match error {
        zmq::Error::EMFILE => {
            let limit = limit();
            NetError::Descriptors { what: action, needed: 1, left: 0, limit }
        }
        error => NetError::Socket { action, error },
    }
}

/// Returns the number of descriptors that this process can open, at most `wanted`.
fn available(wanted: usize) -> usize {
    let Ok(first) = File::open("/dev/null") else { return 0 };
    let first = OwnedFd::from(first);
    let mut held: Vec<OwnedFd> = Vec::with_capacity(wanted);
    while held.len() + 1 < wanted
        && let Ok(next) = first.try_clone()
    {
        held.push(next);
    }
    held.len() + 1
}

/// Returns whether an error means that no descriptors are left.
pub fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Connections that this process has refused for lack of descriptors.
pub struct Refusals {
    told: u64,
    next: Instant,
}

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals { told: refused(), next: Instant::now() }
    }
}

fn refused() -> u64 {
    // SAFETY: the function only reads a number.
    unsafe { zmq_sys::gt_zmq_refused() }
}

impl Refusals {
    /// Returns a message for the log about refusals since the last report, at intervals.
    pub fn report(&mut self) -> Option<String> {
        let refused = refused();
        if refused == self.told || Instant::now() < self.next {
            return None;
        }
        let count = refused - self.told;
        self.told = refused;
        self.next = Instant::now() + REPORT_EVERY;
        Some(format!(
            "no file descriptors are left (the limit is {}): {count} attempts to connect were refused\n  hint: raise the limit (ulimit -n), or end sessions",
            limit()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_opened_is_counted() {
        assert_eq!(available(20), 20);
        reserve("a test", 20).unwrap();
        let error = reserve("a test", usize::try_from(MOST).unwrap() * 2).unwrap_err().to_string();
        assert!(error.contains("a test needs 2097152 file descriptors"), "{error}");
        assert!(error.contains("ulimit -n"), "{error}");
    }
}
