//! The answers of other Unix systems, such as macOS.

use std::process::{Command, Stdio};
use std::time::Duration;

/// The bytes of memory that the machine has; `None` where the system does not say.
pub fn memory() -> Option<u64> {
    // SAFETY: the calls read constants of the system's.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let [pages, size] = [pages, size].map(|count| u64::try_from(count).ok());
    pages?.checked_mul(size?).filter(|bytes| *bytes > 0)
}

/// The time since the machine was started, on macOS also while it was suspended.
pub fn uptime() -> Duration {
    super::time_of(libc::CLOCK_MONOTONIC)
}

/// The command line of a process, cut at spaces; `None` if there is no such process, or no `ps`.
pub fn arguments(process: u32) -> Option<Vec<String>> {
    let mut ps = Command::new("ps");
    let ps = ps.args(["-ww", "-o", "args=", "-p", &process.to_string()]);
    let output = ps.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout);
    let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
    (output.status.success() && !words.is_empty()).then_some(words)
}
