//! Recorded programs: the commands that a function issued are issued again for other tensors.

use gt::ir::ops::order::SORT;
use gt::ir::{Attribute, Operand};
use gt::program::{Program, record};
use gt::{ClientError, Session, Tensor, ValueRef};

fn row(session: &Session, numbers: &[f32]) -> Tensor {
    Tensor::from_slice(session, numbers, &[numbers.len()]).unwrap()
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec().unwrap()
}

/// The program of a function of two tensors.
fn program_of(
    inputs: &[Tensor],
    function: impl Fn(&[Tensor]) -> Result<Tensor, ClientError>,
) -> Option<Program> {
    let (result, recording) = record(&refs(inputs), &[], || function(inputs).unwrap());
    recording?.finish(&[result.value_ref()])
}

fn refs(tensors: &[Tensor]) -> Vec<ValueRef> {
    tensors.iter().map(Tensor::value_ref).collect()
}

/// Returns the results of a program for other inputs.
fn run(program: &Program, session: &Session, inputs: &[Tensor], of: &[f64]) -> Option<Vec<f64>> {
    let found = program.run(session, &refs(inputs), of)?;
    Some(numbers(&found[0].tensor()))
}

fn combined(inputs: &[Tensor]) -> Result<Tensor, ClientError> {
    let shifted = inputs[0].add(1.0)?;
    shifted.mul(&inputs[1])?.sub(&inputs[0])
}

#[test]
fn a_program_gives_what_its_function_gives() {
    let session = gt::embedded(1).unwrap();
    let first = [row(&session, &[1.0, 2.0]), row(&session, &[3.0, 4.0])];
    let program = program_of(&first, combined).unwrap();
    let other = [row(&session, &[5.0, -1.0]), row(&session, &[0.5, 8.0])];
    let found = run(&program, &session, &other, &[]).unwrap();
    assert_eq!(found, numbers(&combined(&other).unwrap()));
    // The same tensor twice is two inputs as well.
    let same = [other[0].clone(), other[0].clone()];
    let found = run(&program, &session, &same, &[]).unwrap();
    assert_eq!(found, numbers(&combined(&same).unwrap()));
}

#[test]
fn outputs_may_repeat_and_be_inputs_or_further_results() {
    let session = gt::embedded(1).unwrap();
    let first = [row(&session, &[3.0, 1.0, 2.0])];
    let (outputs, recording) = record(&refs(&first), &[], || {
        let attributes = [Attribute::Int(0), Attribute::Bool(false)].into_iter().collect();
        let operands = [Operand::Tensor(&first[0])];
        let sorted = Tensor::apply_several(&session, &SORT, &operands, attributes).unwrap();
        let [sorted, places] = &sorted[..] else { panic!("values and places") };
        let doubled = sorted.mul(2.0).unwrap();
        [places.add(1).unwrap(), doubled.clone(), first[0].clone(), doubled]
    });
    let program = recording.unwrap().finish(&refs(&outputs)).unwrap();
    let other = [row(&session, &[7.0, 9.0, 8.0])];
    let found = program.run(&session, &refs(&other), &[]).unwrap();
    let found: Vec<Vec<f64>> = found.iter().map(|found| numbers(&found.tensor())).collect();
    let [doubled, input] = [[14.0, 16.0, 18.0], [7.0, 9.0, 8.0]];
    assert_eq!(found, [[1.0, 3.0, 2.0], doubled, input, doubled]);
}

#[test]
fn numbers_may_be_others() {
    let session = gt::embedded(1).unwrap();
    let inputs = [row(&session, &[1.0, 2.0])];
    let scaled = |number: f64| inputs[0].mul(number).unwrap().add(1.0).unwrap();
    let (result, recording) = record(&refs(&inputs), &[0.3], || scaled(0.3));
    let program = recording.unwrap().finish(&[result.value_ref()]).unwrap();
    assert_eq!(run(&program, &session, &inputs, &[5.0]).unwrap(), [6.0, 11.0]);
    // A number that is not an input is part of the key.
    let (_, recording) = record(&refs(&inputs), &[0.7], || scaled(0.3));
    assert!(recording.is_none());
}

