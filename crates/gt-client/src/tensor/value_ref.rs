//! References to values, for callers that track changes themselves.

use std::sync::Arc;

use gt_ir::Meta;

use super::Tensor;
use crate::session::{Session, StreamValue};

/// A tensor's value at one moment, without history: no in-place change affects it.
#[derive(Clone)]
pub struct ValueRef(Arc<StreamValue>);

impl ValueRef {
    pub(crate) fn new(value: Arc<StreamValue>) -> ValueRef {
        ValueRef(value)
    }

    pub(crate) fn value(&self) -> &Arc<StreamValue> {
        &self.0
    }

    /// Returns a new tensor with this value.
    pub fn tensor(&self) -> Tensor {
        Tensor::from_parts(Arc::clone(&self.0), None)
    }

    /// Returns shape and dtype.
    pub fn meta(&self) -> &Meta {
        &self.0.meta
    }

    /// Returns the session of the value.
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// Returns a number that no other value of any session has while this one exists.
    pub fn identity(&self) -> u64 {
        Arc::as_ptr(&self.0) as u64
    }
}

impl Tensor {
    /// Returns the current value.
    pub fn value_ref(&self) -> ValueRef {
        ValueRef(self.value())
    }
}
