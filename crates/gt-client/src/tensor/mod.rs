//! Tensors: a value in a session's stream, and the history that gradients need.
//!
//! - [`create`]: from data, numbers, nothing, random numbers; [`default_dtype`]: of which dtype.
//! - [`apply`]: issuing an operation and recording it on the tape.
//! - [`methods`]: those that follow from the operations' declarations.
//! - [`elementwise`], [`reduce`], [`matmul`], [`shape`]: operations.
//! - [`index`]: reading and writing parts; [`elements`]: iterating.
//! - [`assign`]: changes in place, and copies; [`view`] over [`strides`]: shared storage; [`restride`]: views by strides.
//! - [`gradient`]: what a tensor has to do with gradients.
//! - [`fetch`]: getting values out; [`placement`]: where they are; [`value_ref`], [`rollback`]: references to them.

pub(crate) mod apply;
mod assign;
pub mod create;
pub mod default_dtype;
mod elements;
pub mod elementwise;
mod fetch;
mod gradient;
pub mod index;
pub mod matmul;
mod methods;
mod overlap;
mod placement;
pub mod reduce;
mod restride;
mod rollback;
pub mod shape;
pub mod strides;
mod value_ref;
mod view;
mod view_step;
mod view_steps;

use std::sync::{Arc, Mutex, MutexGuard};

use gt_ir::{DType, Meta, Shape};

use crate::session::{Session, StreamValue};
use crate::tape::TapeNode;
pub(crate) use rollback::RollbackPoint;
pub use value_ref::ValueRef;
use view::{SharedStorage, ViewState};

/// A tensor. Cloning gives another reference to the same one, as assignment does in Python.
#[derive(Clone)]
pub struct Tensor {
    state: Arc<Mutex<TensorImpl>>,
    /// Seen without its history, as [`Tensor::data`] does: changes in place change only the value.
    detached: bool,
}

struct TensorImpl {
    value: Arc<StreamValue>,
    /// The tape node that its gradient flows to, if it requires one.
    node: Option<Arc<TapeNode>>,
    /// The leaf node (with gradient and hooks) of a tensor that requires no gradient at present;
    /// kept for when it does so again.
    frozen: Option<Arc<TapeNode>>,
    /// How it follows from a root whose memory it shares.
    view: Option<Box<ViewState>>,
    /// What it shares with its views, if it has had any.
    storage: Option<Arc<SharedStorage>>,
}

impl Drop for TensorImpl {
    fn drop(&mut self) {
        if let Some(storage) = &self.storage {
            storage.drop_root(&self.value, self.node.clone());
        }
    }
}

impl Tensor {
    pub(crate) fn from_parts(value: Arc<StreamValue>, node: Option<Arc<TapeNode>>) -> Tensor {
        Tensor {
            state: Arc::new(Mutex::new(TensorImpl {
                value,
                node,
                frozen: None,
                view: None,
                storage: None,
            })),
            detached: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, TensorImpl> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The value, taken anew if this is a view of what has changed.
    pub(crate) fn value(&self) -> Arc<StreamValue> {
        Arc::clone(&self.fresh().value)
    }

    pub(crate) fn node(&self) -> Option<Arc<TapeNode>> {
        if self.detached { None } else { self.fresh().node.clone() }
    }

    /// The state, with a value that is up to date.
    #[inline]
    fn fresh(&self) -> MutexGuard<'_, TensorImpl> {
        let state = self.lock();
        if !state.view.as_ref().is_some_and(|view| view.is_stale()) {
            return state;
        }
        drop(state);
        // It was valid when the view was made, and the root has kept its shape.
        self.refresh().expect("a view can be taken anew");
        self.lock()
    }

    /// The value as it is.
    pub(crate) fn current_value(&self) -> Arc<StreamValue> {
        Arc::clone(&self.lock().value)
    }

    fn current_node(&self) -> Option<Arc<TapeNode>> {
        if self.detached { None } else { self.lock().node.clone() }
    }

    pub fn meta(&self) -> Meta {
        self.lock().value.meta
    }

    pub fn shape(&self) -> Shape {
        self.meta().shape
    }

    pub fn dtype(&self) -> DType {
        self.meta().dtype
    }

    pub fn rank(&self) -> usize {
        self.lock().value.meta.shape.rank()
    }

    pub fn session(&self) -> Session {
        self.lock().value.session.clone()
    }

    /// Whether its session wants the next instruction to wait; see [`Session::is_full`].
    pub fn session_is_full(&self) -> bool {
        self.lock().value.session.is_full()
    }

    /// The tensor's number in its session's stream, as the instruction log shows it.
    pub fn id(&self) -> u64 {
        self.fresh().value.id().0
    }

    /// A number that is the same for all references to this tensor, and for no other.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.state) as usize
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let meta = self.meta();
        write!(f, "Tensor({} {}, id {})", meta.dtype, meta.shape, self.id())
    }
}
