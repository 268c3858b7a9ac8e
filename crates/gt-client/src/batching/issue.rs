//! Issues operations with operands that are mapped over.

use std::sync::Arc;

use gt_ir::batching::{self, BatchedCall};
use gt_ir::instruction::Operands;
use gt_ir::{Attributes, Graph, Meta, Operand, Operation, Var};
use smallvec::SmallVec;

use super::value::{hide, nest};
use crate::context::CallSite;
use crate::context::level::Level;
use crate::error::Result;
use crate::session::{Session, StreamValue};

/// The results of an operation.
pub(crate) type ResultValues = SmallVec<[Arc<StreamValue>; 1]>;

/// Issues an operation by its batching rule at the innermost level of its operands.
pub(super) fn emit(
    site: CallSite,
    session: &Session,
    operation: &'static Operation,
    operands: &[Operand<Arc<StreamValue>>],
    attributes: Attributes,
) -> Result<ResultValues> {
    let metas = metas(operands);
    let results = operation.results(&metas, &attributes)?;
    let given = operands.iter().filter_map(Operand::tensor);
    let innermost = given.filter_map(|value| nest(value).next()).max_by_key(|level| level.number);
    let Some(level) = innermost else {
        return Ok(issue_unbatched(site, session, operation, operands, attributes, &metas));
    };
    let mut graph = BatchingGraph { site, session, values: Vec::new() };
    let (mut inner, mut batched) = (Operands::<Var>::new(), SmallVec::<[bool; 3]>::new());
    for operand in operands {
        let (operand, is_batched) = match operand {
            Operand::Scalar(scalar) => (Operand::Scalar(*scalar), false),
            Operand::Tensor(value) => {
                let at_level = shown_at(value, level);
                let of = at_level.unwrap_or(value);
                (Operand::Tensor(graph.push(Arc::clone(of))), at_level.is_some())
            }
        };
        inner.push(operand);
        batched.push(is_batched);
    }
    let batch = BatchedCall {
        operation,
        operands: &inner,
        batched: &batched,
        metas: &metas,
        attributes: &attributes,
        results: &results,
        size: level.size,
    };
    let whole = batching::apply(&mut graph, &batch);
    Ok(whole.iter().map(|var| hide(Arc::clone(&graph.values[var.0 as usize]), level)).collect())
}

/// Returns the value with the axis of a level, if it is mapped over there.
fn shown_at<'a>(value: &'a StreamValue, level: &Level) -> Option<&'a Arc<StreamValue>> {
    let batched = value.batched.as_deref()?;
    (batched.level.number == level.number).then_some(&batched.of)
}

pub(super) fn metas(operands: &[Operand<Arc<StreamValue>>]) -> SmallVec<[Operand<Meta>; 3]> {
    operands.iter().map(|operand| operand.map(|value| value.meta)).collect()
}

/// Issues an instruction whose operands hide no axes.
fn issue_unbatched(
    site: CallSite,
    session: &Session,
    operation: &'static Operation,
    operands: &[Operand<Arc<StreamValue>>],
    attributes: Attributes,
    metas: &[Operand<Meta>],
) -> ResultValues {
    let results = operation.results(metas, &attributes).expect("checked by the caller");
    let ids = operands.iter().map(|operand| operand.map(|value| value.id())).collect();
    let work = results.iter().map(|meta| operation.work(metas, *meta)).sum();
    let first = session.issue(site, operation, ids, attributes, results.clone(), &[], work);
    let values = results.iter().enumerate();
    values
        .map(|(index, meta)| session.value(first.after(index as u64), *meta, site.source))
        .collect()
}

/// A graph that issues the instructions of batching rules.
struct BatchingGraph<'a> {
    site: CallSite<'a>,
    session: &'a Session,
    values: Vec<Arc<StreamValue>>,
}

impl BatchingGraph<'_> {
    fn push(&mut self, value: Arc<StreamValue>) -> Var {
        self.values.push(value);
        Var(self.values.len() as u32 - 1)
    }
}

impl Graph for BatchingGraph<'_> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let value =
            |operand: &Operand<Var>| operand.map(|var| Arc::clone(&self.values[var.0 as usize]));
        let operands: SmallVec<[Operand<Arc<StreamValue>>; 3]> =
            operands.iter().map(value).collect();
        let results = emit(self.site, self.session, operation, &operands, attributes)
            .expect("batching rules build valid operations");
        let first = Var(self.values.len() as u32);
        self.values.extend(results);
        first
    }

    fn meta(&self, var: Var) -> Meta {
        self.values[var.0 as usize].meta
    }
}
