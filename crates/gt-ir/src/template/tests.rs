//! Tests of bindings: prediction, invocations, and errors.

use smallvec::smallvec;

use super::*;
use crate::command::ClientCommand;
use crate::dtype::DType;
use crate::ids::TransferId;
use crate::instruction::{Instruction, Operand, SourceId, TensorId};
use crate::operation::Meta;
use crate::ops::binary;
use crate::scalar::Scalar;
use crate::shape::Shape;

fn add(output: u64, left: u64, right: Operand) -> Instruction {
    Instruction {
        operation: &binary::ADD,
        output: TensorId(output),
        results: smallvec![Meta::new(DType::F32, Shape::SCALAR)],
        operands: smallvec![Operand::Tensor(TensorId(left)), right],
        attributes: smallvec![],
        source: SourceId::default(),
        signal: 0,
    }
}

fn tensor(id: u64) -> Operand {
    Operand::Tensor(TensorId(id))
}

fn number(value: i64) -> Operand {
    Operand::Scalar(Scalar::Int(value))
}

fn template(base: u64, steps: &[Instruction], frees: &[u64]) -> Definition {
    let base = TensorId(base);
    let mut builder = TemplateBuilder::new([base, base], [steps.len() as u32, 0], TransferId(0));
    for step in steps {
        let step = builder.step_with_slots(step).unwrap();
        builder.push(Step::Run(step));
    }
    frees.iter().for_each(|id| builder.free_later(TensorId(*id)));
    builder.finish(3, false)
}

/// Two steps: a constant plus the previous iteration's result, and that plus a number.
fn definition() -> Definition {
    template(20, &[add(20, 5, tensor(19)), add(21, 20, number(7))], &[20, 19, 18])
}

/// Returns the sender's next invocation, with these differences from the prediction.
fn next(
    sender: &mut Bindings,
    base: u64,
    tensors: Vec<(u32, TensorId)>,
    numbers: Vec<(u32, Scalar)>,
) -> Invocation {
    let bases = [TensorId(base), TensorId(base)];
    sender.begin(bases);
    tensors.iter().for_each(|(slot, id)| sender.bind_tensor(*slot, *id));
    numbers.iter().for_each(|(slot, value)| sender.bind_number(*slot, *value));
    Invocation {
        template: 3,
        bases,
        transfer: TransferId(0),
        part: IterationPart { first: 0, last: 2, frees: 3 },
        tensors,
        numbers,
        others: vec![],
        digest: sender.digest(),
    }
}

fn instance() -> (Instance, Bindings) {
    let definition = definition();
    definition.check_client().unwrap();
    let sender = Bindings::new(definition.template.widths, &definition.start);
    (Instance::new(definition), sender)
}

