//! Processes of this machine, told apart by number and start.

use gt_ir::message::Process;

/// This process; `None` where the system does not say.
pub fn own() -> Option<Process> {
    let pid = std::process::id();
    Some(Process { pid, start: start(pid)? })
}

/// Whether a process of this machine is still there.
pub fn is_alive(process: Process) -> bool {
    start(process.pid) == Some(process.start)
}

/// When a process started, in the system's ticks since its own start; `None` if it is gone, or has
/// ended and is not yet reaped.
fn start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may have any characters.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
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
        child.wait().unwrap();
    }
}
