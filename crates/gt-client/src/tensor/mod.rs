//! Tensors: a value in a session's stream, and the tape node for its gradient.
//!
//! - [`create`]: from data, numbers and random numbers; [`default_dtype`]: the dtype of new floats.
//! - [`apply`], [`call`]: issuing an operation and recording it on the tape.
//! - [`methods`]: methods that are generated from the operations' declarations.
//! - [`elementwise`], [`reduce`], [`matmul`], [`shape`]: operations.
//! - [`index`]: index expressions; [`elements`]: iteration.
//! - [`assign`]: in-place changes and copies; [`rollback`]: undoing them in transactions.
//! - [`view`]: tensors that share storage, by lists ([`view_steps`]) of steps ([`view_step`]) and
//!   [`strides`]; [`restride`]: `as_strided`; [`overlap`]: in-place changes of overlapping views.
//! - [`node`]: nodes of the tape; [`autocast`]: casts of operands; [`batched`]: inside `vmap`.
//! - [`gradient`]: `requires_grad`, gradients and hooks.
//! - [`fetch`]: fetching values; [`files`]: files that workers read and write;
//!   [`kept`]: tensors under names; [`publishing`]: shared ones; [`placement`]: the workers of values; [`value_ref`]: references to values; [`held`]: what holds them.

mod apply;
mod assign;
mod autocast;
mod batched;
pub(crate) mod call;
pub mod create;
pub mod default_dtype;
mod elements;
pub mod elementwise;
mod fetch;
mod files;
mod gradient;
pub mod held;
pub mod index;
mod kept;
pub mod matmul;
mod methods;
pub(crate) mod node;
mod overlap;
mod placement;
mod publishing;
pub mod reduce;
mod restride;
mod rollback;
pub mod shape;
mod storage;
pub mod strides;
mod value_ref;
mod view;
mod view_step;
mod view_steps;

use std::sync::{Arc, Mutex, MutexGuard};

use gt_ir::{DType, Meta, Shape};

use crate::session::{Session, StreamValue};
pub use files::AskedSave;
pub use kept::KeptTensors;
use node::TapeNode;
pub use publishing::{NewPublication, SharedTensors};
pub(crate) use rollback::RollbackPoint;
use storage::SharedStorage;
pub use value_ref::ValueRef;
use view::ViewState;

/// A tensor. A clone is another reference to the same tensor, as after an assignment in Python.
#[derive(Clone)]
pub struct Tensor {
    state: Arc<Mutex<TensorImpl>>,
    /// A reference without history, as [`Tensor::data`] returns: in-place changes change only the
    /// value.
    detached: bool,
}

struct TensorImpl {
    value: Arc<StreamValue>,
    /// The tape node that its gradient flows to, if it requires one.
    node: Option<Arc<TapeNode>>,
    /// The leaf node (with gradient and hooks) of a tensor that currently requires no gradient,
    /// kept for when it does again.
    frozen: Option<Arc<TapeNode>>,
    /// If it is a view: how it is computed from its root.
    view: Option<Box<ViewState>>,
    /// The state that it shares with its views, if it has had any.
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

    /// Returns the value; that of a view is recomputed if the root has changed.
    pub(crate) fn value(&self) -> Arc<StreamValue> {
        Arc::clone(&self.fresh().value)
    }

    pub(crate) fn node(&self) -> Option<Arc<TapeNode>> {
        if self.detached { None } else { self.fresh().node.clone() }
    }

    /// Locks the state, with a value that is up to date.
    #[inline]
    fn fresh(&self) -> MutexGuard<'_, TensorImpl> {
        let state = self.lock();
        if !state.view.as_ref().is_some_and(|view| view.is_stale()) {
            return state;
        }
        drop(state);
        // The steps were valid when the view was made, and the root has kept its shape.
        self.refresh().expect("a view can be recomputed");
        self.lock()
    }

    /// Returns the value without recomputing that of a view.
    pub(crate) fn current_value(&self) -> Arc<StreamValue> {
        Arc::clone(&self.lock().value)
    }

    fn current_node(&self) -> Option<Arc<TapeNode>> {
        if self.detached { None } else { self.lock().node.clone() }
    }

    /// Returns shape and dtype.
    pub fn meta(&self) -> Meta {
        self.lock().value.meta
    }

    /// Returns the shape.
    pub fn shape(&self) -> Shape {
        self.meta().shape
    }

    /// Returns the dtype.
    pub fn dtype(&self) -> DType {
        self.meta().dtype
    }

    /// Returns the number of axes.
    pub fn rank(&self) -> usize {
        self.lock().value.meta.shape.rank()
    }

    /// Returns the session of its value.
    pub fn session(&self) -> Session {
        self.lock().value.session.clone()
    }

    /// Returns whether the next instruction should wait; see [`Session::is_full`].
    pub fn session_is_full(&self) -> bool {
        self.lock().value.session.is_full()
    }

    /// Returns the tensor's id in its session's stream, as in the instruction log.
    pub fn id(&self) -> u64 {
        self.fresh().value.id().0
    }

    /// Returns a number that all references to this tensor share, and no other tensor has.
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
