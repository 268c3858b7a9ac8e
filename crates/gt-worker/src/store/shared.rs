//! Buffers that several tensors of a lane share, or that are longer than their tensor: views.
//!
//! A buffer is charged once, with all its bytes, for as long as any of its tensors is held. That of a
//! published tensor is not charged to those that read it.

use gt_ir::TensorId;
use rustc_hash::FxHashMap;

use super::borrowed::BorrowedBuffers;
use crate::engine::SharedBuffer;

/// Smaller buffers are never copied out, even if little of them is used.
const LARGE: u64 = 1 << 20;
/// A buffer is replaced by copies if these are smaller by this factor.
const WASTED: u64 = 4;

/// The shared buffers of a lane.
#[derive(Default)]
pub(crate) struct SharedBuffers {
    buffers: FxHashMap<u64, Users>,
    of: FxHashMap<TensorId, (u64, u64)>,
    /// The buffers of which little is used since a tensor was freed.
    wasted: Vec<u64>,
    /// The tensors that repeat elements, and the bytes by which their elements exceed their
    /// buffers.
    repeated: FxHashMap<TensorId, u64>,
    /// The sum of these bytes.
    beyond: u64,
    /// The tensors in buffers of publications.
    pub borrowed: BorrowedBuffers,
    /// The tensors whose memory publications have as well, with its numbers.
    published: FxHashMap<TensorId, u64>,
}

struct Users {
    /// The buffer's size.
    bytes: u64,
    count: u32,
    /// The bytes of all tensors in it.
    used: u64,
    /// Its number, if publications have it and the tensor that was published is freed.
    published: Option<u64>,
}

impl SharedBuffers {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.of.is_empty() && self.borrowed.is_empty() && self.published.is_empty()
    }

    /// Adds a tensor of `bytes` bytes to a buffer; returns the bytes to charge. If another tensor
    /// was charged for the buffer already, `first` has that one's id and bytes.
    pub fn add(
        &mut self,
        id: TensorId,
        bytes: u64,
        buffer: SharedBuffer,
        first: Option<(TensorId, u64)>,
    ) -> u64 {
        let more = bytes.saturating_sub(buffer.bytes);
        if more > 0 {
            self.repeated.insert(id, more);
            self.beyond += more;
        }
        if first.is_some_and(|(first, _)| self.borrowed.add_view(id, first)) {
            return 0;
        }
        let new = Users { bytes: buffer.bytes, count: 0, used: 0, published: None };
        let is_new = !self.buffers.contains_key(&buffer.id);
        let users = self.buffers.entry(buffer.id).or_insert(new);
        let first = first.filter(|_| is_new);
        if let Some((_, charged)) = first {
            // The bytes that were charged are released.
            users.bytes = users.bytes.max(charged);
        }
        for (id, bytes) in first.into_iter().chain([(id, bytes)]) {
            users.count += 1;
            users.used += bytes;
            self.of.insert(id, (buffer.id, bytes));
        }
        if is_new { users.bytes - first.map_or(0, |(_, bytes)| bytes.min(users.bytes)) } else { 0 }
    }

    /// Whether a tensor repeats elements, so that a copy takes more than its buffer.
    #[inline]
    pub fn repeats(&self, id: TensorId) -> bool {
        !self.repeated.is_empty() && self.repeated.contains_key(&id)
    }

    /// Returns the bytes that all tensors would take beyond their buffers if none repeated
    /// elements.
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Whether a tensor is in a shared buffer.
    pub fn has(&self, id: TensorId) -> bool {
        self.of.contains_key(&id) || self.borrowed.has(id)
    }

    /// The bytes that are charged for a tensor's buffer, if it is in a shared one, and whether others
    /// are in it.
    pub fn buffer_of(&self, id: TensorId) -> Option<(u64, bool)> {
        if self.borrowed.has(id) {
            return Some((0, true));
        }
        let users = self.buffers.get(&self.of.get(&id)?.0)?;
        Some((users.bytes, users.count > 1))
    }

    /// Notes that publications have the memory of a tensor, by its number.
    pub fn publish(&mut self, id: TensorId, number: u64) {
        self.published.insert(id, number);
    }

    /// Returns the number of a tensor's memory, if publications have or had it.
    pub fn published(&self, id: TensorId) -> Option<u64> {
        let users = || self.buffers.get(&self.of.get(&id)?.0);
        self.published.get(&id).copied().or_else(|| users()?.published)
    }

    /// Removes a tensor; returns the bytes to release, which are `own` if it is in no shared buffer,
    /// and the number of the memory if publications have it.
    pub fn remove(&mut self, id: TensorId, own: u64) -> (u64, Option<u64>) {
        if !self.repeated.is_empty() {
            self.beyond -= self.repeated.remove(&id).unwrap_or(0);
        }
        if self.borrowed.remove(id) {
            return (0, None);
        }
        let published = if self.published.is_empty() { None } else { self.published.remove(&id) };
        let Some((buffer, bytes)) = self.of.remove(&id) else { return (own, published) };
        let Some(users) = self.buffers.get_mut(&buffer) else { return (own, published) };
        users.count -= 1;
        users.used -= bytes;
        users.published = users.published.or(published);
        if users.count == 0 {
            let released = (users.bytes, users.published);
            self.buffers.remove(&buffer);
            return released;
        }
        if users.bytes >= LARGE && users.used <= users.bytes / WASTED {
            self.wasted.push(buffer);
        }
        (0, None)
    }

    /// The tensors of buffers of which little is used, to be copied out.
    pub fn take_wasted(&mut self) -> Vec<TensorId> {
        let wasted = std::mem::take(&mut self.wasted);
        let is_wasted = |(_, (buffer, _)): &(&TensorId, &(u64, u64))| wasted.contains(buffer);
        let mut ids: Vec<TensorId> = match wasted.is_empty() {
            true => Vec::new(),
            false => self.of.iter().filter(is_wasted).map(|(id, _)| *id).collect(),
        };
        ids.sort_unstable();
        ids
    }

    pub fn has_wasted(&self) -> bool {
        !self.wasted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_charged_once_and_until_its_last_tensor_goes() {
        let buffer = SharedBuffer { id: 7, bytes: 8 << 20 };
        let mut shared = SharedBuffers::default();
        let base = Some((TensorId(1), 8 << 20));
        assert_eq!(shared.add(TensorId(2), 100, buffer, base), 0, "the base is charged for it");
        assert_eq!(shared.add(TensorId(3), 50, buffer, base), 0);
        assert_eq!(shared.remove(TensorId(9), 40), (40, None));
        assert!(!shared.has_wasted());
        assert_eq!(shared.remove(TensorId(1), 8 << 20), (0, None));
        assert_eq!(shared.take_wasted(), [TensorId(2), TensorId(3)]);
        assert_eq!(shared.remove(TensorId(2), 100), (0, None));
        assert_eq!(shared.remove(TensorId(3), 50), (8 << 20, None));
        assert!(shared.is_empty());
        // A slice whose base was freed is charged for the whole buffer.
        assert_eq!(shared.add(TensorId(4), 100, buffer, None), 8 << 20);
    }
}
