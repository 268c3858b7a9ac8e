//! Which processor a thread runs on, and pages of memory.
//!
//! Who wakes a thread may get it onto his own processor, where the two then take turns instead of
//! working side by side: in virtual machines an idle processor can look taken to the kernel.
//!
//! - [`linux`]: asks the scheduler, and moves a thread by its affinity.
//! - [`unknown`]: other systems report neither, so threads stay where the system puts them.

/// The bytes of a huge page, to which memory that is to have some is aligned.
pub const HUGE_PAGE: usize = 2 << 20;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(test, not(target_os = "linux")))]
mod unknown;

#[cfg(target_os = "linux")]
pub use linux::{current, step_aside, use_huge_pages};
#[cfg(not(target_os = "linux"))]
pub use unknown::{current, step_aside, use_huge_pages};
