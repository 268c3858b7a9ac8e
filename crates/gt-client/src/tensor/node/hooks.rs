//! Hooks on a tensor's gradient, which a backward pass calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use gt_ir::Meta;

use super::{TapeNode, lock};
use crate::error::{ClientError, Result};
use crate::tensor::Tensor;

/// Receives a gradient; returns a replacement, or `None` to keep it.
pub type Hook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;

/// Runs after a leaf's gradient was accumulated.
pub type AccumulatedHook = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// Hooks in the order of their registration, by number.
type Numbered<H> = Mutex<Vec<(u64, H)>>;

/// The hooks of one tensor.
#[derive(Default)]
pub(crate) struct GradientHooks {
    hooks: Numbered<Hook>,
    /// For a leaf: the hooks that run after its gradient was accumulated.
    accumulated: Numbered<AccumulatedHook>,
    /// For a tensor that is not a leaf: its gradient, if it is retained.
    retained: Mutex<Option<Option<Tensor>>>,
}

/// Removes a hook.
pub struct HookHandle {
    node: Weak<TapeNode>,
    number: u64,
}

impl HookHandle {
    /// Removes the hook; it is not called again.
    pub fn remove(&self) {
        let node = self.node.upgrade();
        if let Some(gradient_hooks) = node.as_ref().and_then(|node| node.hooks.get()) {
            // The hooks are dropped here, after the locks are released: they may hold any object of
            // the user's.
            let _of_gradient = remove(&gradient_hooks.hooks, self.number);
            let _of_accumulated = remove(&gradient_hooks.accumulated, self.number);
        }
    }
}

fn remove<H>(hooks: &Numbered<H>, number: u64) -> Option<(u64, H)> {
    let mut hooks = lock(hooks);
    let place = hooks.iter().position(|(of, _)| *of == number)?;
    Some(hooks.remove(place))
}

impl GradientHooks {
    pub fn retained(&self) -> Option<Tensor> {
        lock(&self.retained).clone().flatten()
    }

    pub fn set_retained(&self, value: Option<Tensor>) {
        let mut guard = lock(&self.retained);
        let old = guard.as_mut().map(|retained| std::mem::replace(retained, value));
        drop(guard);
        drop(old);
    }

    fn keep(&self, grad: &Tensor) -> Result<()> {
        let Some(before) = lock(&self.retained).clone() else { return Ok(()) };
        let sum = match before {
            Some(before) => before.add(grad)?,
            None => grad.clone(),
        };
        self.set_retained(Some(sum));
        Ok(())
    }
}

impl TapeNode {
    pub fn add_hook(self: &Arc<TapeNode>, hook: Hook) -> HookHandle {
        self.add(&self.hooks.get_or_init(Box::default).hooks, hook)
    }

    /// Adds a hook that runs after the gradient of this leaf was accumulated.
    pub fn add_accumulated_hook(self: &Arc<TapeNode>, hook: AccumulatedHook) -> HookHandle {
        self.add(&self.hooks.get_or_init(Box::default).accumulated, hook)
    }

    fn add<H>(self: &Arc<TapeNode>, hooks: &Numbered<H>, hook: H) -> HookHandle {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        lock(hooks).push((number, hook));
        HookHandle { node: Arc::downgrade(self), number }
    }

    /// Calls the hooks that run after the gradient of this leaf was accumulated.
    pub(crate) fn run_accumulated_hooks(&self) -> Result<()> {
        let Some(gradient_hooks) = self.hooks.get() else { return Ok(()) };
        let hooks = lock(&gradient_hooks.accumulated).clone();
        hooks.into_iter().try_for_each(|(_, hook)| hook())
    }

    /// Retains the gradient of a tensor that is not a leaf.
    pub fn retain_grad(&self) {
        if !self.is_leaf() {
            lock(&self.hooks.get_or_init(Box::default).retained).get_or_insert(None);
        }
    }

    /// Returns whether the gradient of a tensor that is not a leaf is retained.
    pub fn retains_grad(&self) -> bool {
        self.hooks.get().is_some_and(|gradient_hooks| lock(&gradient_hooks.retained).is_some())
    }

    /// Calls the hooks on a gradient, and returns the resulting one.
    pub(crate) fn run_hooks(&self, grad: Tensor) -> Result<Tensor> {
        let Some(gradient_hooks) = self.hooks.get() else { return Ok(grad) };
        let hooks = lock(&gradient_hooks.hooks).clone();
        let mut grad = grad;
        for (_, hook) in hooks {
            if let Some(other) = hook(&grad)? {
                grad = other.as_gradient_of(grad.meta(), "a hook")?;
            }
        }
        gradient_hooks.keep(&grad)?;
        Ok(grad)
    }
}

impl Tensor {
    /// Casts a gradient from a user's function to the dtype of its tensor.
    ///
    /// # Errors
    /// It has another shape.
    pub(crate) fn as_gradient_of(&self, meta: Meta, whose: &str) -> Result<Tensor> {
        if self.shape() != meta.shape {
            return Err(ClientError::usage(format!(
                "{whose} returned a gradient of shape {} for a tensor of shape {}",
                self.shape(),
                meta.shape
            )));
        }
        self.cast(meta.dtype)
    }
}
