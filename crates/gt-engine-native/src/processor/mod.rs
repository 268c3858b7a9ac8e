//! The processor that a thread runs on, and huge pages.
//!
//! The kernel may place a woken thread on the processor of the thread that woke it, where the two
//! then take turns instead of running in parallel: in virtual machines, an idle processor can look
//! busy to the kernel.
//!
//! - [`linux`]: asks the scheduler, and moves a thread by its affinity.
//! - [`unknown`]: other systems, where threads stay where the system puts them.

/// The size of a huge page in bytes; blocks that use huge pages are aligned to it.
pub const HUGE_PAGE: usize = 2 << 20;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(test, not(target_os = "linux")))]
mod unknown;

#[cfg(target_os = "linux")]
pub use linux::{current, step_aside, use_huge_pages};
#[cfg(not(target_os = "linux"))]
pub use unknown::{current, step_aside, use_huge_pages};
