//! A lane's tensors in the memory of publications: those that it reads, and views of them.
//!
//! Their memory is the library's, so the lane is not charged for it.

use gt_ir::stored::PublishedValues;
use gt_ir::{SessionId, TensorId};
use rustc_hash::FxHashMap;

/// The tensors of a lane in borrowed buffers.
#[derive(Default)]
pub(crate) struct BorrowedBuffers(FxHashMap<TensorId, Borrowed>);

struct Borrowed {
    publication: SessionId,
    /// The values that it is; `None` for a view of other borrowed ones.
    values: Option<Box<PublishedValues>>,
}

impl BorrowedBuffers {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub fn has(&self, id: TensorId) -> bool {
        !self.0.is_empty() && self.0.contains_key(&id)
    }

    /// Adds a published tensor.
    pub fn add(&mut self, id: TensorId, values: &PublishedValues) {
        let values = Box::new(values.clone());
        self.0.insert(id, Borrowed { publication: values.publication, values: Some(values) });
    }

    /// Adds a tensor that shares the buffer of a borrowed one; returns whether that is borrowed.
    pub fn add_view(&mut self, id: TensorId, of: TensorId) -> bool {
        let Some(&Borrowed { publication, .. }) = self.0.get(&of) else { return false };
        self.0.insert(id, Borrowed { publication, values: None });
        true
    }

    /// Removes a tensor; returns whether it is borrowed.
    pub fn remove(&mut self, id: TensorId) -> bool {
        !self.0.is_empty() && self.0.remove(&id).is_some()
    }

    /// Returns the published values that a tensor is.
    pub fn values(&self, id: TensorId) -> Option<&PublishedValues> {
        self.0.get(&id)?.values.as_deref()
    }

    /// Returns the tensors in the memory of a publication.
    pub fn of(&self, publication: SessionId) -> Vec<TensorId> {
        let of = self.0.iter().filter(|(_, borrowed)| borrowed.publication == publication);
        let mut ids: Vec<TensorId> = of.map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }
}
