//! A lane's tensors, by name, with accounting of the memory they hold.

use std::sync::Arc;

use gt_ir::message::Failure;
use gt_ir::{Meta, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The state of a tensor.
pub(crate) enum Stored<T> {
    Ready {
        tensor: T,
        meta: Meta,
    },
    Failed(Arc<Failure>),
    /// Waits for an exchange.
    Pending,
}

/// The tensors and bytes held in all lanes of a worker.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Held {
    pub tensors: u64,
    pub bytes: u64,
    pub bytes_peak: u64,
}

impl Held {
    fn add(&mut self, meta: &Meta) {
        self.tensors += 1;
        self.bytes += meta.bytes() as u64;
        self.bytes_peak = self.bytes_peak.max(self.bytes);
    }

    fn remove(&mut self, meta: &Meta) {
        self.tensors -= 1;
        self.bytes -= meta.bytes() as u64;
    }
}

/// The tensors of a lane, by name.
pub(crate) struct Store<T> {
    tensors: FxHashMap<TensorId, Stored<T>>,
    /// How many are pending.
    pending: usize,
    bytes: u64,
}

impl<T> Default for Store<T> {
    fn default() -> Store<T> {
        Store { tensors: FxHashMap::default(), pending: 0, bytes: 0 }
    }
}

impl<T> Store<T> {
    #[inline]
    pub fn get(&self, id: TensorId) -> Option<&Stored<T>> {
        self.tensors.get(&id)
    }

    /// A tensor that is ready.
    #[inline]
    pub fn ready(&self, id: TensorId) -> Option<&T> {
        match self.tensors.get(&id) {
            Some(Stored::Ready { tensor, .. }) => Some(tensor),
            _ => None,
        }
    }

    /// Shape and dtype of a tensor that is ready.
    pub fn meta(&self, id: TensorId) -> Option<Meta> {
        match self.tensors.get(&id) {
            Some(Stored::Ready { meta, .. }) => Some(*meta),
            _ => None,
        }
    }

    #[inline]
    pub fn is_pending(&self, id: TensorId) -> bool {
        self.pending > 0 && matches!(self.tensors.get(&id), Some(Stored::Pending))
    }

    /// Whether anything is pending.
    #[inline]
    pub fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// The bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Stores a tensor.
    #[inline]
    pub fn keep(&mut self, held: &mut Held, id: TensorId, tensor: T, meta: Meta) {
        held.add(&meta);
        self.bytes += meta.bytes() as u64;
        let before = self.tensors.insert(id, Stored::Ready { tensor, meta });
        self.forget(held, before);
    }

    pub fn fail(&mut self, held: &mut Held, id: TensorId, failure: Arc<Failure>) {
        let before = self.tensors.insert(id, Stored::Failed(failure));
        self.forget(held, before);
    }

    /// Marks a tensor as pending.
    pub fn wait_for(&mut self, held: &mut Held, id: TensorId) {
        self.pending += 1;
        let before = self.tensors.insert(id, Stored::Pending);
        self.forget(held, before);
    }

    /// Frees a tensor.
    #[inline]
    pub fn free(&mut self, held: &mut Held, id: TensorId) {
        let before = self.tensors.remove(&id);
        self.forget(held, before);
    }

    /// Takes out a tensor that is ready. It counts as held until [`Store::put_back`] or
    /// [`Store::release`].
    #[inline]
    pub fn take(&mut self, id: TensorId) -> Option<(T, Meta)> {
        match self.tensors.remove(&id)? {
            Stored::Ready { tensor, meta } => Some((tensor, meta)),
            other => {
                self.tensors.insert(id, other);
                None
            }
        }
    }

    /// Puts back a taken tensor.
    pub fn put_back(&mut self, id: TensorId, tensor: T, meta: Meta) {
        self.tensors.insert(id, Stored::Ready { tensor, meta });
    }

    /// Stops counting a taken tensor.
    #[inline]
    pub fn release(&mut self, held: &mut Held, meta: &Meta) {
        held.remove(meta);
        self.bytes -= meta.bytes() as u64;
    }

    #[inline]
    fn forget(&mut self, held: &mut Held, before: Option<Stored<T>>) {
        match before {
            Some(Stored::Ready { meta, .. }) => self.release(held, &meta),
            Some(Stored::Pending) => self.pending -= 1,
            Some(Stored::Failed(_)) | None => {}
        }
    }

    /// Frees the tensors in a set, except pending ones.
    pub fn free_all(&mut self, held: &mut Held, ids: &FxHashSet<TensorId>) {
        let there = |id: &&TensorId| self.tensors.contains_key(id) && !self.is_pending(**id);
        let ids: Vec<TensorId> = ids.iter().filter(there).copied().collect();
        ids.into_iter().for_each(|id| self.free(held, id));
    }

    /// Frees all tensors.
    pub fn clear(&mut self, held: &mut Held) {
        // All are freed, so the order does not matter.
        let all = std::mem::take(&mut self.tensors);
        #[allow(clippy::iter_over_hash_type, reason = "sums are the same in any order")]
        for stored in all.into_values() {
            self.forget(held, Some(stored));
        }
    }

    /// The metas of all tensors that are ready.
    pub fn metas(&self) -> impl Iterator<Item = Meta> + '_ {
        self.tensors.values().filter_map(|stored| match stored {
            Stored::Ready { meta, .. } => Some(*meta),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_ir::{DType, Shape};

    #[test]
    fn what_is_held_is_counted() {
        let meta = Meta::new(DType::F32, Shape::new(&[10]).unwrap());
        let (mut store, mut held) = (Store::default(), Held::default());
        store.keep(&mut held, TensorId(1), "a", meta);
        store.keep(&mut held, TensorId(1), "b", meta);
        store.keep(&mut held, TensorId(2), "c", meta);
        assert_eq!((held.tensors, held.bytes, held.bytes_peak), (2, 80, 80));
        assert_eq!(store.take(TensorId(2)), Some(("c", meta)));
        assert_eq!(held.bytes, 80);
        store.release(&mut held, &meta);
        store.wait_for(&mut held, TensorId(3));
        assert!(store.is_pending(TensorId(3)) && store.take(TensorId(3)).is_none());
        store.free(&mut held, TensorId(3));
        assert!(!store.has_pending());
        store.clear(&mut held);
        assert_eq!((held.tensors, held.bytes, store.bytes()), (0, 0, 0));
    }
}
