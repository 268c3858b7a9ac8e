//! Tests of traces: composites, several results, numbers, keys and last uses.

use smallvec::{SmallVec, smallvec};

use super::{Input, Source, Trace};
use crate::instruction::{Attribute, Attributes, Operand};
use crate::ops::{ALL, binary, order, slice};
use crate::{DType, Meta, Operation, Scalar, Shape};

fn meta(dims: &[usize]) -> Meta {
    Meta::new(DType::F32, Shape::new(dims).unwrap())
}

fn operation(name: &str) -> &'static Operation {
    ALL.iter().find(|operation| operation.name == name).unwrap()
}

fn value(number: u32) -> Source {
    Operand::Tensor(number)
}

fn push(
    trace: &mut Trace,
    operation: &'static Operation,
    operands: &[Source],
    attributes: Attributes,
    varying: &[u32],
) -> u32 {
    let (operands, varying) = (operands.iter().copied().collect(), varying.into());
    trace.push(&|_| true, operation, operands, attributes, varying).unwrap()
}

fn names(trace: &Trace) -> Vec<&str> {
    trace.steps.iter().map(|step| step.operation.name).collect()
}

#[test]
fn a_composite_is_expanded_into_what_is_lowered() {
    let softmax = operation("softmax");
    let attributes: Attributes = smallvec![Attribute::Int(1)];
    let metas = [Operand::Tensor(meta(&[2, 3]))];
    let whole = Trace::of_operation(softmax, &metas, &attributes, &|_| true).unwrap();
    assert_eq!(names(&whole), ["softmax"]);
    let lowers = |of: &'static Operation| of.name != "softmax";
    let steps = Trace::of_operation(softmax, &metas, &attributes, &lowers).unwrap();
    assert!(steps.steps.len() > 1 && !names(&steps).contains(&"softmax"), "{steps}");
    let of_output = |trace: &Trace| trace.meta(trace.outputs[0]);
    assert_eq!(of_output(&steps), of_output(&whole));
    assert!(Trace::of_operation(softmax, &[], &attributes, &|_| true).is_err());
}

#[test]
fn each_result_of_a_step_is_a_value() {
    let mut trace = Trace::new(vec![Input::Tensor(meta(&[4]))]);
    let attributes = smallvec![Attribute::Int(0), Attribute::Bool(false)];
    let first = push(&mut trace, &order::SORT, &[value(0)], attributes, &[]);
    let results = trace.results(0);
    assert_eq!((first, trace.values()), (1, 1 + results.len()));
    assert_eq!(trace.recorded_results(0), results);
    assert_eq!(trace.places(0), (0..results.len()).map(Some).collect::<Vec<_>>());
    for (index, result) in (first..).zip(&results) {
        assert_eq!(trace.meta(index), Operand::Tensor(*result));
    }
}

#[test]
fn numbers_are_bound_when_it_runs_and_are_not_in_its_key() {
    let trace = |half: f64, start: i64| {
        let number = |scalar| Input::Number(scalar);
        let inputs = vec![
            Input::Tensor(meta(&[8])),
            number(Scalar::Float(half)),
            number(Scalar::Int(start)),
        ];
        let mut trace = Trace::new(inputs);
        let scaled = push(&mut trace, &binary::MUL, &[value(0), value(1)], smallvec![], &[]);
        let region = [[start], [2], [1]].map(|ints| Attribute::ints(&ints));
        let region = region.into_iter().collect();
        push(&mut trace, &slice::SLICE, &[value(scaled)], region, &[2]);
        trace.outputs = vec![4];
        trace
    };
    let (one, other) = (trace(0.5, 1), trace(2.0, 5));
    assert_eq!(one.key(), other.key());
    let start = |value: u32| Scalar::Int(i64::from(value) * 3);
    assert_eq!(one.steps[1].bind(start)[0], Attribute::ints(&[6]));
    assert!(one.check_varying(start).is_ok());
    assert!(one.check_varying(|_| Scalar::Int(7)).is_err());
}

#[test]
fn traces_that_differ_have_different_keys() {
    let trace = |constant: f64, dims: &[usize], outputs: &[u32]| {
        let mut trace = Trace::new(vec![Input::Tensor(meta(dims))]);
        let constant = Operand::Scalar(Scalar::Float(constant));
        push(&mut trace, &binary::ADD, &[value(0), constant], SmallVec::new(), &[]);
        push(&mut trace, &binary::MUL, &[value(1), value(0)], SmallVec::new(), &[]);
        trace.outputs = outputs.to_vec();
        trace.key()
    };
    let key = trace(1.0, &[3], &[2]);
    assert_eq!(key, trace(1.0, &[3], &[2]));
    for other in [trace(2.0, &[3], &[2]), trace(1.0, &[4], &[2]), trace(1.0, &[3], &[1, 2])] {
        assert_ne!(key, other);
    }
}

#[test]
fn the_last_use_of_a_value_is_the_last_step_that_reads_it() {
    let mut trace = Trace::new(vec![Input::Tensor(meta(&[3])); 2]);
    push(&mut trace, &binary::ADD, &[value(0), value(0)], SmallVec::new(), &[]);
    push(&mut trace, &binary::MUL, &[value(2), value(0)], SmallVec::new(), &[]);
    assert_eq!(trace.last_uses(), [Some(1), None, Some(1), None]);
    assert_eq!((trace.step_of(1), trace.step_of(3), trace.value_of(1)), (None, Some(1), 3));
}
