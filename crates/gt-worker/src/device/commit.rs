//! Commits: the end of a step, at which its changes take effect or are undone.
//!
//! Inside a plan a commit does nothing: a plan that succeeds has no failure in it.

use std::sync::Arc;

use bytes::Bytes;
use gt_ir::instruction::Attribute;
use gt_ir::ops::commit::{CommitParts, RESULT};
use gt_ir::{Content, Instruction, TensorData, TensorId};

use super::Device;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::store::Stored;

impl<E: Engine> Device<E> {
    /// Ends a step. If one of its new values or guards has failed, each new tensor gets the old
    /// value, and the commit's own result is that failure.
    pub fn commit(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        parts: &CommitParts<TensorId>,
    ) {
        let missing = instruction.reads().find(|id| lane.store.get(*id).is_none());
        let invalid = match missing {
            Some(id) => Some(format!("tensor {id} does not exist on this worker")),
            None => parts.pairs.iter().find_map(|(new, old)| {
                let metas = (lane.store.meta(*new)?, lane.store.meta(*old)?);
                let (given, wanted) = (metas.0.shape, metas.1.shape);
                (metas.0 != metas.1).then(|| format!("a new value of {given} for one of {wanted}"))
            }),
        };
        if let Some(reason) = invalid {
            let failure = self.failure(instruction, &[], reason);
            return self.fail_outputs(lane, instruction, &failure);
        }
        let Some(failure) = lane.store.first_failure(parts.watched()).cloned() else {
            let zero = TensorData {
                dtype: RESULT.dtype,
                shape: RESULT.shape,
                bytes: Bytes::from_static(&[0; 4]),
            };
            return self.make(lane, instruction.output, Content::Data(zero), instruction.source);
        };
        // Slots that run the same on equal values fail together for reasons of values. A failure of
        // one slot alone, such as a memory limit, is unknown to the others: its tensors stay
        // failed.
        let is_replicated = instruction.attributes.get(1) == Some(&Attribute::Bool(true));
        if !is_replicated || failure.is_of_values() {
            for &(new, old) in &parts.pairs {
                self.undo(lane, new, old);
            }
            let Lane { undone, store, .. } = lane;
            undone.changed.retain(|id| store.get(*id).is_some());
            if !parts.pairs.is_empty() {
                undone.add(&failure);
            }
        }
        self.fail_outputs(lane, instruction, &failure);
    }

    /// Assigns a tensor the value of another.
    fn undo(&mut self, lane: &mut Lane<E::Tensor>, new: TensorId, old: TensorId) {
        if new == old {
            return;
        }
        lane.undone.changed.insert(new);
        let failure = match lane.store.get_used(old) {
            Some(Stored::Ready { tensor, meta, line, .. }) => {
                let value = (new, tensor.clone(), *meta, *line);
                return self.keep(lane, value, std::iter::once(old));
            }
            Some(Stored::Failed(failure)) => Arc::clone(failure),
            // There was no memory to unspill it.
            Some(Stored::Away(away)) => {
                let (bytes, line) = (away.elsewhere(), away.line);
                self.no_room_for(lane, "commit".into(), bytes, line)
            }
            Some(Stored::Pending(_)) => unreachable!("it has waited for its operands"),
            None => unreachable!("it was there when the commit began"),
        };
        self.fail(lane, new, failure);
    }
}
