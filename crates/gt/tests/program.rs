//! Programs: what a function issued is issued again for other tensors.

use gt::program::{Program, record};
use gt::{ClientError, Session, Tensor};

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
    let (result, recording) = record(inputs, &[], || function(inputs).unwrap());
    recording?.finish(&[&result])
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
    let found = program.run(&session, &other, &[]).unwrap();
    assert_eq!(numbers(&found[0]), numbers(&combined(&other).unwrap()));
    // The same tensor twice is two inputs as well.
    let same = [other[0].clone(), other[0].clone()];
    let found = program.run(&session, &same, &[]).unwrap();
    assert_eq!(numbers(&found[0]), numbers(&combined(&same).unwrap()));
}

#[test]
fn numbers_may_be_others() {
    let session = gt::embedded(1).unwrap();
    let inputs = [row(&session, &[1.0, 2.0])];
    let scaled = |number: f64| inputs[0].mul(number).unwrap().add(1.0).unwrap();
    let (result, recording) = record(&inputs, &[0.3], || scaled(0.3));
    let program = recording.unwrap().finish(&[&result]).unwrap();
    let found = program.run(&session, &inputs, &[5.0]).unwrap();
    assert_eq!(numbers(&found[0]), [6.0, 11.0]);
}

#[test]
fn inputs_that_are_others_are_refused() {
    let session = gt::embedded(1).unwrap();
    let first = [row(&session, &[1.0, 2.0]), row(&session, &[3.0, 4.0])];
    let program = program_of(&first, combined).unwrap();
    assert!(program.run(&session, &[row(&session, &[1.0]), row(&session, &[2.0])], &[]).is_none());
    assert!(program.run(&session, &first[..1], &[]).is_none());
    let elsewhere = gt::embedded(1).unwrap();
    assert!(
        program.run(&session, &[first[0].clone(), row(&elsewhere, &[3.0, 4.0])], &[]).is_none()
    );
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
    // A count that is known already is another's for other inputs.
    let counted = inputs[0].gt(1.5).unwrap();
    counted.nonzero(&mut || false).unwrap();
    let mask = [counted];
    let (_, recording) = record(&mask, &[], || mask[0].nonzero(&mut || false).unwrap());
    assert!(recording.is_none());
    // Where both are one, nobody can tell which is meant.
    let same = [inputs[0].clone(), inputs[0].clone()];
    assert!(program_of(&same, combined).is_none());
    // Nothing is left behind: the next recording is whole.
    assert!(program_of(&inputs, combined).is_some());
}
