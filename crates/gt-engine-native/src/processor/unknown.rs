//! Systems that do not report the processor of a thread, such as macOS.

use std::ptr::NonNull;

/// Returns a negative number: the processor is unknown.
pub fn current() -> i32 {
    -1
}

/// Does nothing: the system chooses the size of pages.
pub fn use_huge_pages(_memory: NonNull<u8>, _bytes: usize) {}

/// Does nothing: the system has no affinity to set.
pub fn step_aside() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_processor_is_unknown() {
        assert!(current() < 0);
        step_aside();
        use_huge_pages(NonNull::dangling(), 0);
        assert!(current() < 0);
    }
}
