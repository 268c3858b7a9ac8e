//! The memory of tensors: aligned for the widest vectors, blocks kept for reuse.
//!
//! Fresh memory is dear: the system clears it page by page when it is touched first, which takes
//! longer than many an operation on it. So small blocks are kept by the thread that drops them, and
//! large ones, up to a limit, for all.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gt_worker::EngineError;

/// Alignment of all memory that is ours: a cache line, and the widest vector.
const ALIGN: usize = 64;

/// Blocks of 64 bytes to 64 KiB come in powers of two and are kept by the thread that drops
/// them; at most [`KEPT_BYTES`] of each size.
const CLASSES: usize = 11;
const KEPT_BYTES: usize = 128 << 10;

/// Larger blocks, up to this size, are kept for all threads: so many bytes together.
const LARGEST_KEPT: usize = 64 << 20;
const KEPT_LARGE: usize = 256 << 20;

/// A block of memory that tensors share. It is written only while one tensor alone refers to
/// it, or by the operation that makes it.
pub struct Buffer {
    data: NonNull<u8>,
    capacity: usize,
    /// Memory of someone else's, held here; it is never written.
    owner: Option<Bytes>,
}

// SAFETY: a buffer is plain memory; writing needs `&mut Buffer`, or is done before it is shared.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Memory for `bytes` bytes, not initialized.
    pub fn new(bytes: usize) -> Result<Arc<Buffer>, EngineError> {
        let capacity = round(bytes).ok_or(EngineError::OutOfMemory { bytes })?;
        let data = take_kept(capacity)
            .or_else(|| {
                // SAFETY: the capacity is at least ALIGN, so not 0.
                NonNull::new(unsafe { alloc(layout(capacity)) })
            })
            .ok_or(EngineError::OutOfMemory { bytes })?;
        Ok(Arc::new(Buffer { data, capacity, owner: None }))
    }

    /// Someone else's memory, shared instead of copied.
    pub fn foreign(bytes: Bytes) -> Arc<Buffer> {
        let data = NonNull::from(&bytes[..]).cast();
        Arc::new(Buffer { data, capacity: bytes.len(), owner: Some(bytes) })
    }

    pub fn data(&self) -> *mut u8 {
        self.data.as_ptr()
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn owner(&self) -> Option<&Bytes> {
        self.owner.as_ref()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.owner.is_none() && !keep(self.data, self.capacity) {
            // SAFETY: allocated in `new` with the same layout, and given back once.
            unsafe { dealloc(self.data.as_ptr(), layout(self.capacity)) }
        }
    }
}

/// The capacity that holds `bytes` bytes: of a class, or whole cache lines.
fn round(bytes: usize) -> Option<usize> {
    if bytes <= ALIGN << (CLASSES - 1) {
        return Some(bytes.max(ALIGN).next_power_of_two());
    }
    // Sizes that differ little share their blocks: at most an eighth is lost.
    let step = (bytes.checked_next_power_of_two()? / 16).max(ALIGN);
    let step = if bytes <= LARGEST_KEPT { step } else { ALIGN };
    let capacity = bytes.checked_next_multiple_of(step)?;
    (capacity <= isize::MAX as usize - ALIGN).then_some(capacity)
}

fn class(capacity: usize) -> Option<usize> {
    (capacity <= ALIGN << (CLASSES - 1)).then(|| (capacity / ALIGN).trailing_zeros() as usize)
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGN).expect("`round` keeps it in range")
}

/// Blocks that this thread keeps, by class.
struct Kept([Vec<NonNull<u8>>; CLASSES]);

thread_local! {
    static KEPT: RefCell<Kept> = const { RefCell::new(Kept([const { Vec::new() }; CLASSES])) };
}

impl Drop for Kept {
    fn drop(&mut self) {
        for (class, blocks) in self.0.iter_mut().enumerate() {
            for block in blocks.drain(..) {
                // SAFETY: `keep` put it here with this class's capacity.
                unsafe { dealloc(block.as_ptr(), layout(ALIGN << class)) }
            }
        }
    }
}

/// Large blocks that are kept, by capacity.
struct Large {
    blocks: BTreeMap<usize, Vec<usize>>,
    bytes: usize,
}

static LARGE: Mutex<Large> = Mutex::new(Large { blocks: BTreeMap::new(), bytes: 0 });

fn large() -> MutexGuard<'static, Large> {
    LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_large(capacity: usize) -> Option<NonNull<u8>> {
    let mut large = large();
    let address = large.blocks.get_mut(&capacity)?.pop()?;
    large.bytes -= capacity;
    NonNull::new(address as *mut u8)
}

fn keep_large(block: NonNull<u8>, capacity: usize) -> bool {
    let mut large = large();
    if capacity > LARGEST_KEPT || large.bytes + capacity > KEPT_LARGE {
        return false;
    }
    large.bytes += capacity;
    large.blocks.entry(capacity).or_default().push(block.as_ptr() as usize);
    true
}

/// Gives the large blocks that are kept back to the system.
pub fn release_kept() {
    let mut large = large();
    for (capacity, blocks) in std::mem::take(&mut large.blocks) {
        for address in blocks {
            // SAFETY: `keep_large` put it here with this capacity.
            unsafe { dealloc(address as *mut u8, layout(capacity)) }
        }
    }
    large.bytes = 0;
}

fn take_kept(capacity: usize) -> Option<NonNull<u8>> {
    let Some(class) = class(capacity) else { return take_large(capacity) };
    KEPT.try_with(|kept| kept.borrow_mut().0[class].pop()).ok().flatten()
}

/// Keeps a block for reuse, unless there are enough of its size or the thread is ending.
fn keep(block: NonNull<u8>, capacity: usize) -> bool {
    let Some(class) = class(capacity) else { return keep_large(block, capacity) };
    KEPT.try_with(|kept| {
        let blocks = &mut kept.borrow_mut().0[class];
        let room = blocks.len() * capacity < KEPT_BYTES;
        if room {
            blocks.push(block);
        }
        room
    })
    .unwrap_or(false)
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
