//! What drivers ask the operating system: memory, uptime, the account, and what a process runs.
//!
//! - [`account`]: the user and the machine's name.
//! - [`linux`]: from /proc, control groups and Linux's clock.
//! - [`posix`]: by what other Unix systems have, too.

mod account;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod linux;
#[cfg(any(test, not(target_os = "linux"), feature = "portable"))]
mod posix;

#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub use linux::{arguments, memory, uptime};
#[cfg(any(not(target_os = "linux"), feature = "portable"))]
pub use posix::{arguments, memory, uptime};

pub use account::{host, user};

use std::time::Duration;

/// The time of a clock of the system's.
fn time_of(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time into what it is given, which lives through the call.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree() {
        let process = std::process::id();
        let [first, second] = [arguments(process), posix::arguments(process)].map(Option::unwrap);
        // `ps` writes a line, in which a blank may also be part of a path.
        let line = first.join(" ");
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), second);
        assert_eq!(arguments(u32::MAX), None);
        assert_eq!(posix::arguments(u32::MAX), None);
        // A control group may have less than the machine.
        assert!(memory().unwrap() <= posix::memory().unwrap());
        for clock in [uptime, posix::uptime] {
            let before = clock();
            std::thread::sleep(Duration::from_millis(2));
            assert!(clock() - before >= Duration::from_millis(2));
        }
    }
}
