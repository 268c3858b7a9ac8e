//! A call of an operation: its operands are checked, converted and cast, an instruction is issued, and
//! the tape records it.

use std::sync::Arc;

use gt_ir::batching::Batching;
use gt_ir::instruction::{Operands, Results};
use gt_ir::number::Numbers;
use gt_ir::operation::Gradient;
use gt_ir::ops::ternary::WHERE;
use gt_ir::{Attribute, Attributes, DType, Meta, Operand, Operation, Shape, TensorId};
use smallvec::SmallVec;

use super::default_dtype::default_dtype;
use super::node::TapeNode;
use super::{Tensor, autocast};
use crate::batching;
use crate::context::{CallSite, Context};
use crate::error::{ClientError, Result};
use crate::session::{Session, StreamValue};

/// The operands of an operation that is being issued. The references keep other threads from
/// freeing them before the instruction is issued.
pub(super) struct GatheredCall {
    pub operands: SmallVec<[Operand<(Arc<StreamValue>, Option<Arc<TapeNode>>)>; 3]>,
    pub wants_grad: bool,
    /// Whether an operand is mapped over by a `vmap`.
    pub is_batched: bool,
}

impl GatheredCall {
    /// Gathers the operands, in the dtype that autocast requires.
    #[inline]
    pub fn autocast(
        context: &Context,
        operation: &Operation,
        operands: &[Operand<&Tensor>],
        attributes: &Attributes,
    ) -> Result<GatheredCall> {
        match autocast::cast(context, operation, operands, attributes)? {
            Some(cast) => Ok(GatheredCall::gather(context, operation, &cast.operands())),
            None => Ok(GatheredCall::gather(context, operation, operands)),
        }
    }

    pub fn gather(
        context: &Context,
        operation: &Operation,
        operands: &[Operand<&Tensor>],
    ) -> GatheredCall {
        let recordable =
            !matches!(operation.gradient, Gradient::None) && context.records_gradients();
        let mut call =
            GatheredCall { operands: SmallVec::new(), wants_grad: false, is_batched: false };
        for operand in operands {
            call.operands.push(match operand {
                Operand::Tensor(tensor) => {
                    let state = tensor.fresh();
                    let recorded = recordable && !tensor.detached;
                    let node = if recorded { state.node.clone() } else { None };
                    call.wants_grad |= node.is_some();
                    call.is_batched |= state.value.batched.is_some();
                    Operand::Tensor((Arc::clone(&state.value), node))
                }
                Operand::Scalar(scalar) => Operand::Scalar(*scalar),
            });
        }
        call
    }

    pub fn issue(
        mut self,
        site: CallSite,
        session: &Session,
        operation: &'static Operation,
        attributes: Attributes,
    ) -> Result<Tensor> {
        if !matches!(operation.numbers, Numbers::Converted) {
            self.convert_numbers(operation)?;
        }
        if let Some((id, meta)) = self.repeat(site, session, operation, &attributes) {
            return Ok(self.result_tensor(site, session, operation, attributes, (id, meta)));
        }
        let (mut metas, mut ids) = self.metas_and_ids(session, operation)?;
        let mut meta = operation.check(&metas, &attributes)?;
        let default = default_dtype();
        if meta.dtype == DType::F32 && default != DType::F32 {
            self.cast_integers(session, operation, &attributes, default)?;
            (metas, ids) = self.metas_and_ids(session, operation)?;
            meta = operation.check(&metas, &attributes)?;
        }
        if self.is_in_vmap(site.context, operation) {
            return Ok(self.issue_batched(site, session, operation, attributes)?.swap_remove(0));
        }
        let wants_grad = self.wants_grad && meta.dtype.has_gradients();
        let kept = if wants_grad { attributes.clone() } else { Attributes::new() };
        let work = operation.work(&metas, meta);
        let results = Results::from_buf([meta]);
        let id = session.issue(site, operation, ids, attributes, results, &metas, work);
        Ok(self.result_tensor(site, session, operation, kept, (id, meta)))
    }

    /// Converts scalars by the operation's dtype rule.
    #[inline(never)]
    fn convert_numbers(&mut self, operation: &Operation) -> Result<()> {
        let mut metas: SmallVec<[Operand<Meta>; 3]> =
            self.operands.iter().map(|operand| operand.map(|(value, _)| value.meta)).collect();
        operation.numbers.convert(operation.name, &mut metas, default_dtype())?;
        for (operand, meta) in self.operands.iter_mut().zip(metas) {
            if let Operand::Scalar(number) = meta {
                *operand = Operand::Scalar(number);
            }
        }
        Ok(())
    }

