//! What a receiver keeps for the next time: the blocks that it has mapped, and memory to copy them
//! to. New memory is dear: the system clears it page by page.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gt_ir::data::SharedBlock;
use memmap2::MmapMut;

use super::error;
use super::words::Words;
use crate::error::NetError;

/// How many of each, how many bytes of memory, and how long after the last use.
const KEPT: usize = 32;
const KEPT_BYTES: usize = 512 << 20;
const KEPT_FOR: Duration = Duration::from_secs(30);

struct Kept {
    /// Whether this process tidies up now and then; else it keeps nothing.
    tidies: bool,
    mapped: Vec<Mapped>,
    memory: Vec<(MmapMut, Instant)>,
}

/// A block that another process may use again.
struct Mapped {
    pid: u32,
    fd: i32,
    words: Arc<Words>,
    used: Instant,
}

static STORE: Mutex<Kept> =
    Mutex::new(Kept { tidies: false, mapped: Vec::new(), memory: Vec::new() });

fn store() -> MutexGuard<'static, Kept> {
    STORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets go of what has not been used for a while. A process that never calls this keeps nothing.
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

/// The memory of the block that had this description's place when it was read last. It may be gone,
/// and another block stand in its place: the token tells.
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

/// Memory of this process's own, kept when nobody needs it any more.
pub struct Memory {
    /// There until it is dropped.
    map: Option<MmapMut>,
    length: usize,
}

impl Memory {
    /// Room for so many bytes.
    pub fn new(length: usize) -> Result<Memory, NetError> {
        // Small pages: large ones are had at once only as long as there are any left.
        let fresh = || MmapMut::map_anon(length.max(1)).map_err(error);
        let map = take(length).map_or_else(fresh, Ok)?;
        Ok(Memory { map: Some(map), length })
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let map = self.map.as_mut().expect("it is there until it is dropped");
        &mut map[..self.length]
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        let map = self.map.as_ref().expect("it is there until it is dropped");
        &map[..self.length]
    }
}

impl Drop for Memory {
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

/// Memory that was kept, if there is some that is not much larger.
fn take(length: usize) -> Option<MmapMut> {
    let mut store = store();
    let fits = |map: &MmapMut| map.len() >= length && map.len() / 2 <= length;
    let found = store.memory.iter().position(|(map, _)| fits(map))?;
    Some(store.memory.swap_remove(found).0)
}
