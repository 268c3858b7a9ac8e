//! The memory of tensors: aligned for the widest vectors, with a cache of blocks for reuse.
//!
//! Fresh memory is slow: each page faults and is cleared when it is first touched, which takes
//! longer than many operations do. So blocks are reused: small ones by the thread that drops them,
//! large ones, up to a limit, by all threads.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gt_worker::EngineError;

use crate::budget;
use crate::processor;

/// The alignment of all memory allocated here: a cache line, and the widest vector.
const ALIGN: usize = 64;

/// The number of size classes. Blocks of 64 bytes to 64 KiB have sizes that are powers of two and
/// are cached by the thread that drops them, up to [`CACHED_BYTES`] of each size.
const CLASSES: usize = 11;
const CACHED_BYTES: usize = 128 << 10;

/// Larger blocks, up to this size, are cached for all threads, [`CACHED_LARGE`] bytes together.
const LARGEST_CACHED: usize = 64 << 20;
const CACHED_LARGE: usize = 256 << 20;

/// Blocks of at least this size are placed in huge pages: one page fault instead of 512, and fewer
/// TLB misses.
const HUGE: usize = 4 << 20;

/// A block of memory from the allocator, returned to it when dropped. It exposes only its address.
struct CachedBlock {
    data: NonNull<u8>,
    capacity: usize,
}

// SAFETY: the block owns its memory, which any thread may return to the allocator.
unsafe impl Send for CachedBlock {}
// SAFETY: a shared reference to a block exposes only its address.
unsafe impl Sync for CachedBlock {}

impl CachedBlock {
    /// Allocates uninitialized memory. `capacity` is a result of [`round`].
    fn allocate(capacity: usize) -> Option<CachedBlock> {
        assert!(capacity > 0);
        // SAFETY: the capacity is not 0.
        let data = NonNull::new(unsafe { alloc(layout(capacity)) })?;
        if capacity >= HUGE {
            processor::use_huge_pages(data, capacity);
        }
        Some(CachedBlock { data, capacity })
    }
}

impl Drop for CachedBlock {
    fn drop(&mut self) {
        // SAFETY: allocated with the same layout, and deallocated once.
        unsafe { dealloc(self.data.as_ptr(), layout(self.capacity)) }
    }
}

/// Memory that tensors share. It exposes its address; code that dereferences it must prove that
/// this is sound.
pub struct Buffer {
    memory: Memory,
    /// The requested bytes. The memory may be larger; the rest is never written.
    length: usize,
}

enum Memory {
    /// Allocated here; `None` only while the buffer is dropped.
    Own(Option<CachedBlock>),
    /// Owned by other code and kept alive here; never written.
    Foreign(Bytes),
}

impl Buffer {
    /// Allocates uninitialized memory for `bytes` bytes.
    pub fn new(bytes: usize) -> Result<Arc<Buffer>, EngineError> {
        let capacity = round(bytes).ok_or(EngineError::OutOfMemory { bytes })?;
        let left = if is_counted(bytes) { budget::reserve(bytes)? } else { u64::MAX };
        let block = take_cached(capacity).or_else(|| {
            // Cached blocks may occupy at most what the budget leaves.
            if left < CACHED_LARGE as u64 {
                release_cached_beyond(left);
            }
            CachedBlock::allocate(capacity)
        });
        let Some(block) = block else {
            if is_counted(bytes) {
                budget::release(bytes);
            }
            return Err(EngineError::OutOfMemory { bytes });
        };
        Ok(Arc::new(Buffer { memory: Memory::Own(Some(block)), length: bytes }))
    }

    /// Shares memory owned by other code instead of copying it.
    pub fn foreign(bytes: Bytes) -> Arc<Buffer> {
        let length = bytes.len();
        if is_counted(length) {
            budget::charge(length);
        }
        Arc::new(Buffer { memory: Memory::Foreign(bytes), length })
    }

    /// Returns the address of the memory. It may be written only if it has no [`Buffer::owner`].
    pub fn data(&self) -> *mut u8 {
        match &self.memory {
            Memory::Own(block) => {
                block.as_ref().expect("the block is allocated until drop").data.as_ptr()
            }
            Memory::Foreign(bytes) => bytes.as_ptr().cast_mut(),
        }
    }

    /// Returns the requested size in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns the size of the memory in bytes.
    pub fn capacity(&self) -> usize {
        match &self.memory {
            Memory::Own(block) => {
                block.as_ref().expect("the block is allocated until drop").capacity
            }
            Memory::Foreign(bytes) => bytes.len(),
        }
    }

