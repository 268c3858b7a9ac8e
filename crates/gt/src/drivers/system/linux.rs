//! Linux's answers.

use std::time::Duration;

/// The bytes of memory that this process may use: the machine's, or those of its control group.
pub fn memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
    let files = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limit = |file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    Some(files.into_iter().filter_map(limit).fold(total, u64::min))
}

/// The time since the machine was started, also while it was suspended.
pub fn uptime() -> Duration {
    super::time_of(libc::CLOCK_BOOTTIME)
}

/// The command line of a process, word by word; `None` if there is no such process.
pub fn arguments(process: u32) -> Option<Vec<String>> {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0);
    Some(words.map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}
