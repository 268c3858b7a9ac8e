//! The names of all tensors, kept from one listing to the next: only what has changed is looked at again.

use gt_ir::TensorId;
use gt_ir::names::Names;
use rustc_hash::FxHashSet;

use super::Store;

/// How many words of names may change between two listings; beyond that all tensors are looked at.
const WORDS: usize = 1 << 16;

/// The names as they were listed last, and the words of those that were made or freed since.
#[derive(Default)]
pub(super) struct ListedNames {
    names: Names,
    /// None until the first listing, and after too many changes.
    changed: Option<FxHashSet<u64>>,
    /// The words of the last two changes: tensors are mostly made and freed in order.
    last: [u64; 2],
}

impl ListedNames {
    /// A tensor is made or freed.
    #[inline]
    pub fn note(&mut self, id: TensorId) {
        let word = Names::word(id);
        if self.last[0] != word && self.last[1] != word {
            self.note_word(word);
        }
    }

    fn note_word(&mut self, word: u64) {
        self.last = [word, self.last[0]];
        let Some(changed) = &mut self.changed else { return };
        changed.insert(word);
        if changed.len() > WORDS {
            self.changed = None;
        }
    }
}

impl<T> Store<T> {
    /// The names of all tensors.
    pub fn names(&mut self) -> Names {
        let Store { tensors, listed, .. } = self;
        match listed.changed.take() {
            Some(changed) => {
                let mut words: Vec<u64> = changed.into_iter().collect();
                words.sort_unstable();
                listed.names.renew(&words, |id| tensors.contains_key(&id));
            }
            None => {
                let mut ids: Vec<TensorId> = tensors.keys().copied().collect();
                ids.sort_unstable();
                listed.names = ids.into_iter().collect();
            }
        }
        (listed.changed, listed.last) = (Some(FxHashSet::default()), [u64::MAX; 2]);
        listed.names.clone()
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::{DType, Meta, Shape, SourceId};

    use super::*;
    use crate::store::HeldTotals;

    #[test]
    fn a_listing_has_what_is_there_however_much_has_changed() {
        let meta = Meta::new(DType::F32, Shape::SCALAR);
        let (mut store, mut held) = (Store::default(), HeldTotals::default());
        let listed = |store: &mut Store<u8>| {
            let names: Vec<u64> = store.names().iter().map(|id| id.0).collect();
            names
        };
        for id in [5, 70, 1 << 44] {
            store.keep(&mut held, TensorId(id), 0, meta, SourceId(1));
        }
        assert_eq!(listed(&mut store), [5, 70, 1 << 44]);
        store.free(&mut held, TensorId(70));
        store.keep(&mut held, TensorId(6), 0, meta, SourceId(1));
        store.keep(&mut held, TensorId(500), 0, meta, SourceId(1));
        let (taken, meta) = store.take(TensorId(5)).unwrap();
        assert_eq!(listed(&mut store), [6, 500, 1 << 44]);
        store.put_back(TensorId(5), taken, meta);
        assert_eq!(listed(&mut store), [5, 6, 500, 1 << 44]);
        for id in 1000..1000 + 65 * WORDS as u64 {
            store.keep(&mut held, TensorId(id), 0, meta, SourceId(1));
            store.free(&mut held, TensorId(id));
        }
        assert!(store.listed.changed.is_none());
        assert_eq!(listed(&mut store), [5, 6, 500, 1 << 44]);
        store.clear(&mut held);
        assert_eq!(listed(&mut store), [0; 0]);
    }
}
