//! Tensors with the values that they had at some moment, for steps.

use std::sync::Arc;

use super::Tensor;
use super::view::Shared;
use crate::error::Result;
use crate::session::Value;
use crate::tape::{Node, no_grad};

/// A tensor, or what a view is a view of, with the value that it had.
pub(crate) struct Held {
    of: Of,
    old: Arc<Value>,
    node: Option<Arc<Node>>,
}

enum Of {
    Tensor(Tensor),
    /// The root of views, which nobody holds any more.
    Left(Arc<Shared>),
}

impl Tensor {
    /// The tensor with the value that it has now; of a view, its root.
    pub(crate) fn held(&self) -> Held {
        let state = self.lock();
        let Some(view) = &state.view else {
            let (old, node) = (Arc::clone(&state.value), state.node.clone());
            drop(state);
            return Held { of: Of::Tensor(self.clone()), old, node };
        };
        let shared = Arc::clone(view.shared());
        drop(state);
        match shared.root() {
            Some(root) if shared.is_alive() => root.held(),
            Some(root) => {
                Held { old: root.current_value(), node: root.current_node(), of: Of::Left(shared) }
            }
            // By now it goes on by itself.
            None => {
                let (old, node) = (self.current_value(), self.current_node());
                Held { of: Of::Tensor(self.clone()), old, node }
            }
        }
    }

    /// Gives the tensor a value, and nothing else.
    fn put(&self, value: Arc<Value>) {
        // The old one is dropped after the lock is released: that writes to the stream.
        let old = std::mem::replace(&mut self.lock().value, value);
        drop(old);
    }
}

impl Held {
    pub fn old(&self) -> &Arc<Value> {
        &self.old
    }

    /// The value that it has now.
    pub fn current(&self) -> Arc<Value> {
        match &self.of {
            Of::Tensor(tensor) => tensor.current_value(),
            Of::Left(shared) => {
                shared.root().map_or_else(|| Arc::clone(&self.old), |root| root.current_value())
            }
        }
    }

    /// Whether it has views, or is what views have left of a root.
    pub fn is_shared(&self) -> bool {
        match &self.of {
            Of::Tensor(tensor) => tensor.lock().shared.is_some(),
            Of::Left(_) => true,
        }
    }

    /// Whether both are of one tensor.
    pub fn is_of_same(&self, other: &Held) -> bool {
        match (&self.of, &other.of) {
            (Of::Tensor(one), Of::Tensor(other)) => Arc::ptr_eq(&one.state, &other.state),
            (Of::Left(one), Of::Left(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Gives its value a number of its own, which stands for no other tensor.
    ///
    /// # Errors
    /// The connection was lost.
    pub fn renew(&self) -> Result<Arc<Value>> {
        let before = Tensor::from_parts(self.current(), None);
        let copy = no_grad(|| before.cast_always(before.dtype()))?;
        let value = copy.value();
        match &self.of {
            Of::Tensor(tensor) => tensor.put(Arc::clone(&value)),
            Of::Left(shared) => shared.set_left(&copy),
        }
        Ok(value)
    }

    /// Has views take their values anew: the step may have been undone.
    pub fn change(&self) {
        match &self.of {
            Of::Tensor(tensor) => {
                if let Some(shared) = &tensor.lock().shared {
                    shared.changed();
                }
            }
            Of::Left(shared) => {
                shared.changed();
            }
        }
    }

    /// Gives the old value back.
    ///
    /// # Errors
    /// Those of a change in place.
    pub fn restore(self) -> Result<()> {
        if Arc::ptr_eq(&self.current(), &self.old) {
            return Ok(());
        }
        let Held { of, old, node } = &self;
        match of {
            Of::Tensor(tensor) => {
                let mut state = tensor.lock();
                let before = std::mem::replace(&mut state.value, Arc::clone(old));
                let before_node = std::mem::replace(&mut state.node, node.clone());
                drop(state);
                drop((before, before_node));
            }
            Of::Left(shared) => {
                shared.set_left(&Tensor::from_parts(Arc::clone(old), node.clone()));
            }
        }
        self.change();
        Ok(())
    }
}
