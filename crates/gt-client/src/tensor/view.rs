//! Views: tensors that share another's memory, as PyTorch's slices, reshapes and transposes do.
//!
//! Values never change, so this module maintains the sharing: a view has its *root* and the steps
//! from there. An in-place change of a view becomes a functional update of the root; other views
//! recompute their values from the root when they are used next.
//!
//! A view does not keep its root alive: when the root is dropped, its last value is kept only if
//! several views could still see each other's changes, or one has not seen a change yet. A single
//! view becomes independent.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gt_ir::ops::complex;
use gt_ir::{Attributes, Operation, Shape};

use super::Tensor;
use super::overlap;
use super::storage::{SharedStorage, StorageRoot};
use super::strides::Strided;
use super::view_step::ViewStep;
use super::view_steps::ViewSteps;
use crate::error::{ClientError, Result};

/// How a view is computed from its root.
#[derive(Clone)]
pub(super) struct ViewState {
    storage: Arc<SharedStorage>,
    steps: ViewSteps,
    /// The version of the root that its value was taken from.
    seen_version: u64,
    /// A view without history, as of `detach()`: in-place changes change only values.
    detached: bool,
    pub strided: Strided,
}

impl Tensor {
    /// Makes this result of an operation a view of its operand, if strides can express it.
    ///
    /// # Errors
    /// A complex view of parts that are not adjacent: `view_as_complex` never copies.
    pub(super) fn view_of(
        &self,
        base: &Tensor,
        operation: &'static Operation,
        given: &Attributes,
    ) -> Result<()> {
        let from = base.strided();
        if let Some(strided) = from.after(operation, given) {
            let step = ViewStep::Operation { operation, attributes: given.clone() };
            self.link(base, Some(step), strided, base.detached);
        } else if operation.id == complex::VIEW_AS_COMPLEX.id {
            return Err(ClientError::usage(format!(
                "{}: the two parts of a number must be adjacent, at an even offset; these of shape {} have strides {:?} and offset {}\n  hint: contiguous() copies them so",
                operation.name,
                from.shape,
                &from.strides[..from.shape.rank()],
                from.offset
            )));
        }
        Ok(())
    }

    /// Returns a view of the elements at some indices, in row-major order or along one axis, for
    /// views that no chain of slices and reshapes yields.
    ///
    /// `shape`, `strides` and `offset` are those of the view in the root's memory.
    ///
    /// # Errors
    /// `index_select` or `reshape` fails: the indices are not integers along one axis.
    pub fn view_at(
        &self,
        dim: Option<usize>,
        indices: &Tensor,
        shape: Shape,
        strides: &[i64],
        offset: i64,
    ) -> Result<Tensor> {
        let mut strided = Strided { offset, ..Strided::contiguous(shape) };
        strided.strides.iter_mut().zip(strides).for_each(|(own, &given)| *own = given);
        let step = ViewStep::Indices { dim, indices: indices.detach(), shape };
        let view = step.apply(self)?;
        view.link(self, Some(step), strided, self.detached);
        Ok(view)
    }

    /// Returns a view with the same values, without history.
    pub fn detach(&self) -> Tensor {
        let alias = Tensor::from_parts(self.value(), None);
        alias.link(self, None, self.strided(), true);
        alias
    }

    /// Returns a view of the whole tensor, as `x[:]` does.
    ///
    /// # Errors
    /// If a gradient is required: those of the instruction that it flows through.
    #[track_caller]
    pub(super) fn alias(&self) -> Result<Tensor> {
        let alias = self.copy()?;
        alias.link(self, None, self.strided(), self.detached);
        Ok(alias)
    }

    pub(super) fn link(
        &self,
        base: &Tensor,
        step: Option<ViewStep>,
        strided: Strided,
        detached: bool,
    ) {
        let mut view = {
            let mut state = base.lock();
            match &state.view {
                Some(view) if view.storage.root().is_some() => (**view).clone(),
                _ => {
                    let storage = Arc::clone(state.root_storage(&base.state));
                    let steps = ViewSteps::default();
                    let seen_version = storage.version();
                    ViewState { storage, steps, seen_version, detached: false, strided }
                }
            }
        };
        if let Some(step) = step {
            if step.repeats() {
                view.storage.repeats.store(true, Ordering::Relaxed);
            }
            view.steps.push(step);
        }
        view.strided = strided;
        view.detached |= detached;
        self.lock().view = Some(Box::new(view));
    }

    /// Returns sizes, strides and offset in the memory that it shares.
    pub fn strided(&self) -> Strided {
        let state = self.lock();
        match &state.view {
            Some(view) => view.strided,
            None => Strided::contiguous(state.value.meta.shape),
        }
    }

    /// Returns whether it is a view of another tensor.
    pub fn is_view(&self) -> bool {
        self.lock().view.as_ref().is_some_and(|view| view.storage.root().is_some())
    }

    /// Becomes another tensor, with its shape and memory, as `t_()` does with the transpose.
    /// Existing views keep sharing the old memory.
    pub fn become_other(&self, other: &Tensor) {
        let (value, node) = (other.value(), other.node());
        let view = other.lock().view.clone();
        let mut state = self.lock();
        if let Some(storage) = state.storage.take() {
            let (value, node) = (Arc::clone(&state.value), state.node.clone());
            *storage.lock() = StorageRoot::Dropped { value, node };
        }
        let old_view = std::mem::replace(&mut state.view, view);
        let old_node = std::mem::replace(&mut state.node, node);
        let old = std::mem::replace(&mut state.value, value);
        drop(state);
        drop((old, old_node, old_view));
    }

