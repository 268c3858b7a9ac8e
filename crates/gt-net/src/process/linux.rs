//! Starts of processes, from /proc.

/// When a process started, in the system's ticks since its own start; `None` if it is gone, or has
/// ended and is not yet reaped.
pub fn start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may have any characters.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}
