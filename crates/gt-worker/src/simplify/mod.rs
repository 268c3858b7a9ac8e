//! Rewrites of traces, independent of the engine: the same values with less work.
//!
//! - [`joins`]: a sum of zeros with slices assigned, such as the gradient of slices, becomes a
//!   concatenation.
//!
//! Dead steps are removed. What remains gives the same bits.

mod joins;

use gt_ir::trace::{Source, Trace, TraceStep};
use gt_ir::{Attributes, Operation};
use smallvec::SmallVec;

/// An equivalent trace with less work.
pub fn simplify(trace: &Trace) -> Trace {
    let trace = without_the_unneeded(trace);
    let joins = joins::find(&trace);
    if joins.is_empty() {
        return trace;
    }
    let mut writer = TraceRewriter::new(&trace);
    for (index, step) in trace.steps.iter().enumerate() {
        let value = match joins.get(&index) {
            Some(joined) => joins::write(&mut writer, joined, step.output),
            None => writer.copy(step),
        };
        writer.values.push(value);
    }
    without_the_unneeded(&writer.finish(&trace))
}

fn without_the_unneeded(trace: &Trace) -> Trace {
    let needed = needed(trace);
    let mut writer = TraceRewriter::new(trace);
    for (index, step) in trace.steps.iter().enumerate() {
        let is_needed = needed[trace.value_of(index) as usize];
        // No remaining step reads the value of a removed one.
        let value = if is_needed { writer.copy(step) } else { u32::MAX };
        writer.values.push(value);
    }
    writer.finish(trace)
}

/// Which values are outputs, or used by a needed step.
fn needed(trace: &Trace) -> Vec<bool> {
    let mut needed = vec![false; trace.values()];
    trace.outputs.iter().for_each(|&value| needed[value as usize] = true);
    for (index, step) in trace.steps.iter().enumerate().rev() {
        if needed[trace.value_of(index) as usize] {
            step.reads().for_each(|value| needed[value as usize] = true);
        }
    }
    needed
}

/// Builds a new trace from an old one.
struct TraceRewriter {
    trace: Trace,
    /// The new trace's value for each value of the old one.
    values: Vec<u32>,
}

impl TraceRewriter {
    fn new(trace: &Trace) -> TraceRewriter {
        let new = Trace::new(trace.inputs.clone());
        TraceRewriter { values: (0..trace.inputs.len() as u32).collect(), trace: new }
    }

    /// Appends a step of the old trace, with its operands renumbered.
    fn copy(&mut self, step: &TraceStep) -> u32 {
        let new = |value: &u32| self.values[*value as usize];
        let operands = step.operands.iter().map(|source| source.map(new)).collect();
        let varying = step.varying.iter().map(new).collect();
        self.trace.steps.push(TraceStep { operands, varying, ..step.clone() });
        self.trace.values() as u32 - 1
    }

    /// Appends an operation on values of the new trace.
    fn push(
        &mut self,
        operation: &'static Operation,
        operands: &[Source],
        given: Attributes,
    ) -> u32 {
        let operands = operands.iter().copied().collect();
        let value = self.trace.push(&|_| true, operation, operands, given, SmallVec::new());
        value.expect("what it stands for was valid")
    }

    fn finish(mut self, old: &Trace) -> Trace {
        self.trace.outputs = old.outputs.iter().map(|&value| self.values[value as usize]).collect();
        self.trace
    }
}

/// Def-use information of a trace.
struct Links<'a> {
    trace: &'a Trace,
    uses: Vec<u32>,
}

impl<'a> Links<'a> {
    fn new(trace: &'a Trace) -> Links<'a> {
        let mut uses = vec![0; trace.values()];
        let read = trace.steps.iter().flat_map(TraceStep::reads);
        trace.outputs.iter().copied().chain(read).for_each(|value| uses[value as usize] += 1);
        Links { trace, uses }
    }

    /// The step that makes a value, with its index.
    fn maker(&self, source: &Source) -> Option<(usize, &'a TraceStep)> {
        let place = self.trace.step_of(*source.tensor()?)?;
        Some((place, &self.trace.steps[place]))
    }

    /// The same, if the value has no other use.
    fn only_maker(&self, source: &Source) -> Option<(usize, &'a TraceStep)> {
        let is_only = self.uses[*source.tensor()? as usize] == 1;
        self.maker(source).filter(|_| is_only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_ir::instruction::Attribute;
    use gt_ir::ops::{binary, create, slice, unary};
    use gt_ir::trace::Input;
    use gt_ir::{DType, Meta, Operand, Scalar, Shape};
    use smallvec::smallvec;

    fn meta(dims: &[usize]) -> Meta {
        Meta::new(DType::F32, Shape::new(dims).unwrap())
    }

    fn trace(inputs: &[&[usize]]) -> Trace {
        let input = |dims: &&[usize]| Input::Tensor(meta(dims));
        Trace::new(inputs.iter().map(input).collect())
    }

    fn push(trace: &mut Trace, of: &'static Operation, operands: &[u32], given: Attributes) -> u32 {
        let operands = operands.iter().map(|&value| Operand::Tensor(value)).collect();
        trace.push(&|_| true, of, operands, given, SmallVec::new()).unwrap()
    }

    fn names(trace: &Trace) -> Vec<&str> {
        trace.steps.iter().map(|step| step.operation.name).collect()
    }

    /// Zeros of shape 6 by 2 with rows assigned.
    fn padded(trace: &mut Trace, value: u32, start: i64, rows: i64) -> u32 {
        let attributes =
            smallvec![Attribute::dims(&meta(&[6, 2]).shape), Attribute::DType(DType::F32)];
        let zero = smallvec![Operand::Scalar(Scalar::Int(0))];
        let zeros = trace.push(&|_| true, &create::FULL, zero, attributes, smallvec![]).unwrap();
        let region = [[start, 0], [rows, 2], [1, 1]].map(|ints| Attribute::ints(&ints));
        push(trace, &slice::SLICE_ASSIGN, &[zeros, value], region.into_iter().collect())
    }

    fn of_slices(places: &[(i64, i64)]) -> Vec<String> {
        let inputs: Vec<[usize; 2]> = places.iter().map(|&(_, rows)| [rows as usize, 2]).collect();
        let inputs: Vec<&[usize]> = inputs.iter().map(|dims| &dims[..]).collect();
        let mut given = trace(&inputs);
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
        let mut given = trace(&[&[4, 5, 2]]);
        let absolute = push(&mut given, &unary::ABS, &[0], smallvec![]);
        push(&mut given, &unary::NEG, &[absolute], smallvec![]);
        let last = push(&mut given, &unary::EXP, &[absolute], smallvec![]);
        given.outputs = vec![last, 0];
        let simple = simplify(&given);
        assert_eq!(names(&simple), ["abs", "exp"]);
        assert_eq!(simple.outputs, [2, 0]);
    }
}