    /// Issues an instruction that repeats one of a hot path; `None` if it must be inferred and
    /// issued as a command.
    #[inline]
    fn repeat(
        &self,
        site: CallSite,
        session: &Session,
        operation: &'static Operation,
        attributes: &Attributes,
    ) -> Option<(TensorId, Meta)> {
        if default_dtype() != DType::F32 || self.is_in_vmap(site.context, operation) {
            return None;
        }
        let mut ids = Operands::new();
        for operand in &self.operands {
            ids.push(match operand {
                Operand::Tensor((value, _)) if value.session.is(session) => {
                    Operand::Tensor(value.issued()?)
                }
                Operand::Tensor(_) => return None,
                Operand::Scalar(scalar) => Operand::Scalar(*scalar),
            });
        }
        let inputs =
            self.operands.iter().map(|operand| operand.tensor().map(|(value, _)| value.meta));
        session.repeat(site, operation, &ids, attributes, inputs)
    }

    /// Returns the result of an instruction, recorded on the tape if a gradient is required.
    #[inline]
    fn result_tensor(
        &self,
        CallSite { context, source }: CallSite,
        session: &Session,
        operation: &'static Operation,
        attributes: Attributes,
        (id, meta): (TensorId, Meta),
    ) -> Tensor {
        let value = session.value(id, meta, source);
        let wants_grad = self.wants_grad && meta.dtype.has_gradients();
        let node = wants_grad.then(|| {
            let outputs = std::slice::from_ref(&value);
            TapeNode::record(context, operation, attributes, &self.operands, outputs)
        });
        Tensor::from_parts(value, node)
    }

    /// Like [`GatheredCall::issue`], for an operation with several results.
    pub fn issue_several(
        mut self,
        site: CallSite,
        session: &Session,
        operation: &'static Operation,
        attributes: Attributes,
    ) -> Result<Vec<Tensor>> {
        if !matches!(operation.numbers, Numbers::Converted) {
            self.convert_numbers(operation)?;
        }
        if self.is_in_vmap(site.context, operation) {
            return self.issue_batched(site, session, operation, attributes);
        }
        let (metas, ids) = self.metas_and_ids(session, operation)?;
        let results = operation.results(&metas, &attributes)?;
        let wants_grad = self.wants_grad && results.iter().any(|meta| meta.dtype.has_gradients());
        let kept = if wants_grad { attributes.clone() } else { Attributes::new() };
        let work = results.iter().map(|meta| operation.work(&metas, *meta)).sum();
        let first = session.issue(site, operation, ids, attributes, results.clone(), &[], work);
        let values = results
            .iter()
            .enumerate()
            .map(|(index, meta)| session.value(first.after(index as u64), *meta, site.source));
        let values: Vec<Arc<StreamValue>> = values.collect();
        Ok(self.result_tensors(site.context, operation, kept, values, wants_grad))
    }

    /// Returns whether batching rules of a `vmap` apply.
    #[inline]
    fn is_in_vmap(&self, context: &Context, operation: &Operation) -> bool {
        self.is_batched || matches!(operation.batching, Batching::Drawn) && context.is_in_vmap()
    }

    /// Like [`GatheredCall::issue_several`], inside `vmap`.
    #[cold]
    fn issue_batched(
        self,
        site: CallSite,
        session: &Session,
        operation: &'static Operation,
        attributes: Attributes,
    ) -> Result<Vec<Tensor>> {
        self.metas_and_ids(session, operation)?;
        let operands: SmallVec<[Operand<Arc<StreamValue>>; 3]> = self
            .operands
            .iter()
            .map(|operand| operand.map(|(value, _)| Arc::clone(value)))
            .collect();
        let kept = attributes.clone();
        let values = batching::issue(site, session, operation, &operands, attributes)?;
        let wants_grad =
            self.wants_grad && values.iter().any(|value| value.meta.dtype.has_gradients());
        if operation.further.is_some() {
            return Ok(self.result_tensors(
                site.context,
                operation,
                kept,
                values.into_vec(),
                wants_grad,
            ));
        }
        let node = wants_grad
            .then(|| TapeNode::record(site.context, operation, kept, &self.operands, &values));
        Ok(vec![Tensor::from_parts(Arc::clone(&values[0]), node)])
    }

