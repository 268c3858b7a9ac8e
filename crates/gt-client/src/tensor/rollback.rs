//! Rollback points: tensors with their values at the start of a transaction.

use std::sync::Arc;

use super::Tensor;
use super::node::TapeNode;
use super::storage::SharedStorage;
use crate::context::no_grad;
use crate::error::Result;
use crate::session::StreamValue;

/// A tensor, or the root of a view, with the value that it had.
pub(crate) struct RollbackPoint {
    target: RollbackTarget,
    old: Arc<StreamValue>,
    node: Option<Arc<TapeNode>>,
}

enum RollbackTarget {
    Tensor(Tensor),
    /// The root of views, after its last reference was dropped.
    DroppedRoot(Arc<SharedStorage>),
}

impl Tensor {
    /// Returns the tensor with its current value; for a view, its root.
    pub(crate) fn rollback_point(&self) -> RollbackPoint {
        let state = self.lock();
        let Some(view) = &state.view else {
            let (old, node) = (Arc::clone(&state.value), state.node.clone());
            drop(state);
            return RollbackPoint { target: RollbackTarget::Tensor(self.clone()), old, node };
        };
        let storage = Arc::clone(view.storage());
        drop(state);
        match storage.root() {
            Some(root) if storage.root_is_alive() => root.rollback_point(),
            Some(root) => RollbackPoint {
                old: root.current_value(),
                node: root.current_node(),
                target: RollbackTarget::DroppedRoot(storage),
            },
            // By now the view is independent.
            None => {
                let (old, node) = (self.current_value(), self.current_node());
                RollbackPoint { target: RollbackTarget::Tensor(self.clone()), old, node }
            }
        }
    }

    /// Sets the tensor's value, and nothing else.
    fn set_value(&self, value: Arc<StreamValue>) {
        // The old one is dropped after the lock is released: that writes to the stream.
        let old = std::mem::replace(&mut self.lock().value, value);
        drop(old);
    }
}

impl RollbackPoint {
    pub fn old(&self) -> &Arc<StreamValue> {
        &self.old
    }

    /// Returns its current value.
    pub fn current(&self) -> Arc<StreamValue> {
        match &self.target {
            RollbackTarget::Tensor(tensor) => tensor.current_value(),
            RollbackTarget::DroppedRoot(storage) => {
                storage.root().map_or_else(|| Arc::clone(&self.old), |root| root.current_value())
            }
        }
    }

    /// Returns whether it has views, or is the remains of their root.
    pub fn is_shared(&self) -> bool {
        match &self.target {
            RollbackTarget::Tensor(tensor) => tensor.lock().storage.is_some(),
            RollbackTarget::DroppedRoot(_) => true,
        }
    }

    /// Returns whether both are of the same tensor.
    pub fn is_of_same(&self, other: &RollbackPoint) -> bool {
        match (&self.target, &other.target) {
            (RollbackTarget::Tensor(one), RollbackTarget::Tensor(other)) => {
                Arc::ptr_eq(&one.state, &other.state)
            }
            (RollbackTarget::DroppedRoot(one), RollbackTarget::DroppedRoot(other)) => {
                Arc::ptr_eq(one, other)
            }
            _ => false,
        }
    }

    /// Replaces its value by a copy with a new id, which no other tensor shares.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn reissue(&self) -> Result<Arc<StreamValue>> {
        let before = Tensor::from_parts(self.current(), None);
        let copy = no_grad(|| before.cast_always(before.dtype()))?;
        let value = copy.value();
        match &self.target {
            RollbackTarget::Tensor(tensor) => tensor.set_value(Arc::clone(&value)),
            RollbackTarget::DroppedRoot(storage) => storage.set_dropped_value(&copy),
        }
        Ok(value)
    }

    /// Has views recompute their values: the step may have been undone.
    pub fn mark_changed(&self) {
        match &self.target {
            RollbackTarget::Tensor(tensor) => {
                if let Some(storage) = &tensor.lock().storage {
                    storage.bump_version();
                }
            }
            RollbackTarget::DroppedRoot(storage) => {
                storage.bump_version();
            }
        }
    }

    /// Restores the old value.
    ///
    /// # Errors
    /// Those of an in-place change.
    pub fn restore(self) -> Result<()> {
        if Arc::ptr_eq(&self.current(), &self.old) {
            return Ok(());
        }
        let RollbackPoint { target, old, node } = &self;
        match target {
            RollbackTarget::Tensor(tensor) => {
                let mut state = tensor.lock();
                let before = std::mem::replace(&mut state.value, Arc::clone(old));
                let before_node = std::mem::replace(&mut state.node, node.clone());
                drop(state);
                drop((before, before_node));
            }
            RollbackTarget::DroppedRoot(storage) => {
                storage.set_dropped_value(&Tensor::from_parts(Arc::clone(old), node.clone()));
            }
        }
        self.mark_changed();
        Ok(())
    }
}
