//! Rewrites of plans, independent of the engine: the same values with less work.
//!
//! - [`joins`]: a sum of zeros with slices assigned, such as the gradient of slices, becomes a
//!   concatenation.
//!
//! Dead steps are removed. What remains gives the same bits.

mod joins;

use gt_ir::{Attributes, Operation};
use smallvec::SmallVec;

use crate::plan::{Plan, PlanStep, Source};

/// An equivalent plan with less work.
pub fn simplify(plan: &Plan) -> Plan {
    let plan = without_the_unneeded(plan);
    let joins = joins::find(&plan);
    if joins.is_empty() {
        return plan;
    }
    let mut writer = PlanWriter::new(&plan);
    for (index, step) in plan.steps.iter().enumerate() {
        let value = match joins.get(&index) {
            Some(joined) => joins::write(&mut writer, joined, step.output),
            None => writer.copy(step),
        };
        writer.values.push(value);
    }
    without_the_unneeded(&writer.finish(&plan))
}

fn without_the_unneeded(plan: &Plan) -> Plan {
    let needed = needed(plan);
    let mut writer = PlanWriter::new(plan);
    for (index, step) in plan.steps.iter().enumerate() {
        let is_needed = needed[plan.inputs.len() + index];
        // No remaining step reads the value of a removed one.
        let value = if is_needed { writer.copy(step) } else { u32::MAX };
        writer.values.push(value);
    }
    writer.finish(plan)
}

/// Which values are outputs, or used by a needed step.
fn needed(plan: &Plan) -> Vec<bool> {
    let mut needed = vec![false; plan.values()];
    plan.outputs.iter().for_each(|&value| needed[value as usize] = true);
    for (index, step) in plan.steps.iter().enumerate().rev() {
        if needed[plan.inputs.len() + index] {
            step.reads().for_each(|value| needed[value as usize] = true);
        }
    }
    needed
}

/// Builds a new plan from an old one.
struct PlanWriter {
    plan: Plan,
    /// The new plan's value for each value of the old one.
    values: Vec<u32>,
}

impl PlanWriter {
    fn new(plan: &Plan) -> PlanWriter {
        let mut new = Plan::new(plan.inputs.clone());
        new.compile = plan.compile;
        PlanWriter { values: (0..plan.inputs.len() as u32).collect(), plan: new }
    }

    /// Appends a step of the old plan, with its operands renumbered.
    fn copy(&mut self, step: &PlanStep) -> u32 {
        let new = |value: &u32| self.values[*value as usize];
        let operands = step.operands.iter().map(|source| source.map(new)).collect();
        let varying = step.varying.iter().map(new).collect();
        self.plan.steps.push(PlanStep { operands, varying, ..step.clone() });
        self.plan.values() as u32 - 1
    }

    /// Appends an operation on values of the new plan.
    fn push(
        &mut self,
        operation: &'static Operation,
        operands: &[Source],
        given: Attributes,
    ) -> u32 {
        let operands = operands.iter().copied().collect();
        let value = self.plan.push(&|_| true, operation, operands, given, SmallVec::new());
        value.expect("what it stands for was valid")
    }

    fn finish(mut self, old: &Plan) -> Plan {
        self.plan.outputs = old.outputs.iter().map(|&value| self.values[value as usize]).collect();
        self.plan
    }
}

/// Def-use information of a plan.
struct Links<'a> {
    plan: &'a Plan,
    uses: Vec<u32>,
}