#[test]
fn inputs_that_are_others_are_refused() {
    let session = gt::embedded(1).unwrap();
    let first = [row(&session, &[1.0, 2.0]), row(&session, &[3.0, 4.0])];
    let program = program_of(&first, combined).unwrap();
    let shorter = [row(&session, &[1.0]), row(&session, &[2.0])];
    assert!(run(&program, &session, &shorter, &[]).is_none());
    assert!(run(&program, &session, &first[..1], &[]).is_none());
    let elsewhere = gt::embedded(1).unwrap();
    let apart = [first[0].clone(), row(&elsewhere, &[3.0, 4.0])];
    assert!(run(&program, &session, &apart, &[]).is_none());
    assert!(run(&program, &elsewhere, &first, &[]).is_none());
}

#[test]
fn what_depends_on_more_than_the_inputs_is_no_program() {
    let session = gt::embedded(1).unwrap();
    let inputs = [row(&session, &[1.0, 2.0]), row(&session, &[3.0, 4.0])];
    let kept = row(&session, &[7.0, 7.0]);
    let sends = program_of(&inputs, |of| of[0].add(&row(&session, &[1.0, 1.0])));
    assert!(sends.is_none());
    assert!(program_of(&inputs, |of| of[0].add(&kept)).is_none());
    assert!(program_of(&inputs, |_| Ok(kept.clone())).is_none());
    let waits = program_of(&inputs, |of| of[0].mul(of[1].sum(&[], false)?.item()?.as_f64()));
    assert!(waits.is_none());
    let draws = program_of(&inputs, |of| {
        of[0].add(&Tensor::rand(&session, of[0].shape(), gt::DType::F32)?)
    });
    assert!(draws.is_none());
    // A count that is known already differs for other inputs.
    let counted = inputs[0].gt(1.5).unwrap();
    counted.nonzero(&mut || false).unwrap();
    let mask = [counted];
    let (_, recording) = record(&refs(&mask), &[], || mask[0].nonzero(&mut || false).unwrap());
    assert!(recording.is_none());
    // If both inputs are the same tensor, which one a result depends on is ambiguous.
    let same = [inputs[0].clone(), inputs[0].clone()];
    assert!(program_of(&same, combined).is_none());
    // No state is left behind: the next recording is complete.
    assert!(program_of(&inputs, combined).is_some());
}

#[test]
fn a_program_that_reads_nothing_waits_for_room_by_itself() {
    let session = gt::embedded(1).unwrap();
    let mut weight = row(&session, &[1.0, 2.0]);
    for _ in 0..300_000 {
        weight = weight.mul(1.0).unwrap();
    }
    assert_eq!(numbers(&weight), [1.0, 2.0]);
}

#[test]
fn an_answer_is_taken_once_and_a_dropped_request_leaves_nothing() {
    let session = gt::embedded(1).unwrap();
    let tensor = row(&session, &[1.0, 2.0]).add(1.0).unwrap();
    let asked = tensor.ask().unwrap();
    assert_eq!(asked.wait(&mut || false).unwrap().element(1).as_f64(), 3.0);
    assert!(asked.wait(&mut || false).is_err());
    for _ in 0..100 {
        drop(tensor.ask().unwrap());
    }
    assert_eq!(numbers(&tensor), [2.0, 3.0]);
}

#[test]
fn integers_that_float64_cannot_hold_are_not_rounded() {
    let session = gt::embedded(1).unwrap();
    let large = Tensor::from_slice(&session, &[(1i64 << 53) + 1], &[1]).unwrap();
    assert!(large.to_vec().unwrap_err().to_string().contains("more digits than float64 holds"));
    assert_eq!(large.fetch().unwrap().element(0).as_i64(), (1 << 53) + 1);
}
