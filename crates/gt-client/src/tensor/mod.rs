//! Tensors: a value's place in a session's stream, and how it came about.
//!
//! - [`create`]: from data, numbers, nothing, chance.
//! - [`elementwise`], [`reduce`], [`matmul`], [`shape`]: operations.
//! - [`index`]: reading and writing parts.

pub mod create;
pub mod elementwise;
pub mod index;
pub mod matmul;
pub mod reduce;
pub mod shape;

use std::sync::{Arc, Mutex, MutexGuard};

use gt_ir::explain::PlacedTensor;
use gt_ir::operation::Gradient;
use gt_ir::{Attributes, DType, Meta, Operand, Operation, Scalar, Shape, TensorData};
use smallvec::SmallVec;

use crate::config::registry;
use crate::driver::Interrupt;
use crate::error::{ClientError, Result};
use crate::session::{Asked, Session, Value};
use crate::tape::{self, BackwardOptions, Hook, HookHandle, Node, grad_enabled};
use crate::{signal, source};

/// A tensor. Cloning gives another reference to the same one, as assignment does in Python.
#[derive(Clone)]
pub struct Tensor {
    state: Arc<Mutex<State>>,
    /// Seen without its history: changes in place change the value alone.
    bare: bool,
}

struct State {
    value: Arc<Value>,
    node: Option<Arc<Node>>,
    /// While it requires no gradient: the leaf that it was or is to be again, with its gradient and
    /// hooks.
    frozen: Option<Arc<Node>>,
}

