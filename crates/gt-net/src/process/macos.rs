//! Starts of processes, from the kernel's description of each.

use std::mem::{MaybeUninit, size_of};

/// The state of a process that has ended and is not yet reaped.
const ZOMBIE: u32 = 5;

/// When a process started, in microseconds since 1970; `None` if it is gone, or has ended and is
/// not yet reaped.
pub fn start(pid: u32) -> Option<u64> {
    let size = size_of::<libc::proc_bsdinfo>() as libc::c_int;
    let mut info = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    // SAFETY: `info` has room for `size` bytes, which the call fills.
    let filled = unsafe {
        let to = info.as_mut_ptr().cast();
        libc::proc_pidinfo(pid.try_into().ok()?, libc::PROC_PIDTBSDINFO, 0, to, size)
    };
    if filled != size {
        return None;
    }
    // SAFETY: all zeros is a valid description, and the call has filled it.
    let info = unsafe { info.assume_init() };
    let is_running = info.pbi_status != ZOMBIE;
    is_running.then_some(info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec)
}
