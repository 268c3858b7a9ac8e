//! Systems that do not say when a process started.

use gt_ir::message::Process;

/// `None`: without its start a process cannot be told from a later one with its number.
pub fn own() -> Option<Process> {
    None
}

/// Whether a process with this number exists: then it is taken for the one that is meant.
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
