//! Views: tensors that share the memory of another, as PyTorch's slices, reshapes and transposes do.
//!
//! Values never change, so sharing is kept up here: a view remembers its *root* and the steps from
//! there. A change in place of a view becomes a functional update of the root; whoever finds that
//! the root has changed takes its own value anew when it is used.
//!
//! Nothing is kept alive for a view alone: when the root is dropped, its last value is kept only
//! if several views could still see each other's changes, or one has not seen a change yet. A single
//! one goes on by itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use gt_ir::ops::complex;
use gt_ir::{Attributes, Operation, Shape};

use super::overlap;
use super::step::Step;
use super::steps::Steps;
use super::strides::Strided;
use super::{State, Tensor};
use crate::error::{ClientError, Result};
use crate::session::Value;
use crate::tape::Node;

/// What a root and its views have in common.
#[derive(Default)]
pub(super) struct Shared {
    /// Counts the changes in place.
    version: AtomicU64,
    /// A view may have one element of the root several times: it alone cannot go on by itself.
    repeats: AtomicBool,
    root: Mutex<Root>,
}

#[derive(Default)]
enum Root {
    /// A tensor that somebody holds.
    Alive(Weak<Mutex<State>>),
    /// What the root was when it was dropped.
    Left { value: Arc<Value>, node: Option<Arc<Node>> },
    #[default]
    Gone,
}

/// How a view follows from its root.
#[derive(Clone)]
pub(super) struct View {
    shared: Arc<Shared>,
    steps: Steps,
    /// The version of the root that its value was taken from.
    seen: u64,
    /// Seen without history: changes of values only.
    bare: bool,
    pub strided: Strided,
}

