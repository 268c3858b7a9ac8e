//! Processes of this machine, identified by id and start time.
//!
//! - [`linux`] and [`macos`]: when a process started, from the system.
//! - [`unknown`]: other systems do not report it, so a lost process is noticed by its link alone.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(any(test, not(any(target_os = "linux", target_os = "macos"))))]
mod unknown;

#[cfg(target_os = "linux")]
use linux::start;
#[cfg(target_os = "macos")]
use macos::start;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use unknown::{is_alive, own};

/// Returns this process; `None` where the system does not report start times.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn own() -> Option<gt_ir::message::Process> {
    let pid = std::process::id();
    Some(gt_ir::message::Process { pid, start: start(pid)? })
}

/// Returns whether a process of this machine still runs.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn is_alive(process: gt_ir::message::Process) -> bool {
    start(process.pid) == Some(process.start)
}

/// Returns whether this machine has a process with this id, including one that has ended and is not
/// yet reaped.
pub fn exists(pid: u32) -> bool {
    // Zero and negative numbers would name groups of processes.
    let Ok(number @ 1..) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: signal 0 is not delivered; the call only looks for the process.
    let status = unsafe { libc::kill(number, 0) };
    status == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

#[cfg(all(test, any(target_os = "linux", target_os = "macos")))]
mod tests {
    use gt_ir::message::Process;

    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends() {
        let own = own().unwrap();
        assert!(is_alive(own));
        assert!(!is_alive(Process { start: own.start + 1, ..own }), "its number was used again");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = Process { pid: child.id(), start: start(child.id()).unwrap() };
        assert!(is_alive(process));
        child.kill().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while is_alive(process) && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!is_alive(process), "not even before it is reaped");
        assert!(exists(process.pid));
        child.wait().unwrap();
        assert!(!exists(process.pid));
        assert!(!exists(0) && !exists(u32::MAX));
    }
}
