//! Transactions (steps): changes of several tensors that take effect together, or not at all.
//!
//! A step remembers the values of some tensors. When it ends, one instruction (`commit`) names the
//! new and the old value of each tensor that has changed. If a new value has failed, or fails
//! later, all tensors keep their old values. Nothing waits for this.

use std::panic::Location;
use std::sync::Arc;

use gt_ir::instruction::{Operands, Results};
use gt_ir::ops::commit::{COMMIT, RESULT, attributes};
use gt_ir::{Meta, Operand, TensorId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::context;
use crate::context::scopes::Scope;
use crate::error::Result;
use crate::session::{Session, StreamValue};
use crate::source;
use crate::tape::no_grad;
use crate::tensor::{RollbackPoint, Tensor, ValueRef};

/// Tensors with the values that they had when the step began.
pub struct Transaction {
    points: Vec<RollbackPoint>,
    /// The first id of the tensors that the step has made, in the session of the first tensor.
    first: Option<TensorId>,
}

/// The most tensors of one commit; larger steps have several.
const MAX_COMMIT: usize = 1 << 12;

/// A change of a step: the new value, and the old one.
type ChangedValue = (Arc<StreamValue>, Arc<StreamValue>);

impl Transaction {
    /// Starts a step that may change these tensors. For a view, its base is remembered.
    pub fn begin<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> Transaction {
        let mut points: Vec<RollbackPoint> = Vec::with_capacity(tensors.size_hint().0);
        let mut first = None;
        for tensor in tensors {
            let one = tensor.rollback_point();
            if one.is_shared() && points.iter().any(|other| other.is_of_same(&one)) {
                continue;
            }
            first.get_or_insert_with(|| one.old().session.next_tensor());
            points.push(one);
        }
        Transaction { points, first }
    }

    /// Ends the step. `made` are further tensors that have replaced others, with the old values of
    /// these; zeros, if they had none.
    ///
    /// # Errors
    /// The connection was lost.
    #[track_caller]
    pub fn commit<'a>(
        self,
        made: impl Iterator<Item = (&'a Tensor, Option<ValueRef>)>,
    ) -> Result<()> {
        let Some(first) = self.first else { return Ok(()) };
        let mut pairs: SmallVec<[ChangedValue; 8]> = SmallVec::new();
        let mut seen = SeenTensors::default();
        // A value that another tensor shares is copied first.
        let mut own = |point: &RollbackPoint, new: Arc<StreamValue>| {
            let is_own = new.issued().is_some_and(|id| id >= first) && seen.insert(new.id());
            if is_own { Ok(new) } else { point.reissue() }
        };
        for point in &self.points {
            let (new, old) = (point.current(), point.old());
            if Arc::ptr_eq(&new, old) || new.batched.is_some() || new.meta != old.meta {
                continue;
            }
            pairs.push((own(point, new)?, Arc::clone(old)));
        }
        for (tensor, old) in made {
            let point = tensor.rollback_point();
            let new = point.current();
            if new.batched.is_some() {
                continue;
            }
            let old = match old.filter(|old| *old.meta() == new.meta) {
                Some(old) => Arc::clone(old.value()),
                None => {
                    let Meta { shape, dtype } = new.meta;
                    no_grad(|| Tensor::full(&new.session, shape, 0.0, dtype))?.value()
                }
            };
            pairs.push((own(&point, new)?, old));
        }
        end(&pairs)?;
        self.points.iter().for_each(RollbackPoint::mark_changed);
        Ok(())
    }

    /// Restores the values that all tensors had when the step started.
    ///
    /// # Errors
    /// Those of an in-place change.
    pub fn roll_back(self) -> Result<()> {
        no_grad(|| self.points.into_iter().try_for_each(RollbackPoint::restore))
    }
}

/// A set of tensors: a list while it is small.
#[derive(Default)]
struct SeenTensors {
    few: SmallVec<[TensorId; 16]>,
    more: FxHashSet<TensorId>,
}

impl SeenTensors {
    /// Adds a tensor; returns whether it is new.
    fn insert(&mut self, id: TensorId) -> bool {
        if self.few.contains(&id) {
            return false;
        }
        if self.few.len() < self.few.inline_size() {
            self.few.push(id);
            return true;
        }
        self.more.insert(id)
    }
}

/// A step on values, for callers that track changes themselves.
pub struct ValueStep {
    first: TensorId,
    seen: SeenTensors,
    pairs: Vec<ChangedValue>,
}

impl ValueStep {
    /// Starts a step in a session.
    pub fn begin(session: &Session) -> ValueStep {
        ValueStep { first: session.next_tensor(), seen: SeenTensors::default(), pairs: Vec::new() }
    }

    /// Records that a value has replaced another; zeros plus `number`, if there was none. Returns
    /// the value to keep: a copy, if the value is shared.
    ///
    /// # Errors
    /// The connection was lost.
    #[track_caller]
    pub fn changes(
        &mut self,
        new: ValueRef,
        old: Option<ValueRef>,
        number: f64,
    ) -> Result<ValueRef> {
        let Meta { shape, dtype } = *new.meta();
        let old = old.filter(|old| {
            let Meta { shape: before, dtype: of } = *old.meta();
            of == dtype && before.numel() == shape.numel()
        });
        let old = no_grad(|| match old {
            Some(old) if *old.meta() == *new.meta() => Ok(old.tensor()),
            Some(old) => {
                let dims: SmallVec<[i64; 8]> = shape.iter().map(|&dim| dim as i64).collect();
                old.tensor().reshape(&dims)
            }
            None => Tensor::full(new.session(), shape, number, dtype),
        })?;
        let is_own = new.value().id() >= self.first && self.seen.insert(new.value().id());
        let new =
            if is_own { new } else { no_grad(|| new.tensor().cast_always(dtype))?.value_ref() };
        self.pairs.push((Arc::clone(new.value()), old.value()));
        Ok(new)
    }

    /// Ends the step.
    ///
    /// # Errors
    /// The connection was lost.
    #[track_caller]
    pub fn end(self) -> Result<()> {
        end(&self.pairs)
    }
}

/// Commits the changes of a step.
#[track_caller]
fn end(pairs: &[ChangedValue]) -> Result<()> {
    let Some((first, _)) = pairs.first() else { return Ok(()) };
    let is_of = |(new, old): &ChangedValue, session: &Session| {
        new.session.is(session) && old.session.is(session)
    };
    if pairs.iter().all(|pair| is_of(pair, &first.session)) {
        return end_in(&first.session, pairs);
    }
    // Each session commits its own changes.
    let mut sessions: Vec<&Session> = Vec::new();
    for (new, _) in pairs {
        if !sessions.iter().any(|known| known.is(&new.session)) {
            sessions.push(&new.session);
        }
    }
    for session in sessions {
        let own: Vec<ChangedValue> =
            pairs.iter().filter(|pair| is_of(pair, session)).cloned().collect();
        end_in(session, &own)?;
    }
    Ok(())
}

#[track_caller]
fn end_in(session: &Session, pairs: &[ChangedValue]) -> Result<()> {
    let mut guards: SmallVec<[Arc<StreamValue>; 2]> = SmallVec::new();
    if pairs.len() > MAX_COMMIT {
        for some in pairs.chunks(MAX_COMMIT) {
            let id = issue(session, some.iter().map(|(new, _)| new), some.len())?;
            guards.push(session.value(id, RESULT, source::current()));
        }
    }
    for some in pairs.chunks(MAX_COMMIT) {
        some.iter().for_each(|(new, _)| new.set_committed());
        let pairs = some.iter().flat_map(|(new, old)| [new, old]);
        let id = issue(session, guards.iter().chain(pairs), guards.len())?;
        session.free(id);
    }
    Ok(())
}

/// Issues the commit, whose first `guards` values are guards.
#[track_caller]
fn issue<'a>(
    session: &Session,
    values: impl Iterator<Item = &'a Arc<StreamValue>> + Clone,
    guards: usize,
) -> Result<TensorId> {
    session.make_room()?;
    let (caller, attributes) = (Location::caller(), attributes(guards, false));
    let ids: Operands = values.clone().map(|value| Operand::Tensor(value.id())).collect();
    let metas = values.clone().map(|value| Some(value.meta));
    Ok(context::at(caller, |site| {
        let context = site.context;
        context.within_scope(Scope { signal: 0, ..context.scope() }, || {
            if let Some((id, _)) = session.repeat(site, &COMMIT, &ids, &attributes, metas) {
                return id;
            }
            let inputs: SmallVec<[Operand<Meta>; 8]> =
                values.map(|value| Operand::Tensor(value.meta)).collect();
            let results = Results::from_buf([RESULT]);
            session.issue(site, &COMMIT, ids, attributes, results, &inputs, 1)
        })
    }))
}