impl Tensor {
    pub(crate) fn from_parts(value: Arc<Value>, node: Option<Arc<Node>>) -> Tensor {
        Tensor { state: Arc::new(Mutex::new(State { value, node, frozen: None })), bare: false }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn value(&self) -> Arc<Value> {
        Arc::clone(&self.lock().value)
    }

    pub(crate) fn node(&self) -> Option<Arc<Node>> {
        if self.bare { None } else { self.lock().node.clone() }
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
        self.shape().rank()
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
        self.lock().value.id.0
    }

    /// A number that is the same for all references to this tensor, and for no other.
    pub fn identity(&self) -> usize {
        Arc::as_ptr(&self.state) as usize
    }

    /// Issues an operation and, where a gradient is wanted, records it on the tape.
    ///
    /// # Errors
    /// Whatever the operation's inference finds wrong; operands of two sessions.
    #[track_caller]
    pub fn apply(
        session: &Session,
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Tensor> {
        let call = Call::gather(operation, operands);
        call.issue(session, operation, attributes)
    }

    /// As [`Tensor::apply`], in the session of the first tensor, and only if there is room.
    ///
    /// # Errors
    /// [`ClientError::WindowFull`] if the instruction should wait; no tensor among the operands.
    #[track_caller]
    pub fn try_apply(
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Tensor> {
        let call = Call::gather(operation, operands);
        let first = call.operands.iter().find_map(Operand::tensor);
        let session = first.map(|(value, _)| value.session.clone()).ok_or_else(|| {
            ClientError::usage(format!("{}: one operand must be a tensor", operation.name))
        })?;
        if session.is_full() {
            return Err(ClientError::WindowFull);
        }
        call.issue(&session, operation, attributes)
    }

    /// An operation on this tensor alone.
    #[track_caller]
    pub(crate) fn apply_unary(
        &self,
        operation: &'static Operation,
        attributes: Attributes,
    ) -> Result<Tensor> {
        Tensor::apply(&self.session(), operation, &[Operand::Tensor(self)], attributes)
    }

    /// Makes this tensor the value (and history) of another: what in-place operations do.
    ///
    /// # Errors
    /// A leaf that requires gradients, outside of no_grad; another shape or session; a dtype
    /// that this tensor's cannot hold.
    #[track_caller]
    pub fn assign(&self, other: &Tensor, operation: &'static str) -> Result<()> {
        let dtype = self.dtype();
        if !other.dtype().can_cast(dtype) {
            return Err(ClientError::usage(format!(
                "{operation}: a result of dtype {} cannot be stored in a tensor of dtype {dtype}",
                other.dtype()
            )));
        }
        if other.shape() != self.shape() {
            return Err(gt_ir::Error::ShapeMismatch {
                operation,
                given: other.shape(),
                expected: format!("the tensor's own shape {}", self.shape()),
            }
            .into());
        }
        let other = other.cast(dtype)?;
        let (value, node) = (other.value(), other.node());
        let mut state = self.lock();
        if !value.session.is(&state.value.session) {
            return Err(two_sessions(operation, &state.value.session, &value.session));
        }
        let keeps_history = grad_enabled() && !self.bare;
        if keeps_history && state.node.as_ref().is_some_and(|node| node.is_leaf()) {
            return Err(ClientError::usage(format!(
                "{operation}: a leaf tensor that requires gradients cannot be changed in place\n  hint: do it inside `with gt.no_grad():`"
            )));
        }
        if keeps_history
            && let (Some(old), Some(new)) = (&state.node, &node)
            && old.retains_grad()
        {
            new.retain_grad();
        }
        // The old ones go after the lock: a drop writes to the stream, or is the user's own.
        let old_node = if keeps_history { std::mem::replace(&mut state.node, node) } else { None };
        let old = std::mem::replace(&mut state.value, value);
        drop(state);
        drop((old, old_node));
        Ok(())
    }

    /// The values, once they are computed. Waits; asks `interrupt` now and then whether to stop.
    ///
    /// # Errors
    /// The operation that made it failed; the connection was lost; interrupted.
    pub fn fetch_with(&self, interrupt: Interrupt) -> Result<TensorData> {
        self.ask()?.wait(interrupt)
    }

    /// Where it is: its layouts, each with its workers.
    ///
    /// # Errors
    /// The operation that made it failed; the connection was lost; interrupted.
    pub fn placement(&self, interrupt: Interrupt) -> Result<Vec<PlacedTensor>> {
        let value = self.value();
        value.session.locate(&value, interrupt)
    }

    /// Asks for the values, to wait for them later.
    pub fn ask(&self) -> Result<Asked> {
        let value = self.value();
        value.session.ask(&value)
    }

    /// The values, once they are computed.
    pub fn fetch(&self) -> Result<TensorData> {
        self.fetch_with(&mut || false)
    }

    /// The only element, as a number.
    pub fn item(&self) -> Result<Scalar> {
        if self.shape().numel() != 1 {
            return Err(ClientError::usage(format!(
                "item: a tensor of shape {} has {} elements, not one\n  hint: index or reduce it first, or use tolist()",
                self.shape(),
                self.shape().numel()
            )));
        }
        Ok(self.fetch()?.element(0))
    }

    /// The elements as float64, in row-major order.
    pub fn to_vec(&self) -> Result<Vec<f64>> {
        let data = self.fetch()?;
        Ok((0..data.shape.numel()).map(|index| data.element(index).as_f64()).collect())
    }

    pub fn requires_grad(&self) -> bool {
        self.node().is_some()
    }

    pub fn is_leaf(&self) -> bool {
        self.node().is_none_or(|node| node.is_leaf())
    }

    /// Asks for gradients of this tensor, or no longer.
    ///
    /// # Errors
    /// Not a float dtype; or a result of other tensors that require gradients, turned off.
    pub fn set_requires_grad(&self, wanted: bool) -> Result<()> {
        if self.bare && wanted {
            return Err(ClientError::usage(
                "requires_grad: `.data` shares its tensor's value and has no history\n  hint: use detach() or clone() for a tensor of its own",
            ));
        }
        let mut state = self.lock();
        if wanted && !state.value.meta.dtype.is_float() {
            return Err(gt_ir::Error::DTypeMismatch {
                operation: "requires_grad",
                given: state.value.meta.dtype,
                expected: "a float dtype: only these have gradients",
            }
            .into());
        }
        match (wanted, &state.node) {
            (true, None) => state.node = Some(state.frozen.take().unwrap_or_else(Node::leaf)),
            (false, Some(node)) if node.is_leaf() => state.frozen = state.node.take(),
            (false, Some(_)) => {
                return Err(ClientError::usage(
                    "requires_grad: only a leaf's can be turned off\n  hint: use detach()",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Shows this tensor's gradient to `hook` in every backward pass that computes it.
    ///
    /// # Errors
    /// The tensor does not require gradients.
    pub fn register_hook(&self, hook: Hook) -> Result<HookHandle> {
        let node = self.node().ok_or_else(|| no_gradient("register_hook"))?;
        Ok(node.add_hook(hook))
    }

    /// Keeps this tensor's gradient in [`Tensor::grad`], though it is no leaf.
    ///
    /// # Errors
    /// The tensor does not require gradients.
    pub fn retain_grad(&self) -> Result<()> {
        self.node().ok_or_else(|| no_gradient("retain_grad"))?.retain_grad();
        Ok(())
    }

    /// The gradient that backward passes have added up: a leaf's, or a retained one.
    pub fn grad(&self) -> Option<Tensor> {
        if self.bare {
            return None;
        }
        match self.node() {
            Some(node) => node.grad(),
            None => self.lock().frozen.as_ref()?.grad(),
        }
    }

    /// Puts a gradient in the place of the one that is there, or none.
    ///
    /// # Errors
    /// Another shape or session; a tensor that can have no gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        if let Some(grad) = &grad
            && grad.shape() != self.shape()
        {
            return Err(gt_ir::Error::ShapeMismatch {
                operation: "grad",
                given: grad.shape(),
                expected: self.shape().to_string(),
            }
            .into());
        }
        if let Some(grad) = &grad {
            self.check_session(grad, "grad")?;
        }
        if self.bare {
            return Err(no_gradient("grad"));
        }
        match self.node() {
            Some(node) => node.set_grad(grad),
            None => {
                let leaf = Arc::clone(self.lock().frozen.get_or_insert_with(Node::leaf));
                leaf.set_grad(grad);
            }
        }
        Ok(())
    }

    /// Adds the gradients of this tensor to those of all leaves it depends on.
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        tape::backward(self, None, BackwardOptions::default())
    }

    /// The same values without their history.
    pub fn detach(&self) -> Tensor {
        Tensor::from_parts(self.value(), None)
    }

    /// Another tensor with the value and history that this one has now: changes in place of either
    /// are its own.
    pub fn snapshot(&self) -> Tensor {
        Tensor::from_parts(self.value(), self.node())
    }

    /// This very tensor seen without its history, as PyTorch's `.data`: what is changed in place
    /// through it changes this tensor, and no gradient knows of it.
    pub fn data(&self) -> Tensor {
        Tensor { state: Arc::clone(&self.state), bare: true }
    }

    /// Gives this tensor another value of the same shape, in that one's dtype, without history.
    ///
    /// # Errors
    /// Another shape or session.
    pub fn set_data(&self, other: &Tensor) -> Result<()> {
        if other.shape() != self.shape() {
            let (given, expected) = (other.shape(), format!("the tensor's own {}", self.shape()));
            return Err(gt_ir::Error::ShapeMismatch { operation: "data", given, expected }.into());
        }
        self.check_session(other, "data")?;
        let value = other.value();
        let old = std::mem::replace(&mut self.lock().value, value);
        drop(old);
        Ok(())
    }

    /// A tensor of its own with the same value. Values never change, so nothing is copied; where
    /// a gradient is wanted, it flows back through an instruction of its own.
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        let state = self.lock();
        if self.bare || state.node.is_none() || !grad_enabled() {
            return Ok(Tensor::from_parts(Arc::clone(&state.value), None));
        }
        drop(state);
        self.cast_always(self.dtype())
    }

    /// What becomes part of this tensor must be of its session.
    pub(crate) fn check_session(&self, other: &Tensor, operation: &str) -> Result<()> {
        let (own, others) = (self.session(), other.session());
        if own.is(&others) { Ok(()) } else { Err(two_sessions(operation, &own, &others)) }
    }

    /// The axes that a signal cuts must be there where a tensor is placed by itself.
    fn check_axes(&self, signal: &str) -> Result<()> {
        let shard = registry::get(signal).and_then(|config| config.shard);
        for axis in shard.iter().flat_map(|shard| &shard.mesh).filter_map(|axis| axis.axis) {
            gt_ir::shape::axis(axis, self.rank(), "signal.tensor")?;
        }
        Ok(())
    }

    /// A copy placed as a signal's configuration says.
    ///
    /// # Errors
    /// The tensor does not have an axis that the signal cuts.
    #[track_caller]
    pub fn with_signal(&self, signal: &str, backward: Option<&str>) -> Result<Tensor> {
        self.check_axes(signal)?;
        signal::enter(signal, backward)?;
        let copy = self.apply_unary(&gt_ir::ops::shape::PLACE, smallvec::smallvec![]);
        signal::exit(signal)?;
        copy
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let meta = self.meta();
        write!(f, "Tensor({} {}, id {})", meta.dtype, meta.shape, self.id())
    }
}

/// The operands of an operation, held so that no other thread can free them meanwhile.
struct Call {
    operands: SmallVec<[Operand<(Arc<Value>, Option<Arc<Node>>)>; 3]>,
    wants_grad: bool,
}

impl Call {
    fn gather(operation: &Operation, operands: &[Operand<&Tensor>]) -> Call {
        let recordable = !matches!(operation.gradient, Gradient::None) && grad_enabled();
        let mut call = Call { operands: SmallVec::new(), wants_grad: false };
        for operand in operands {
            call.operands.push(match operand {
                Operand::Tensor(tensor) => {
                    let state = tensor.lock();
                    let recorded = recordable && !tensor.bare;
                    let node = if recorded { state.node.clone() } else { None };
                    call.wants_grad |= node.is_some();
                    Operand::Tensor((Arc::clone(&state.value), node))
                }
                Operand::Scalar(scalar) => Operand::Scalar(*scalar),
            });
        }
        call
    }

    #[track_caller]
    fn issue(
        self,
        session: &Session,
        operation: &'static Operation,
        attributes: Attributes,
    ) -> Result<Tensor> {
        let source = source::current();
        let mut metas: SmallVec<[Operand<Meta>; 3]> = SmallVec::new();
        let mut ids = SmallVec::new();
        for operand in &self.operands {
            if let Operand::Tensor((value, _)) = operand
                && !value.session.is(session)
            {
                return Err(two_sessions(operation.name, session, &value.session));
            }
            metas.push(operand.map(|(value, _)| value.meta));
            ids.push(operand.map(|(value, _)| value.id));
        }
        let meta = operation.check(&metas, &attributes)?;
        let wants_grad = self.wants_grad && meta.dtype.is_float();
        let kept = if wants_grad { attributes.clone() } else { Attributes::new() };
        let work = operation.work(&metas, meta);
        let value = session.issue(operation, ids, attributes, meta, work, source);
        let node = wants_grad.then(|| Node::record(operation, kept, &self.operands, &value));
        Ok(Tensor::from_parts(value, node))
    }
}

fn no_gradient(operation: &str) -> ClientError {
    ClientError::usage(format!(
        "{operation}: the tensor does not require gradients\n  hint: make it with requires_grad=True"
    ))
}

#[cold]
fn two_sessions(operation: &str, first: &Session, second: &Session) -> ClientError {
    let line = |session: &Session| {
        let closed = if session.is_closed() { ", closed" } else { "" };
        format!("  session {}: {}{closed}", session.number(), session.describe())
    };
    let hint = if first.is_closed() || second.is_closed() {
        "a closed session's tensors are gone; make them anew"
    } else {
        "bring one over: with gt.Session.of(a).use(): b = gt.from_numpy(b.numpy())"
    };
    ClientError::usage(format!(
        "{operation}: the tensors belong to different sessions\n{}\n{}\n  hint: {hint}",
        line(first),
        line(second)
    ))
}