fn instruction(instance: &Instance, step: usize) -> Instruction {
    match &instance.template.steps[step] {
        Step::Run(step) => step.instruction(&instance.bindings),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_iteration_is_predicted_from_the_last() {
    let (mut instance, mut sender) = instance();
    let names = [Name::Own(0), Name::Outside(1), Name::Outside(2)];
    assert_eq!(instance.template.frees, names);
    // The base is not consecutive: other tensors were made in between.
    instance.take(&next(&mut sender, 30, vec![], vec![])).unwrap();
    assert_eq!(instruction(&instance, 0), add(30, 5, tensor(21)));
    assert_eq!(instruction(&instance, 1), add(31, 30, number(7)));
    let freed = |index| instance.template.freed(index, &instance.bindings);
    assert_eq!([freed(0), freed(1), freed(2)], [30, 21, 20].map(TensorId));
}

#[test]
fn what_differs_is_said_and_remembered() {
    let (mut instance, mut sender) = instance();
    let told = vec![(0, TensorId(6))];
    instance.take(&next(&mut sender, 22, told, vec![(0, Scalar::Int(9))])).unwrap();
    assert_eq!(instruction(&instance, 0), add(22, 6, tensor(21)));
    instance.take(&next(&mut sender, 24, vec![], vec![])).unwrap();
    // Integers count.
    assert_eq!(instruction(&instance, 0), add(24, 6, tensor(23)));
    assert_eq!(instruction(&instance, 1), add(25, 24, number(11)));
    instance.take(&next(&mut sender, 26, vec![], vec![])).unwrap();
    assert_eq!(instruction(&instance, 1), add(27, 26, number(13)));
}

#[test]
fn what_lies_as_far_back_as_the_last_time_is_found() {
    let (mut instance, mut sender) = instance();
    for (base, is_told) in [(100, true), (200, true), (300, false), (400, false)] {
        let id = TensorId(base - 50);
        let told = if is_told { vec![(0, id), (1, TensorId(1))] } else { vec![] };
        instance.take(&next(&mut sender, base, told, vec![])).unwrap();
        assert_eq!(instance.bindings.tensor(Name::Outside(0)), id, "{base}");
        assert_eq!(instance.bindings.tensor(Name::Outside(1)), TensorId(1), "{base}");
    }
}

#[test]
fn an_iteration_may_come_in_parts() {
    let (mut instance, mut sender) = instance();
    let whole = next(&mut sender, 22, vec![], vec![]);
    let part = |first, last, frees| Invocation {
        part: IterationPart { first, last, frees },
        ..whole.clone()
    };
    assert_eq!(instance.take(&part(0, 1, 0)), Ok(0));
    assert_eq!(instance.take(&part(1, 2, 1)), Ok(0));
    assert_eq!(instance.bindings.tensor(Name::Outside(1)), TensorId(21));
    // The remaining frees may follow.
    assert_eq!(instance.take(&part(2, 2, 3)), Ok(1));
}

#[test]
fn two_ends_that_disagree_say_so() {
    let told = [vec![(0, TensorId(6))], vec![]];
    for (tensors, numbers) in told.into_iter().zip([vec![], vec![(0, Scalar::Int(1))]]) {
        let (mut instance, mut sender) = instance();
        // One iteration is lost.
        next(&mut sender, 22, tensors, numbers);
        let error = instance.take(&next(&mut sender, 24, vec![], vec![])).unwrap_err();
        assert_eq!(error, TemplateError::Digest { number: 3 });
    }
    let (mut instance, mut sender) = instance();
    let changed =
        Invocation { numbers: vec![(0, Scalar::Int(8))], ..next(&mut sender, 22, vec![], vec![]) };
    assert_eq!(instance.take(&changed), Err(TemplateError::Digest { number: 3 }));
}

#[test]
fn bindings_that_are_told_anew_go_on_as_before() {
    let (mut instance, mut sender) = instance();
    instance.take(&next(&mut sender, 22, vec![], vec![(0, Scalar::Int(9))])).unwrap();
    let start = instance.bindings.start();
    assert_eq!(start.tensors, [5, 21, 20].map(TensorId));
    let mut anew = Bindings::new([2, 0], &start);
    let bases = [TensorId(24), TensorId(24)];
    anew.begin(bases);
    instance.bindings.begin(bases);
    for slot in 0..3 {
        let name = Name::Outside(slot);
        assert_eq!(anew.tensor(name), instance.bindings.tensor(name));
    }
}

#[test]
fn what_no_client_sends_is_refused() {
    let bad = |change: &dyn Fn(&mut Definition)| {
        let mut definition = definition();
        change(&mut definition);
        definition.check_client().unwrap_err()
    };
    let number = 3;
    assert_eq!(bad(&|d| d.template.steps.clear()), TemplateError::Length { steps: 0 });
    let planned = bad(&|d| d.template.steps.push(Step::Free(Name::Own(0))));
    assert_eq!(planned, TemplateError::Planned { step: 2 });
    assert_eq!(bad(&|d| d.template.steps.swap(0, 1)), TemplateError::Order { step: 0 });
    let made = bad(&|d| match &mut d.template.steps[0] {
        Step::Run(step) => step.operands[0] = Argument::Tensor(Name::Made(0)),
        _ => unreachable!("it is an instruction"),
    });
    assert_eq!(made, TemplateError::Order { step: 0 });
    assert_eq!(bad(&|d| d.template.tensors = 9), TemplateError::Slot { number });
    assert_eq!(bad(&|d| d.template.frees.push(Name::Own(7))), TemplateError::Slot { number });
    assert_eq!(bad(&|d| d.start.numbers.clear()), TemplateError::Slot { number });
    let (mut instance, mut sender) = instance();
    let good = next(&mut sender, 22, vec![], vec![]);
    let of = |first, last, frees| IterationPart { first, last, frees };
    for bad in [
        Invocation { part: of(0, 3, 3), ..good.clone() },
        Invocation { part: of(1, 2, 3), ..good.clone() },
        Invocation { part: of(0, 0, 3), ..good.clone() },
        Invocation { part: of(0, 2, 4), ..good.clone() },
        Invocation { tensors: vec![(3, TensorId(1))], ..good.clone() },
        Invocation { tensors: vec![(1, TensorId(1)), (0, TensorId(1))], ..good.clone() },
        Invocation { numbers: vec![(1, Scalar::Int(1))], ..good.clone() },
    ] {
        assert!(instance.take(&bad).is_err(), "{bad:?}");
    }
    assert_eq!(instance.take(&good), Ok(0));
}

#[test]
fn frees_follow_the_last_use() {
    let steps = [add(20, 5, tensor(17)), add(21, 20, tensor(20)), add(22, 21, tensor(5))];
    let instance = Instance::new(template(20, &steps, &[21, 17, 20, 18]));
    let free = |id| ClientCommand::Free(TensorId(id));
    let [one, two, three] = steps.map(ClientCommand::Run);
    let of = |first, freed| {
        let invocation = Invocation {
            template: 3,
            bases: [TensorId(20), TensorId(20)],
            transfer: TransferId(0),
            part: IterationPart { first, last: 3, frees: 4 },
            tensors: vec![],
            numbers: vec![],
            others: vec![],
            digest: 0,
        };
        expand(&instance, &invocation, freed)
    };
    let want = [one, free(17), two, free(20), three.clone(), free(21), free(18)];
    assert_eq!(of(0, 0), want);
    // A part does not consider uses in other parts.
    assert_eq!(of(2, 1), [three, free(17), free(20), free(18)]);
}