    /// Returns the results of an operation with several, recorded on the tape if a gradient is
    /// required.
    fn result_tensors(
        &self,
        context: &Context,
        operation: &'static Operation,
        kept: Attributes,
        values: Vec<Arc<StreamValue>>,
        wants_grad: bool,
    ) -> Vec<Tensor> {
        if !wants_grad {
            return values.into_iter().map(|value| Tensor::from_parts(value, None)).collect();
        }
        let node = TapeNode::record(context, operation, kept, &self.operands, &values);
        let outputs = values.into_iter().enumerate().map(|(index, value)| {
            let on_tape = value.meta.dtype.has_gradients();
            let node = on_tape.then(|| TapeNode::output(&node, index));
            Tensor::from_parts(value, node)
        });
        outputs.collect()
    }

    /// Casts integers to the default dtype where inference would make them float32.
    #[cold]
    fn cast_integers(
        &mut self,
        session: &Session,
        operation: &'static Operation,
        attributes: &Attributes,
        default: DType,
    ) -> Result<()> {
        let mut tensors = self.operands.iter().filter_map(Operand::tensor);
        let all_are = tensors.all(|(value, _)| value.meta.dtype.is_exact());
        let has_dtype = attributes.iter().any(|one| matches!(one, Attribute::DType(_)));
        if !all_are || has_dtype {
            return Ok(());
        }
        // The first operand of `where` is the condition.
        let first = usize::from(operation.id == WHERE.id);
        for operand in self.operands.iter_mut().skip(first) {
            if let Operand::Tensor((value, _)) = operand {
                *value = Tensor::from_parts(Arc::clone(value), None).cast(default)?.value();
            }
        }
        // If all operands are numbers, the first becomes a tensor of the dtype.
        let are_numbers = self.operands[first..].iter().all(|operand| operand.tensor().is_none());
        if let (true, Some(Operand::Scalar(number))) = (are_numbers, self.operands.get(first)) {
            let made = Tensor::full(session, Shape::SCALAR, *number, default)?;
            self.operands[first] = Operand::Tensor((made.value(), None));
        }
        Ok(())
    }

    /// Returns the operands' metas and ids.
    #[inline]
    fn metas_and_ids(
        &self,
        session: &Session,
        operation: &'static Operation,
    ) -> Result<(SmallVec<[Operand<Meta>; 3]>, Operands)> {
        let mut metas: SmallVec<[Operand<Meta>; 3]> = SmallVec::new();
        let mut ids = Operands::new();
        for operand in &self.operands {
            if let Operand::Tensor((value, _)) = operand
                && !value.session.is(session)
            {
                return Err(two_sessions(operation.name, session, &value.session));
            }
            metas.push(operand.map(|(value, _)| value.meta));
            ids.push(operand.map(|(value, _)| value.id()));
        }
        Ok((metas, ids))
    }
}

impl Tensor {
    /// Checks that it is a tensor of a session with values, for the function `call`.
    ///
    /// # Errors
    /// It is of another session, or is mapped over by `vmap`.
    pub(crate) fn check_in(&self, call: &str, session: &Session) -> Result<()> {
        self.check_has_values(call)?;
        let own = self.session();
        if own.is(session) { Ok(()) } else { Err(two_sessions(call, session, &own)) }
    }
}

/// Returns the error for tensors of two sessions.
#[cold]
pub(crate) fn two_sessions(operation: &str, first: &Session, second: &Session) -> ClientError {
    let line = |session: &Session| {
        let closed = if session.is_closed() { ", closed" } else { "" };
        format!("  session {}: {}{closed}", session.number(), session.describe())
    };
    let closing = first.closing().or_else(|| second.closing());
    if let Some(closing) = closing {
        return ClientError::usage(format!("{operation}: {closing}"));
    }
    let hint = if first.is_closed() || second.is_closed() {
        "a closed session's tensors are freed; create them again"
    } else {
        "bring one over: with gt.Session.of(a).use(): b = gt.from_numpy(b.numpy())"
    };
    ClientError::usage(format!(
        "{operation}: the tensors belong to different sessions\n{}\n{}\n  hint: {hint}",
        line(first),
        line(second)
    ))
}