    /// Adopts the memory of another tensor; from a view of this tensor, only the values.
    pub(super) fn share_memory(&self, other: &Tensor) {
        let alias = other.detach();
        let (value, mut view) = (alias.value(), alias.lock().view.take());
        let is_own = |view: &ViewState| match view.storage.root() {
            Some(root) => Arc::ptr_eq(&root.state, &self.state),
            None => true,
        };
        if view.as_deref().is_some_and(is_own) {
            view = None;
        }
        let mut state = self.lock();
        if let Some(storage) = state.storage.take() {
            let (value, node) = (Arc::clone(&state.value), state.node.clone());
            *storage.lock() = StorageRoot::Dropped { value, node };
        }
        let old_view = std::mem::replace(&mut state.view, view);
        let old = std::mem::replace(&mut state.value, value);
        drop(state);
        drop((old, old_view));
    }

    /// Sets the history of a detached view to that of its in-place change.
    fn keep_history(&self, changed: &Tensor, version: u64) {
        if !crate::context::records_gradients() {
            return;
        }
        let (value, node) = (changed.value(), changed.node());
        let mut state = self.lock();
        let old_node = std::mem::replace(&mut state.node, node);
        let old = std::mem::replace(&mut state.value, value);
        if let Some(view) = &mut state.view {
            view.seen_version = version;
        }
        drop(state);
        drop((old, old_node));
    }

    /// Recomputes the value if the root has changed since.
    #[cold]
    pub(super) fn refresh(&self) -> Result<()> {
        let view = self.lock().view.clone();
        let Some(view) = view else { return Ok(()) };
        let version = view.storage.version();
        // Two references are the view's own and this clone's: no other view can change the root.
        let is_alone = !view.storage.root_is_alive()
            && Arc::strong_count(&view.storage) == 2
            && !view.storage.repeats.load(Ordering::Relaxed);
        let Some(root) = view.storage.root() else {
            self.lock().view = None;
            return Ok(());
        };
        let root = if view.detached { root.data() } else { root };
        let fresh = view.path(&root)?.pop().unwrap_or(root);
        let (value, node) = (fresh.current_value(), fresh.current_node());
        let mut state = self.lock();
        let old = (std::mem::replace(&mut state.value, value), state.node.clone());
        if !view.detached {
            state.node = node;
        }
        if is_alone {
            view.storage.release();
            state.view = None;
        } else if let Some(view) = &mut state.view {
            view.seen_version = version;
        }
        drop(state);
        drop(old);
        Ok(())
    }

    /// Applies an in-place change of a view to its root. Returns whether it is a view.
    ///
    /// # Errors
    /// The view repeats elements; the root is a leaf that requires gradients.
    pub(super) fn write_through(&self, changed: &Tensor, operation: &str) -> Result<bool> {
        let view = self.lock().view.clone();
        let Some(view) = view else { return Ok(false) };
        overlap::check(&view.strided, operation)?;
        let overlaps = view.strided.overlaps();
        let Some(root) = view.storage.root() else {
            // The view is independent now, and its overlapping elements are separate copies.
            view.strided.check_writable(operation)?;
            return Ok(false);
        };
        let detached = view.detached || self.detached;
        let root = if detached { root.data() } else { root };
        let whole = if overlaps || view.repeats() {
            // The steps, applied to the indices of the root's elements, yield those of the view's.
            let of_root = overlap::indices(&root)?;
            let indices = view.path(&of_root)?.pop().unwrap_or(of_root);
            overlap::write(&root, &indices, changed, overlaps)?
        } else {
            view.undo(&root, changed)?
        };
        if view.storage.root_is_alive() {
            root.replace(&whole, operation)?;
        } else {
            view.storage.set_dropped_value(&whole);
        }
        let version = view.storage.bump_version();
        if view.detached && !self.detached {
            self.keep_history(changed, version);
        }
        Ok(true)
    }
}

impl ViewState {
    pub fn storage(&self) -> &Arc<SharedStorage> {
        &self.storage
    }

    pub fn is_stale(&self) -> bool {
        self.seen_version != self.storage.version()
    }

    /// Returns the root from which the steps yield `changed`.
    fn undo(&self, root: &Tensor, changed: &Tensor) -> Result<Tensor> {
        let path = self.path(root)?;
        let mut changed = changed.clone();
        for (index, step) in self.steps.all().into_iter().enumerate().rev() {
            let before = if index == 0 { root } else { &path[index - 1] };
            changed = step.undo(before, &changed)?;
        }
        Ok(changed)
    }

    /// Returns whether a step may have one element several times.
    fn repeats(&self) -> bool {
        self.steps.all().into_iter().any(ViewStep::repeats)
    }

    /// Returns the values after each step from the root.
    pub(super) fn path(&self, root: &Tensor) -> Result<Vec<Tensor>> {
        let steps = self.steps.all();
        let mut path: Vec<Tensor> = Vec::with_capacity(steps.len());
        for step in steps {
            let before = path.last().unwrap_or(root);
            path.push(step.apply(before)?);
        }
        Ok(path)
    }
}
