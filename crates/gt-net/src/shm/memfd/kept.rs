//! The receiver's caches: mappings of reusable blocks, and memory to copy them to. New memory is
//! expensive, as the kernel clears it page by page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gt_ir::data::SharedBlock;
use memmap2::MmapMut;

use super::error;
use super::words::Words;
use crate::error::NetError;

/// The most mappings, and the most pieces of memory.
const KEPT: usize = 32;
/// The most bytes of memory.
const KEPT_BYTES: usize = 512 << 20;
/// How long each is kept after its last use.
const KEPT_FOR: Duration = Duration::from_secs(30);

struct BlockCache {
    /// Whether this process calls [`tidy`]; if not, nothing is kept.
    tidies: bool,
    mapped: Vec<Mapped>,
    memory: Vec<(MmapMut, Instant)>,
}

/// A mapping of another process's reusable block.
struct Mapped {
    pid: u32,
    fd: i32,
    words: Arc<Words>,
    used: Instant,
}

static STORE: Mutex<BlockCache> =
    Mutex::new(BlockCache { tidies: false, mapped: Vec::new(), memory: Vec::new() });

fn store() -> MutexGuard<'static, BlockCache> {
    STORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frees what has been unused for a while. A process that never calls this keeps nothing.
pub fn tidy() {
    let mut store = store();
    store.tidies = true;
    if store.mapped.is_empty() && store.memory.is_empty() {
        return;
    }
    let now = Instant::now();
    store.mapped.retain(|mapped| now.duration_since(mapped.used) < KEPT_FOR);
    store.memory.retain(|(_, used)| now.duration_since(*used) < KEPT_FOR);
}

/// The cached mapping for a block's process and descriptor. The descriptor may since refer to
/// another block: the caller must check the token.
pub fn words(block: &SharedBlock) -> Option<Arc<Words>> {
    let mut store = store();
    let is_it = |mapped: &&mut Mapped| (mapped.pid, mapped.fd) == (block.pid, block.fd);
    let mapped = store.mapped.iter_mut().find(is_it)?;
    mapped.used = Instant::now();
    Some(Arc::clone(&mapped.words))
}

pub fn keep_words(block: &SharedBlock, words: Arc<Words>) {
    let mut store = store();
    store.mapped.retain(|mapped| (mapped.pid, mapped.fd) != (block.pid, block.fd));
    if !store.tidies {
        return;
    }
    if store.mapped.len() == KEPT {
        let oldest = (0..KEPT).min_by_key(|&index| store.mapped[index].used);
        oldest.map(|index| store.mapped.swap_remove(index));
    }
    store.mapped.push(Mapped { pid: block.pid, fd: block.fd, words, used: Instant::now() });
}

/// Private memory, returned to the cache on drop.
pub struct CachedMemory {
    /// `Some` until it is dropped.
    map: Option<MmapMut>,
    length: usize,
}

impl CachedMemory {
    /// Memory of this length.
    pub fn new(length: usize) -> Result<CachedMemory, NetError> {
        // Small pages, as huge pages are fast only while the system has free ones.
        let fresh = || MmapMut::map_anon(length.max(1)).map_err(error);
        let map = take(length).map_or_else(fresh, Ok)?;
        Ok(CachedMemory { map: Some(map), length })
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let map = self.map.as_mut().expect("it is there until it is dropped");
        &mut map[..self.length]
    }
}

impl AsRef<[u8]> for CachedMemory {
    fn as_ref(&self) -> &[u8] {
        let map = self.map.as_ref().expect("it is there until it is dropped");
        &map[..self.length]
    }
}

impl Drop for CachedMemory {
    fn drop(&mut self) {
        let Some(map) = self.map.take() else { return };
        let mut store = store();
        let bytes: usize = store.memory.iter().map(|(map, _)| map.len()).sum();
        let has_room = store.memory.len() < KEPT && bytes + map.len() <= KEPT_BYTES;
        if store.tidies && has_room {
            store.memory.push((map, Instant::now()));
        }
    }
}

/// Cached memory of at most twice the length, if there is any.
fn take(length: usize) -> Option<MmapMut> {
    let mut store = store();
    let fits = |map: &MmapMut| map.len() >= length && map.len() / 2 <= length;
    let found = store.memory.iter().position(|(map, _)| fits(map))?;
    Some(store.memory.swap_remove(found).0)
}
