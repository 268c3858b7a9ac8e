//! Systems that do not say on which processor a thread runs, such as macOS.

use std::ptr::NonNull;

/// Negative: the system does not say.
pub fn current() -> i32 {
    -1
}

/// Leaves pages as the system makes them.
pub fn use_huge_pages(_memory: NonNull<u8>, _bytes: usize) {}

/// Leaves the thread where it is: the system has no affinity to set.
pub fn step_aside() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_processor_is_named() {
        assert!(current() < 0);
        step_aside();
        use_huge_pages(NonNull::dangling(), 0);
        assert!(current() < 0);
    }
}