impl Shared {
    pub fn changed(&self) -> u64 {
        self.version.fetch_add(1, Ordering::AcqRel) + 1
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Lets views go on by themselves, as their root takes up other memory.
    pub fn let_go(&self) {
        *self.lock() = Root::Gone;
    }

    /// The root is dropped: its value is left to its views, if there are several.
    pub fn leave(self: &Arc<Shared>, value: &Arc<Value>, node: Option<Arc<Node>>) {
        let views = Arc::strong_count(self) - 1;
        let left = match views {
            0 => Root::Gone,
            // Nothing has changed: the view has the value that it is to have.
            1 if self.version() == 0 && !self.repeats.load(Ordering::Relaxed) => Root::Gone,
            _ => Root::Left { value: Arc::clone(value), node },
        };
        *self.lock() = left;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Root> {
        self.root.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The root, or what it was.
    pub fn root(&self) -> Option<Tensor> {
        match &*self.lock() {
            Root::Alive(state) => state.upgrade().map(|state| Tensor { state, bare: false }),
            Root::Left { value, node } => Some(Tensor::from_parts(Arc::clone(value), node.clone())),
            Root::Gone => None,
        }
    }

    /// Gives a root that nobody holds another value.
    pub fn set_left(&self, changed: &Tensor) {
        let mut root = self.lock();
        if let Root::Left { value, node } = &mut *root {
            let old = (std::mem::replace(value, changed.value()), node.take());
            *node = changed.node();
            drop(root);
            drop(old);
        }
    }

    pub fn is_alive(&self) -> bool {
        matches!(&*self.lock(), Root::Alive(_))
    }
}

impl Tensor {
    /// Makes this result of an operation a view of its operand, if it shares its memory.
    ///
    /// # Errors
    /// Complex numbers whose parts do not lie together: they are a view or nothing.
    pub(super) fn view_of(
        &self,
        base: &Tensor,
        operation: &'static Operation,
        given: &Attributes,
    ) -> Result<()> {
        let from = base.strided();
        if let Some(strided) = from.after(operation, given) {
            let step = Step::Operation { operation, attributes: given.clone() };
            self.link(base, Some(step), strided, base.bare);
        } else if operation.id == complex::VIEW_AS_COMPLEX.id {
            return Err(ClientError::usage(format!(
                "{}: the two parts of a number must lie one after the other, an even number of floats from the next; these of shape {} have strides {:?} and offset {}\n  hint: contiguous() copies them so",
                operation.name,
                from.shape,
                &from.strides[..from.shape.rank()],
                from.offset
            )));
        }
        Ok(())
    }

    /// A view of the elements at some places, which are numbered in row-major order, or of those at
    /// some places along one axis. Where no chain of slices and reshapes leads to it.
    ///
    /// `shape`, `strides` and `offset` say where these are in memory.
    ///
    /// # Errors
    /// What `index_select` and `reshape` reject: places that are not integers along one axis.
    pub fn view_at(
        &self,
        dim: Option<usize>,
        places: &Tensor,
        shape: Shape,
        strides: &[i64],
        offset: i64,
    ) -> Result<Tensor> {
        let mut strided = Strided { offset, ..Strided::contiguous(shape) };
        strided.strides.iter_mut().zip(strides).for_each(|(own, &given)| *own = given);
        let step = Step::Places { dim, places: places.detach(), shape };
        let view = step.take(self)?;
        view.link(self, Some(step), strided, self.bare);
        Ok(view)
    }

    /// The same values without history, in the same memory.
    pub fn detach(&self) -> Tensor {
        let alias = Tensor::from_parts(self.value(), None);
        alias.link(self, None, self.strided(), true);
        alias
    }

    /// All of it, as a view: what `x[:]` gives.
    ///
    /// # Errors
    /// Those of the instruction that a gradient flows back through, where one is wanted.
    #[track_caller]
    pub(super) fn alias(&self) -> Result<Tensor> {
        let alias = self.copy()?;
        alias.link(self, None, self.strided(), self.bare);
        Ok(alias)
    }

    pub(super) fn link(&self, base: &Tensor, step: Option<Step>, strided: Strided, bare: bool) {
        let mut view = {
            let mut state = base.lock();
            match &state.view {
                Some(view) if view.shared.root().is_some() => (**view).clone(),
                _ => {
                    let root = Arc::downgrade(&base.state);
                    let shared = state.shared.get_or_insert_with(|| {
                        let root = Mutex::new(Root::Alive(root));
                        Arc::new(Shared { root, ..Shared::default() })
                    });
                    let (shared, steps) = (Arc::clone(shared), Steps::default());
                    let seen = shared.version();
                    View { shared, steps, seen, bare: false, strided }
                }
            }
        };
        if let Some(step) = step {
            if step.repeats() {
                view.shared.repeats.store(true, Ordering::Relaxed);
            }
            view.steps.push(step);
        }
        view.strided = strided;
        view.bare |= bare;
        self.lock().view = Some(Box::new(view));
    }

    /// Sizes, strides and offset in the memory that it shares.
    pub fn strided(&self) -> Strided {
        let state = self.lock();
        match &state.view {
            Some(view) => view.strided,
            None => Strided::contiguous(state.value.meta.shape),
        }
    }

    /// Whether it shares another tensor's memory.
    pub fn is_view(&self) -> bool {
        self.lock().view.as_ref().is_some_and(|view| view.shared.root().is_some())
    }

    /// Becomes another tensor, in its shape and memory: what `t_()` does with the transpose. Views
    /// of what this tensor was go on sharing that.
    pub fn become_other(&self, other: &Tensor) {
        let (value, node) = (other.value(), other.node());
        let view = other.lock().view.clone();
        let mut state = self.lock();
        if let Some(shared) = state.shared.take() {
            let (value, node) = (Arc::clone(&state.value), state.node.clone());
            *shared.lock() = Root::Left { value, node };
        }
        let old_view = std::mem::replace(&mut state.view, view);
        let old_node = std::mem::replace(&mut state.node, node);
        let old = std::mem::replace(&mut state.value, value);
        drop(state);
        drop((old, old_node, old_view));
    }

    /// Takes up the memory of another tensor; a view of this very tensor gives its values alone.
    pub(super) fn share_memory(&self, other: &Tensor) {
        let alias = other.detach();
        let (value, mut view) = (alias.value(), alias.lock().view.take());
        let is_own = |view: &View| match view.shared.root() {
            Some(root) => Arc::ptr_eq(&root.state, &self.state),
            None => true,
        };
        if view.as_deref().is_some_and(is_own) {
            view = None;
        }
        let mut state = self.lock();
        if let Some(shared) = state.shared.take() {
            let (value, node) = (Arc::clone(&state.value), state.node.clone());
            *shared.lock() = Root::Left { value, node };
        }
        let old_view = std::mem::replace(&mut state.view, view);
        let old = std::mem::replace(&mut state.value, value);
        drop(state);
        drop((old, old_view));
    }

    /// A view without its root's history has one of its own, of what it was changed by.
    fn keep_history(&self, changed: &Tensor, version: u64) {
        if !crate::tape::grad_enabled() {
            return;
        }
        let (value, node) = (changed.value(), changed.node());
        let mut state = self.lock();
        let old_node = std::mem::replace(&mut state.node, node);
        let old = std::mem::replace(&mut state.value, value);
        if let Some(view) = &mut state.view {
            view.seen = version;
        }
        drop(state);
        drop((old, old_node));
    }

    /// Takes the value anew if the root has changed since.
    #[cold]
    pub(super) fn refresh(&self) -> Result<()> {
        let view = self.lock().view.clone();
        let Some(view) = view else { return Ok(()) };
        let version = view.shared.version();
        // Its own reference and this one: there is no other view that could change it.
        let is_alone = !view.shared.is_alive()
            && Arc::strong_count(&view.shared) == 2
            && !view.shared.repeats.load(Ordering::Relaxed);
        let Some(root) = view.shared.root() else {
            self.lock().view = None;
            return Ok(());
        };
        let root = if view.bare { root.data() } else { root };
        let fresh = view.path(&root)?.pop().unwrap_or(root);
        let (value, node) = (fresh.current_value(), fresh.current_node());
        let mut state = self.lock();
        let old = (std::mem::replace(&mut state.value, value), state.node.clone());
        if !view.bare {
            state.node = node;
        }
        if is_alone {
            view.shared.let_go();
            state.view = None;
        } else if let Some(view) = &mut state.view {
            view.seen = version;
        }
        drop(state);
        drop(old);
        Ok(())
    }

    /// Carries a change in place of a view over to its root. Returns whether it is one.
    ///
    /// # Errors
    /// The view repeats elements; the root is a leaf that requires gradients.
    pub(super) fn write_through(&self, changed: &Tensor, operation: &str) -> Result<bool> {
        let view = self.lock().view.clone();
        let Some(view) = view else { return Ok(false) };
        overlap::check(&view.strided, operation)?;
        let overlaps = view.strided.overlaps();
        let Some(root) = view.shared.root() else {
            // Its elements are copies by now, which no change would reach.
            view.strided.check_writable(operation)?;
            return Ok(false);
        };
        let bare = view.bare || self.bare;
        let root = if bare { root.data() } else { root };
        let whole = if overlaps || view.repeats() {
            overlap::write(&root, &view, changed, overlaps)?
        } else {
            view.undo(&root, changed)?
        };
        if view.shared.is_alive() {
            root.replace(&whole, operation)?;
        } else {
            view.shared.set_left(&whole);
        }
        let version = view.shared.changed();
        if view.bare && !self.bare {
            self.keep_history(changed, version);
        }
        Ok(true)
    }
}

impl View {
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub fn is_stale(&self) -> bool {
        self.seen != self.shared.version()
    }

    /// The root such that the steps from there give `changed`.
    fn undo(&self, root: &Tensor, changed: &Tensor) -> Result<Tensor> {
        let path = self.path(root)?;
        let mut changed = changed.clone();
        for (index, step) in self.steps.all().into_iter().enumerate().rev() {
            let before = if index == 0 { root } else { &path[index - 1] };
            changed = step.undo(before, &changed)?;
        }
        Ok(changed)
    }

    /// Whether a step on the way may lead to one element twice.
    fn repeats(&self) -> bool {
        self.steps.all().into_iter().any(Step::repeats)
    }

    /// The values after each step from the root.
    pub(super) fn path(&self, root: &Tensor) -> Result<Vec<Tensor>> {
        let steps = self.steps.all();
        let mut path: Vec<Tensor> = Vec::with_capacity(steps.len());
        for step in steps {
            let before = path.last().unwrap_or(root);
            path.push(step.take(before)?);
        }
        Ok(path)
    }
}
