//! The storage that a tensor shares with its views.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::node::TapeNode;
use super::{Tensor, TensorImpl};
use crate::session::StreamValue;

/// The storage state of a root and its views.
#[derive(Default)]
pub(super) struct SharedStorage {
    /// The number of in-place changes.
    version: AtomicU64,
    /// Whether a view may have one element of the root several times, so that it cannot become
    /// independent.
    pub repeats: AtomicBool,
    /// Whether it is that of a publication: in-place changes are errors.
    is_published: AtomicBool,
    root: Mutex<StorageRoot>,
}

#[derive(Default)]
pub(super) enum StorageRoot {
    /// A live tensor.
    Alive(Weak<Mutex<TensorImpl>>),
    /// The root's last state, after it was dropped.
    Dropped { value: Arc<StreamValue>, node: Option<Arc<TapeNode>> },
    #[default]
    Released,
}

impl TensorImpl {
    /// Returns the storage that the tensor shares with its views, as their root.
    pub(super) fn root_storage(&mut self, own: &Arc<Mutex<TensorImpl>>) -> &Arc<SharedStorage> {
        self.storage.get_or_insert_with(|| {
            let root = Mutex::new(StorageRoot::Alive(Arc::downgrade(own)));
            Arc::new(SharedStorage { root, ..SharedStorage::default() })
        })
    }

    /// Marks a tensor, and what shares its storage, as that of a publication.
    pub(super) fn set_published(&mut self, own: &Arc<Mutex<TensorImpl>>) {
        self.root_storage(own).is_published.store(true, Ordering::Relaxed);
    }

    /// Returns whether its storage is that of a publication.
    pub(super) fn is_published(&self) -> bool {
        let own = self.storage.iter();
        let mut all = own.chain(self.view.iter().map(|view| view.storage()));
        all.any(|storage| storage.is_published.load(Ordering::Relaxed))
    }
}

impl SharedStorage {
    pub fn bump_version(&self) -> u64 {
        self.version.fetch_add(1, Ordering::AcqRel) + 1
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Makes views independent of the root.
    pub fn release(&self) {
        *self.lock() = StorageRoot::Released;
    }

    /// Records that the root was dropped; its value is kept if a view may still need it.
    pub fn drop_root(
        self: &Arc<SharedStorage>,
        value: &Arc<StreamValue>,
        node: Option<Arc<TapeNode>>,
    ) {
        let views = Arc::strong_count(self) - 1;
        let left = match views {
            0 => StorageRoot::Released,
            // Nothing has changed: the view's value is current.
            1 if self.version() == 0 && !self.repeats.load(Ordering::Relaxed) => {
                StorageRoot::Released
            }
            _ => StorageRoot::Dropped { value: Arc::clone(value), node },
        };
        *self.lock() = left;
    }

    pub fn lock(&self) -> MutexGuard<'_, StorageRoot> {
        self.root.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns the root, or its last state.
    pub fn root(&self) -> Option<Tensor> {
        match &*self.lock() {
            StorageRoot::Alive(state) => {
                state.upgrade().map(|state| Tensor { state, detached: false })
            }
            StorageRoot::Dropped { value, node } => {
                Some(Tensor::from_parts(Arc::clone(value), node.clone()))
            }
            StorageRoot::Released => None,
        }
    }

    /// Sets the value of a dropped root.
    pub fn set_dropped_value(&self, changed: &Tensor) {
        let mut root = self.lock();
        if let StorageRoot::Dropped { value, node } = &mut *root {
            let old = (std::mem::replace(value, changed.value()), node.take());
            *node = changed.node();
            drop(root);
            drop(old);
        }
    }

    pub fn root_is_alive(&self) -> bool {
        matches!(&*self.lock(), StorageRoot::Alive(_))
    }
}