    /// Returns the shared memory if other code owns it, `None` if it was allocated here.
    pub fn owner(&self) -> Option<&Bytes> {
        match &self.memory {
            Memory::Own(_) => None,
            Memory::Foreign(bytes) => Some(bytes),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if is_counted(self.length) {
            budget::release(self.length);
        }
        if let Memory::Own(block) = &mut self.memory
            && let Some(block) = block.take()
        {
            cache(block);
        }
    }
}

/// Returns whether a block of this size is counted by the budget.
fn is_counted(bytes: usize) -> bool {
    bytes > budget::UNCOUNTED
}

/// Returns the capacity of a block for `bytes` bytes: of a size class, or a multiple of the cache
/// line. `None` if it is too large to allocate.
fn round(bytes: usize) -> Option<usize> {
    if bytes <= ALIGN << (CLASSES - 1) {
        return Some(bytes.max(ALIGN).next_power_of_two());
    }
    // Similar sizes share blocks: at most an eighth is wasted.
    let step = (bytes.checked_next_power_of_two()? / 16).max(ALIGN);
    let step = if bytes <= LARGEST_CACHED { step } else { ALIGN };
    let capacity = bytes.checked_next_multiple_of(step)?;
    (capacity <= isize::MAX as usize - processor::HUGE_PAGE).then_some(capacity)
}

fn class(capacity: usize) -> Option<usize> {
    (capacity <= ALIGN << (CLASSES - 1)).then(|| (capacity / ALIGN).trailing_zeros() as usize)
}

fn layout(capacity: usize) -> Layout {
    let align = if capacity >= HUGE { processor::HUGE_PAGE } else { ALIGN };
    Layout::from_size_align(capacity, align).expect("`round` checks the size")
}

thread_local! {
    /// The blocks cached by this thread, by size class.
    static CACHED: RefCell<[Vec<CachedBlock>; CLASSES]> =
        const { RefCell::new([const { Vec::new() }; CLASSES]) };
}

/// The large cached blocks, by capacity.
struct Large {
    blocks: BTreeMap<usize, Vec<CachedBlock>>,
    bytes: usize,
}

static LARGE: Mutex<Large> = Mutex::new(Large { blocks: BTreeMap::new(), bytes: 0 });

fn large() -> MutexGuard<'static, Large> {
    LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the large cached blocks to the system.
pub fn release_cached() {
    release_cached_beyond(0);
}

/// Returns large cached blocks to the system, the largest first, until at most this many bytes are
/// cached.
fn release_cached_beyond(most: u64) {
    let mut large = large();
    while large.bytes as u64 > most {
        let Some(mut largest) = large.blocks.last_entry() else { break };
        let capacity = *largest.key();
        match largest.get_mut().pop() {
            Some(_) => large.bytes -= capacity,
            None => drop(largest.remove()),
        }
    }
}

/// Removes a block of exactly this capacity from the cache.
fn take_cached(capacity: usize) -> Option<CachedBlock> {
    if let Some(class) = class(capacity) {
        return CACHED.try_with(|kept| kept.borrow_mut()[class].pop()).ok().flatten();
    }
    let mut large = large();
    let block = large.blocks.get_mut(&capacity)?.pop()?;
    large.bytes -= capacity;
    Some(block)
}

/// Caches a block for reuse, unless enough blocks of its size are cached or the thread is shutting
/// down.
fn cache(block: CachedBlock) {
    let capacity = block.capacity;
    if let Some(class) = class(capacity) {
        // If the thread is shutting down, the block is dropped with the closure.
        let _ = CACHED.try_with(|kept| {
            let blocks = &mut kept.borrow_mut()[class];
            if blocks.len() * capacity < CACHED_BYTES {
                blocks.push(block);
            }
        });
        return;
    }
    let mut large = large();
    if capacity <= LARGEST_CACHED && large.bytes + capacity <= CACHED_LARGE {
        large.bytes += capacity;
        large.blocks.entry(capacity).or_default().push(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_reused() {
        for bytes in [0, 1, 64, 65, 4096, 65_536, 65_537, 1 << 20] {
            let buffer = Buffer::new(bytes).unwrap();
            assert_eq!(buffer.data() as usize % ALIGN, 0);
            assert!(buffer.capacity() >= bytes);
        }
        let first = Buffer::new(100).unwrap().data();
        assert_eq!(Buffer::new(90).unwrap().data(), first);
    }

    #[test]
    fn too_large_sizes_are_errors() {
        assert!(Buffer::new(usize::MAX - 3).is_err());
        assert!(Buffer::new(1 << 60).is_err());
    }
}
