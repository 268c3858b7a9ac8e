//! Systems that do not report when a process started.

use gt_ir::message::Process;

/// Returns `None`: without its start time, a process cannot be distinguished from a later one with
/// the same id.
pub fn own() -> Option<Process> {
    None
}

/// Returns whether a process with this id exists, which is assumed to be the same process.
pub fn is_alive(process: Process) -> bool {
    super::exists(process.pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_is_not_alive() {
        assert_eq!(own(), None);
        assert!(is_alive(Process { pid: std::process::id(), start: 0 }));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_alive(Process { pid: child.id(), start: 0 }));
    }
}
