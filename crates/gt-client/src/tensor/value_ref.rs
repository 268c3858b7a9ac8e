//! References to values, for those who keep many of them and know themselves what changes.

use std::sync::Arc;

use gt_ir::Meta;

use super::Tensor;
use crate::session::{Session, StreamValue};

/// A tensor's value at one moment: no change in place reaches it, and it has no history.
#[derive(Clone)]
pub struct ValueRef(Arc<StreamValue>);

impl ValueRef {
    pub(crate) fn new(value: Arc<StreamValue>) -> ValueRef {
        ValueRef(value)
    }

    pub(crate) fn value(&self) -> &Arc<StreamValue> {
        &self.0
    }

    /// A tensor with this value.
    pub fn tensor(&self) -> Tensor {
        Tensor::from_parts(Arc::clone(&self.0), None)
    }

    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// A number that no other value has while this one lives, in whichever session.
    pub fn identity(&self) -> u64 {
        Arc::as_ptr(&self.0) as u64
    }
}

impl Tensor {
    /// The value that the tensor has now.
    pub fn value_ref(&self) -> ValueRef {
        ValueRef(self.value())
    }
}
