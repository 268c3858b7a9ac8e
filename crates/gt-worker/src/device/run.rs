//! Runs single instructions.

use std::sync::Arc;

use gt_ir::instruction::Operands;
use gt_ir::message::Failure;
use gt_ir::{Instruction, Meta, Operand, TensorId, WorkerCommand};
use smallvec::SmallVec;

use super::Device;
use crate::composite;
use crate::engine::{Engine, EngineError, guarded, run_several};
use crate::lane::Lane;
use crate::lane::call::Metas;
use crate::memory::need_of;
use crate::store::Stored;

/// The result of a single instruction.
pub(super) type Made<T> = Result<SmallVec<[T; 1]>, EngineError>;

impl<E: Engine> Device<E> {
    /// Fails an instruction for which there is no memory: for its results, or for operands to be
    /// unspilled.
    #[cold]
    fn fail_without_room(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        results: u64,
    ) {
        let reads: SmallVec<[TensorId; 4]> = instruction.reads().collect();
        let (title, bytes) = (instruction.title().into(), results + lane.store.elsewhere(&reads));
        let failure = self.no_room_for(lane, title, bytes, instruction.source);
        self.fail_outputs(lane, instruction, &failure);
    }

    /// Runs an instruction and returns its work, or begins it as the lane's call. Operands freed by
    /// `dying`, the commands that follow, are passed by value, so that the engine may reuse their
    /// memory.
    pub fn run(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        dying: &[WorkerCommand],
    ) -> u64 {
        self.stats.operations_total += 1;
        if let Some(parts) = instruction.commit() {
            self.commit(lane, instruction, &parts);
            return 1;
        }
        if lane.memory.failure_if_short.is_some()
            && let room = lane.room(instruction.results.len())
            && let Some(need) = need_of(&self.engine, instruction, dying, &lane.store, room)
        {
            self.fail_without_room(lane, instruction, need);
            return 1;
        }
        let mut operands: Operands<E::Tensor> = SmallVec::new();
        let mut metas: Metas = SmallVec::new();
        let borrows = !lane.store.shared.borrowed.is_empty();
        for (index, operand) in instruction.operands.iter().enumerate() {
            let id = match operand {
                Operand::Scalar(scalar) => {
                    operands.push(Operand::Scalar(*scalar));
                    metas.push(Operand::Scalar(*scalar));
                    continue;
                }
                Operand::Tensor(id) => *id,
            };
            // A borrowed one stays until its free: the result may be a view of it.
            let is_borrowed = borrows && lane.store.shared.borrowed.has(id);
            match lane.store.get_used(id) {
                Some(Stored::Ready { tensor, meta, .. }) => {
                    metas.push(Operand::Tensor(*meta));
                    let again = instruction.operands[index + 1..].contains(operand);
                    let dies = |command: &WorkerCommand| matches!(command, WorkerCommand::Free(freed) if *freed == id);
                    if !again && !is_borrowed && dying.iter().any(dies) {
                        let Some((tensor, meta)) = lane.store.take(id) else {
                            unreachable!("it was there a line ago");
                        };
                        self.release(lane, id, &meta);
                        operands.push(Operand::Tensor(tensor));
                    } else {
                        operands.push(Operand::Tensor(tensor.clone()));
                    }
                }
                Some(Stored::Failed(failure)) => {
                    let found = Arc::clone(failure);
                    let first = lane.store.first_failure(instruction.reads());
                    let failure = first.map_or(found, Arc::clone);
                    self.fail_outputs(lane, instruction, &failure);
                    return 1;
                }
                // There was no memory to unspill it.
                Some(Stored::Away(_)) => {
                    self.fail_without_room(lane, instruction, 0);
                    return 1;
                }
                Some(Stored::Pending(_)) => unreachable!("it has waited for its operands"),
                None => {
                    let reason = format!("tensor {id} does not exist on this worker");
                    let failure = self.failure(instruction, &[], reason);
                    self.fail_outputs(lane, instruction, &failure);
                    return 1;
                }
            }
        }
        if self.events.is_on() {
            metas.iter().filter_map(Operand::tensor).for_each(|meta| self.events.reads(meta));
        }
        if self.pausable_from.is_some() {
            match self.begin_instruction(lane, instruction, operands, &metas) {
                Some(given_back) => operands = given_back,
                None => return 1,
            }
        }
        let made = self.compute(instruction, operands, &metas);
        self.settle(lane, instruction, &metas, made)
    }

    /// Stores the results of an instruction, or its failure. Returns its work.
    pub(super) fn settle(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        metas: &Metas,
        made: Made<E::Tensor>,
    ) -> u64 {
        match made {
            Ok(made) => {
                for ((id, meta), tensor) in instruction.outputs().zip(made) {
                    self.keep(lane, (id, tensor, meta, instruction.source), instruction.reads());
                }
                instruction.operation.work(metas, instruction.meta())
            }
            Err(error) => {
                let failure = self.failure(instruction, metas, self.explain(lane, &error));
                let largest = self.largest_if_full(lane, &error);
                let failure = Failure { largest, ..Arc::unwrap_or_clone(failure) };
                self.fail_outputs(lane, instruction, &Arc::new(failure));
                1
            }
        }
    }

    /// Checks and computes an instruction.
    ///
    /// # Errors
    /// The instruction is not valid, or the engine fails.
    fn compute(
        &mut self,
        instruction: &Instruction,
        operands: Operands<E::Tensor>,
        metas: &Metas,
    ) -> Made<E::Tensor> {
        let (operation, attributes) = (instruction.operation, &instruction.attributes);
        instruction.check(metas).map_err(EngineError::Other)?;
        let meta = instruction.meta();
        let given = if self.options.check_nan { Some(operands.clone()) } else { None };
        let engine = &mut self.engine;
        let made = guarded(|| {
            if operation.further.is_some() {
                let results = &instruction.results;
                let made = run_several(engine, operation, operands, attributes, results);
                return made.map(SmallVec::from_vec);
            }
            let made = composite::run(engine, operation, operands, metas, attributes, meta);
            made.map(|made| SmallVec::from_buf([made]))
        })?;
        match given.and_then(|given| self.new_nan(&given, &made[0], meta)) {
            Some(reason) => Err(EngineError::Other(reason)),
            None => Ok(made),
        }
    }

    /// The error of a result with a NaN whose operands have none.
    fn new_nan(
        &mut self,
        operands: &Operands<E::Tensor>,
        result: &E::Tensor,
        meta: Meta,
    ) -> Option<String> {
        if !meta.dtype.is_float() {
            return None;
        }
        let engine = &mut self.engine;
        let mut nan_in = |tensor: &E::Tensor| {
            let data = engine.read(tensor).ok()?;
            (0..data.shape.numel()).find(|&index| data.element(index).as_f64().is_nan())
        };
        let index = nan_in(result)?;
        let is_nan = |operand: &Operand<E::Tensor>| match operand {
            Operand::Tensor(tensor) => nan_in(tensor).is_some(),
            Operand::Scalar(scalar) => scalar.as_f64().is_nan(),
        };
        if operands.iter().any(is_nan) {
            return None;
        }
        Some(format!(
            "the result has a NaN, first as element {index} of {}, and no operand has one (GT_CHECK_NAN)",
            meta.shape.numel()
        ))
    }
}
