//! The memory of tensors: aligned for the widest vectors, blocks kept for reuse.
//!
//! Allocation is slow here, as each page faults and is cleared when it is first touched, which takes
//! longer than many operations do. So blocks are reused: small ones by the thread that drops
//! them, and large ones, up to a limit, by all.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gt_worker::EngineError;

use crate::budget;
use crate::processor;

/// Alignment of all memory that is ours: a cache line, and the widest vector.
const ALIGN: usize = 64;

/// Blocks of 64 bytes to 64 KiB come in powers of two and are kept by the thread that drops
/// them; at most [`CACHED_BYTES`] of each size.
const CLASSES: usize = 11;
const CACHED_BYTES: usize = 128 << 10;

/// Larger blocks, up to this size, are kept for all threads: this many bytes together.
const LARGEST_CACHED: usize = 64 << 20;
const CACHED_LARGE: usize = 256 << 20;

/// Blocks from this size on are to lie in huge pages: there is one page fault where there were 512,
/// and places far from each other are found sooner.
const HUGE: usize = 4 << 20;

/// A block of memory from the allocator, given back to it when dropped. It hands out nothing but
/// its address.
struct CachedBlock {
    data: NonNull<u8>,
    capacity: usize,
}

// SAFETY: the block owns its memory, which any thread may give back to the allocator.
unsafe impl Send for CachedBlock {}
// SAFETY: through a shared block there is its address to be had, and nothing else.
unsafe impl Sync for CachedBlock {}

impl CachedBlock {
    /// Memory that is not initialized. `capacity` comes from [`round`].
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
        // SAFETY: allocated with the same layout, and given back once.
        unsafe { dealloc(self.data.as_ptr(), layout(self.capacity)) }
    }
}

/// Memory that tensors share. It exposes its address; code that dereferences it must prove that
/// this is sound.
pub struct Buffer {
    memory: Memory,
    /// The requested bytes: the memory may have more, which are never written.
    length: usize,
}

enum Memory {
    /// There until the buffer is dropped.
    Own(Option<CachedBlock>),
    /// Someone else's, held here; it is never written.
    Foreign(Bytes),
}

impl Buffer {
    /// Memory for `bytes` bytes, not initialized.
    pub fn new(bytes: usize) -> Result<Arc<Buffer>, EngineError> {
        let capacity = round(bytes).ok_or(EngineError::OutOfMemory { bytes })?;
        let left = if is_counted(bytes) { budget::reserve(bytes)? } else { u64::MAX };
        let block = take_cached(capacity).or_else(|| {
            // Cached blocks use what the budget leaves.
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

    /// Someone else's memory, shared instead of copied.
    pub fn foreign(bytes: Bytes) -> Arc<Buffer> {
        let length = bytes.len();
        if is_counted(length) {
            budget::charge(length);
        }
        Arc::new(Buffer { memory: Memory::Foreign(bytes), length })
    }

    /// Where the memory begins. It may be written only if it has no [`Buffer::owner`].
    pub fn data(&self) -> *mut u8 {
        match &self.memory {
            Memory::Own(block) => block.as_ref().expect("it is there").data.as_ptr(),
            Memory::Foreign(bytes) => bytes.as_ptr().cast_mut(),
        }
    }

    /// How many bytes it was made for.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns its bytes.
    pub fn capacity(&self) -> usize {
        match &self.memory {
            Memory::Own(block) => block.as_ref().expect("it is there").capacity,
            Memory::Foreign(bytes) => bytes.len(),
        }
    }

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

/// Whether this many bytes draw on the budget.
fn is_counted(bytes: usize) -> bool {
    bytes > budget::UNCOUNTED
}

/// The capacity that holds `bytes` bytes: of a class, or whole cache lines.
fn round(bytes: usize) -> Option<usize> {
    if bytes <= ALIGN << (CLASSES - 1) {
        return Some(bytes.max(ALIGN).next_power_of_two());
    }
    // Sizes that differ little share their blocks: at most an eighth is lost.
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
    Layout::from_size_align(capacity, align).expect("`round` keeps it in range")
}

thread_local! {
    /// Blocks that this thread keeps, by class.
    static CACHED: RefCell<[Vec<CachedBlock>; CLASSES]> =
        const { RefCell::new([const { Vec::new() }; CLASSES]) };
}

/// Large blocks that are kept, by capacity.
struct Large {
    blocks: BTreeMap<usize, Vec<CachedBlock>>,
    bytes: usize,
}

static LARGE: Mutex<Large> = Mutex::new(Large { blocks: BTreeMap::new(), bytes: 0 });

fn large() -> MutexGuard<'static, Large> {
    LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the large blocks that are kept back to the system.
pub fn release_cached() {
    release_cached_beyond(0);
}

/// Gives so much of them back that at most this many bytes are kept; the largest first.
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

/// A block that was kept, of exactly this capacity.
fn take_cached(capacity: usize) -> Option<CachedBlock> {
    if let Some(class) = class(capacity) {
        return CACHED.try_with(|kept| kept.borrow_mut()[class].pop()).ok().flatten();
    }
    let mut large = large();
    let block = large.blocks.get_mut(&capacity)?.pop()?;
    large.bytes -= capacity;
    Some(block)
}

/// Keeps a block for reuse, unless there are enough of its size or the thread is ending.
fn cache(block: CachedBlock) {
    let capacity = block.capacity;
    if let Some(class) = class(capacity) {
        // Where the thread is ending the block is dropped with the closure.
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
    fn blocks_are_aligned_and_come_back() {
        for bytes in [0, 1, 64, 65, 4096, 65_536, 65_537, 1 << 20] {
            let buffer = Buffer::new(bytes).unwrap();
            assert_eq!(buffer.data() as usize % ALIGN, 0);
            assert!(buffer.capacity() >= bytes);
        }
        let first = Buffer::new(100).unwrap().data();
        assert_eq!(Buffer::new(90).unwrap().data(), first);
    }

    #[test]
    fn too_much_is_an_error() {
        assert!(Buffer::new(usize::MAX - 3).is_err());
        assert!(Buffer::new(1 << 60).is_err());
    }
}
