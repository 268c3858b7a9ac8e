//! Issuing an operation: its operands are checked, an instruction is appended to the stream, and
//! the tape records it if a gradient is required.

use std::panic::Location;

use gt_ir::{Attributes, Operand, Operation};

use super::Tensor;
use super::call::{GatheredCall, two_sessions};
use crate::context::{self, CallSite};
use crate::error::{ClientError, Result};
use crate::session::Session;

impl Tensor {
    /// Issues an operation and, if a gradient is required, records it on the tape.
    ///
    /// # Errors
    /// The operation's inference rejects the operands, or they belong to two sessions.
    #[track_caller]
    pub fn apply(
        session: &Session,
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Tensor> {
        session.make_room()?;
        if let [Operand::Tensor(base)] = operands
            && operation.facts.result.is_view()
        {
            let result = Tensor::compute(session, operation, operands, attributes.clone())?;
            result.view_of(base, operation, &attributes)?;
            return Ok(result);
        }
        Tensor::compute(session, operation, operands, attributes)
    }

    /// Like [`Tensor::apply`], but the result shares no memory with the operand, and it never
    /// waits: a caller that issues several instructions makes room before.
    ///
    /// # Errors
    /// As for [`Tensor::apply`].
    #[track_caller]
    pub(crate) fn compute(
        session: &Session,
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Tensor> {
        context::at(Location::caller(), |site| {
            Tensor::compute_at(site, session, operation, operands, attributes)
        })
    }

    /// Like [`Tensor::compute`], at a given site.
    pub(crate) fn compute_at(
        site: CallSite,
        session: &Session,
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Tensor> {
        let call = GatheredCall::autocast(site.context, operation, operands, &attributes)?;
        if operation.further.is_some() {
            let mut results = call.issue_several(site, session, operation, attributes)?;
            return Ok(results.swap_remove(0));
        }
        call.issue(site, session, operation, attributes)
    }

    /// Like [`Tensor::apply`], for an operation with several results.
    ///
    /// # Errors
    /// As for [`Tensor::apply`].
    #[track_caller]
    pub fn apply_several(
        session: &Session,
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Vec<Tensor>> {
        session.make_room()?;
        Tensor::compute_several(session, operation, operands, attributes)
    }

    /// Like [`Tensor::apply_several`], but never waits.
    #[track_caller]
    pub(crate) fn compute_several(
        session: &Session,
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Vec<Tensor>> {
        context::at(Location::caller(), |site| {
            Tensor::compute_several_at(site, session, operation, operands, attributes)
        })
    }

    /// Like [`Tensor::compute_several`], at a given site.
    pub(crate) fn compute_several_at(
        site: CallSite,
        session: &Session,
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Vec<Tensor>> {
        let call = GatheredCall::autocast(site.context, operation, operands, &attributes)?;
        call.issue_several(site, session, operation, attributes)
    }

    /// Like [`Tensor::apply`], in the session of the first tensor, and only if the window has room.
    ///
    /// # Errors
    /// [`ClientError::WindowFull`] if the instruction should wait; no tensor among the operands.
    #[track_caller]
    pub fn try_apply(
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Tensor> {
        context::at(Location::caller(), |site| {
            Tensor::try_apply_at(site, operation, operands, attributes)
        })
    }

    fn try_apply_at(
        site: CallSite,
        operation: &'static Operation,
        operands: &[Operand<&Tensor>],
        attributes: Attributes,
    ) -> Result<Tensor> {
        let context = site.context;
        let call = GatheredCall::gather(context, operation, operands);
        let first = call.operands.iter().find_map(Operand::tensor);
        let session = first.map(|(value, _)| value.session.clone()).ok_or_else(|| {
            ClientError::usage(format!("{}: one operand must be a tensor", operation.name))
        })?;
        if session.is_full() {
            return Err(ClientError::WindowFull);
        }
        let call = if context.autocast().is_some() {
            GatheredCall::autocast(context, operation, operands, &attributes)?
        } else {
            call
        };
        call.issue(site, &session, operation, attributes)
    }

    /// Applies an operation to this tensor alone.
    #[track_caller]
    pub(crate) fn apply_unary(
        &self,
        operation: &'static Operation,
        attributes: Attributes,
    ) -> Result<Tensor> {
        Tensor::apply(&self.session(), operation, &[Operand::Tensor(self)], attributes)
    }

    /// Returns an error if another tensor is of another session.
    pub(crate) fn check_session(&self, other: &Tensor, operation: &str) -> Result<()> {
        let (own, others) = (self.session(), other.session());
        if own.is(&others) { Ok(()) } else { Err(two_sessions(operation, &own, &others)) }
    }
}
