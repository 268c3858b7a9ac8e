//! Linux: the processor of a thread, from the scheduler, and huge pages.

use std::mem::{MaybeUninit, size_of};
use std::ptr::NonNull;

/// Returns the processor that this thread runs on.
pub fn current() -> i32 {
    // SAFETY: the call reads the thread's own state.
    unsafe { libc::sched_getcpu() }
}

/// Asks the kernel for huge pages. The values in the memory do not matter yet.
pub fn use_huge_pages(memory: NonNull<u8>, bytes: usize) {
    // SAFETY: the advice changes no values. If the kernel refuses it, pages stay small.
    unsafe { libc::madvise(memory.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Moves this thread to another processor, if its affinity allows one; the scheduler may move it
/// back later.
pub fn step_aside() {
    let size = size_of::<libc::cpu_set_t>();
    let mut allowed = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: `allowed` has space for the set; 0 is the calling thread.
    if unsafe { libc::sched_getaffinity(0, size, allowed.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: all zeros is a valid, empty set, and the call above has filled it.
    let allowed = unsafe { allowed.assume_init() };
    let mut others = allowed;
    let Ok(here) = usize::try_from(current()) else { return };
    if here >= 8 * size {
        return;
    }
    // SAFETY: these access only `others`, which has a bit for this processor.
    let alone = unsafe {
        libc::CPU_CLR(here, &mut others);
        libc::CPU_COUNT(&others) == 0
    };
    if alone {
        return;
    }
    // SAFETY: both sets are valid, and contain processors that this thread may use. The second call
    // restores the affinity, so that later threads do not inherit the restriction.
    unsafe {
        libc::sched_setaffinity(0, size, &raw const others);
        libc::sched_setaffinity(0, size, &raw const allowed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<usize> {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: `set` has space for the set, and zeros are a valid one.
        let set = unsafe {
            assert_eq!(
                libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()),
                0
            );
            set.assume_init()
        };
        // SAFETY: the numbers are within the set.
        (0..1024).filter(|&number| unsafe { libc::CPU_ISSET(number, &set) }).collect()
    }

    #[test]
    fn stepping_aside_restores_the_affinity() {
        let before = allowed();
        step_aside();
        assert_eq!(allowed(), before);
        assert!(before.contains(&(current() as usize)));
    }
}