impl<'a> Links<'a> {
    fn new(plan: &'a Plan) -> Links<'a> {
        let mut uses = vec![0; plan.values()];
        let read = plan.steps.iter().flat_map(PlanStep::reads);
        plan.outputs.iter().copied().chain(read).for_each(|value| uses[value as usize] += 1);
        Links { plan, uses }
    }

    /// The step that makes a value, with its index.
    fn maker(&self, source: &Source) -> Option<(usize, &'a PlanStep)> {
        let place = (*source.tensor()? as usize).checked_sub(self.plan.inputs.len())?;
        Some((place, &self.plan.steps[place]))
    }

    /// The same, if the value has no other use.
    fn only_maker(&self, source: &Source) -> Option<(usize, &'a PlanStep)> {
        let is_only = self.uses[*source.tensor()? as usize] == 1;
        self.maker(source).filter(|_| is_only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Input;
    use gt_ir::instruction::Attribute;
    use gt_ir::ops::{binary, create, slice, unary};
    use gt_ir::{DType, Meta, Operand, Scalar, Shape};
    use smallvec::smallvec;

    fn meta(dims: &[usize]) -> Meta {
        Meta::new(DType::F32, Shape::new(dims).unwrap())
    }

    fn plan(inputs: &[&[usize]]) -> Plan {
        let input = |dims: &&[usize]| Input::Tensor { meta: meta(dims), dies: false };
        Plan::new(inputs.iter().map(input).collect())
    }

    fn push(plan: &mut Plan, of: &'static Operation, operands: &[u32], given: Attributes) -> u32 {
        let operands = operands.iter().map(|&value| Operand::Tensor(value)).collect();
        plan.push(&|_| true, of, operands, given, SmallVec::new()).unwrap()
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.steps.iter().map(|step| step.operation.name).collect()
    }

    /// Zeros of shape 6 by 2 with rows assigned.
    fn padded(plan: &mut Plan, value: u32, start: i64, rows: i64) -> u32 {
        let attributes =
            smallvec![Attribute::dims(&meta(&[6, 2]).shape), Attribute::DType(DType::F32)];
        let zero = smallvec![Operand::Scalar(Scalar::Int(0))];
        let zeros = plan.push(&|_| true, &create::FULL, zero, attributes, smallvec![]).unwrap();
        let region = [[start, 0], [rows, 2], [1, 1]].map(|ints| Attribute::ints(&ints));
        push(plan, &slice::SLICE_ASSIGN, &[zeros, value], region.into_iter().collect())
    }

    fn of_slices(places: &[(i64, i64)]) -> Vec<String> {
        let inputs: Vec<[usize; 2]> = places.iter().map(|&(_, rows)| [rows as usize, 2]).collect();
        let inputs: Vec<&[usize]> = inputs.iter().map(|dims| &dims[..]).collect();
        let mut given = plan(&inputs);
        let mut total = None;
        for (value, &(start, rows)) in places.iter().enumerate() {
            let part = padded(&mut given, value as u32, start, rows);
            total = Some(match total {
                Some(total) => push(&mut given, &binary::ADD, &[total, part], smallvec![]),
                None => part,
            });
        }
        given.outputs = vec![total.unwrap()];
        names(&simplify(&given)).into_iter().map(String::from).collect()
    }

    #[test]
    fn gradients_of_slices_are_put_side_by_side() {
        assert_eq!(of_slices(&[(2, 2), (0, 2), (4, 2)]), ["cat", "add"]);
        // With a gap.
        assert_eq!(of_slices(&[(0, 2), (3, 3)]), ["full", "slice_assign", "slice_assign", "add"]);
        // With an overlap.
        let both = ["full", "slice_assign", "full", "slice_assign", "add"];
        assert_eq!(of_slices(&[(0, 4), (3, 3)]), both);
    }

    #[test]
    fn what_nothing_needs_is_left_out() {
        let mut given = plan(&[&[4, 5, 2]]);
        let absolute = push(&mut given, &unary::ABS, &[0], smallvec![]);
        push(&mut given, &unary::NEG, &[absolute], smallvec![]);
        let last = push(&mut given, &unary::EXP, &[absolute], smallvec![]);
        given.outputs = vec![last, 0];
        let simple = simplify(&given);
        assert_eq!(names(&simple), ["abs", "exp"]);
        assert_eq!(simple.outputs, [2, 0]);
    }
}
