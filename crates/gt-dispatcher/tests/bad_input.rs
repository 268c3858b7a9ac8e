//! Commands that no GT client sends: the session gets an error, and is ended if its stream cannot
//! be trusted any more. Other sessions are not affected.

use crate::common::pair::Pair;
use crate::common::*;
use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::template::IterationPart;
use gt_ir::{
    ClientCommand, Content, Create, DType, Invocation, Meta, Operand, RequestId, Scalar, Shape,
    TensorData, TensorId, ops,
};

const PLANNED: u64 = TensorId::PLANNED.0;

/// Returns a valid program: x is tensor 0, and a template of two steps is defined.
fn known() -> (Program, Repeated) {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[4, 2]);
    let repeated = program.define(0, &[], |program| {
        let sum = program.step(&ops::binary::ADD, &[x, Operand::Scalar(Scalar::Int(1))], &[]);
        let of = Operand::Tensor(sum.output);
        vec![sum, program.step(&ops::unary::EXP, &[of], &[])]
    });
    (program, repeated)
}

#[test]
fn tensors_of_other_sessions_do_not_exist() {
    let mut pair = Pair::new();
    // The healthy session has tensors 0 to 3, the other has none.
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[6, 4]);
    let y = program.run(&ops::unary::EXP, &[x], &[]);
    program.commands.remove(1);
    program.fetch(x);
    program.fetch(y);
    let (request, tensor) = (RequestId(2), TensorId(1_000));
    program.commands.extend([
        fetch(3),
        ClientCommand::Locate { request, tensor },
        ClientCommand::Free(TensorId(0)),
        ClientCommand::Free(TensorId(3)),
        ClientCommand::Cancel { request: RequestId(0) },
    ]);
    pair.attack(program.commands);
    let errors = pair.cluster.errors(pair.bad);
    // The first request is cancelled before its turn.
    let names = [(1, 0), (3, 3), (2, 1_000)];
    for ((request, text), (asked, missing)) in errors.iter().zip(names) {
        assert_eq!(*request, asked, "{text}");
        let said = format!("tensor {missing} does not exist in this session");
        assert!(text.contains(&said), "{text}");
    }
    assert_eq!(errors.len(), 3);
    // An error of values, not of the stream: the session continues.
    assert_eq!(pair.cluster.goodbye(pair.bad), None);
    pair.check("tensors of others");
}

#[test]
fn tensor_names_in_the_planners_range_are_refused() {
    let run = |id: u64| {
        let mut program = Program::default();
        program.ones(&[2]);
        let ClientCommand::Run(run) = &mut program.commands[0] else { unreachable!() };
        run.output = TensorId(id);
        program.commands
    };
    // An instruction with two results, of which the second is out of range.
    let two = |id: u64| {
        let mut commands = run(id);
        let ClientCommand::Run(run) = &mut commands[0] else { unreachable!() };
        let meta = run.results[0];
        run.results.push(meta);
        commands
    };
    let create = |id: u64| {
        let data = TensorData::new(DType::U8, Shape::new(&[1]).unwrap(), vec![1].into());
        let (output, content) = (TensorId(id), Content::Data(data.unwrap()));
        vec![ClientCommand::Create(Create {
            output,
            content,
            signal: 0,
            source: gt_ir::SourceId(0),
        })]
    };
    for commands in
        [run(PLANNED), run(PLANNED + 7), run(u64::MAX), two(PLANNED - 1), create(PLANNED + 7)]
    {
        let mut pair = Pair::new();
        let of = format!("{commands:?}");
        pair.attack(commands);
        pair.ended("is out of range");
        pair.check(&of);
    }
    // Iterations before and after their template is planned for the workers, and at the very end.
    for planned in [0, 3] {
        for base in [PLANNED - 1, PLANNED, PLANNED + 5, u64::MAX] {
            let mut pair = Pair::new();
            let (mut program, mut repeated) = known();
            for _ in 0..planned {
                program.invoke(&mut repeated, &[]);
            }
            let bad = repeated.next(base, &[]);
            program.commands.push(ClientCommand::Invoke(Box::new(bad)));
            pair.attack(program.commands);
            pair.ended("is out of range");
            pair.check(&format!("{planned} {base}"));
        }
    }
}

/// Clients can neither read nor free the planner's copies.
#[test]
fn clients_cannot_use_the_planners_copies() {
    let mut pair = Pair::new();
    let mut program = Program::default();
    let x = program.ones(&[3, 2]);
    program.shard_rows();
    let left = program.ones(&[5, 3]);
    program.run(&ops::matmul::MATMUL, &[left, x], &[]);
    program.commands.extend((PLANNED..PLANNED + 9).map(|id| ClientCommand::Free(TensorId(id))));
    program.commands.push(fetch(PLANNED + 1));
    let before = program.commands.len();
    program.run(&ops::matmul::MATMUL, &[left, x], &[]);
    assert!(program.commands.len() > before);
    pair.attack(program.commands);
    let errors = pair.cluster.errors(pair.bad);
    assert!(errors.len() == 1 && errors[0].1.contains("does not exist"), "{errors:?}");
    assert_eq!(pair.cluster.goodbye(pair.bad), None);
    pair.check("copies");
}

#[test]
fn invalid_invocations_end_the_session() {
    let change = |f: &dyn Fn(&mut Invocation)| {
        let (mut program, mut repeated) = known();
        let mut invocation = repeated.next(program.base().0, &[]);
        f(&mut invocation);
        program.commands.push(ClientCommand::Invoke(Box::new(invocation)));
        program.commands
    };
    let part = |first, last, frees| IterationPart { first, last, frees };
    let no_slot = "template 0 has no such slot or free";
    let differs = "an invocation of template 0 binds other tensors or numbers at each end";
    let cases: [(&dyn Fn(&mut Invocation), &str); 9] = [
        (&|it| it.template = 9, "template 9 is not among"),
        (&|it| it.part = part(0, 9, 0), "steps 0 to 9 were asked for"),
        (&|it| it.part = part(1, 0, 0), "steps 1 to 0 were asked for"),
        (&|it| it.part = part(0, 2, 5), no_slot),
        (&|it| it.tensors = vec![(7, TensorId(0))], no_slot),
        (&|it| it.numbers = vec![(1, Scalar::Int(1))], no_slot),
        (&|it| it.tensors = vec![(0, TensorId(0)), (0, TensorId(0))], no_slot),
        (&|it| it.numbers = vec![(0, Scalar::Int(5))], differs),
        (&|it| it.digest ^= 1, differs),
    ];
    for (change_it, said) in cases {
        let mut pair = Pair::new();
        pair.attack(change(change_it));
        pair.ended(said);
        pair.check(said);
    }
}

#[test]
fn invalid_definitions_end_the_session() {
    let (_, repeated) = known();
    let define = |f: &dyn Fn(&mut gt_ir::Definition)| {
        let mut definition = repeated.definition.clone();
        f(&mut definition);
        vec![ClientCommand::Define(Box::new(definition))]
    };
    let cases = [
        (define(&|it| it.number = 64), "template 64 is not among"),
        (define(&|it| it.template.steps.clear()), "a template of 0 steps"),
        (define(&|it| it.template.steps.swap(0, 1)), "step 0 of a template is out of order"),
        (define(&|it| it.template.widths = [2, 3]), "template 0 has no such slot"),
        (define(&|it| it.template.widths = [u32::MAX, 0]), "template 0 has no such slot"),
        (define(&|it| it.start.numbers.clear()), "template 0 has no such slot"),
    ];
    for (commands, said) in cases {
        let mut pair = Pair::new();
        pair.attack(commands);
        pair.ended(said);
        pair.check(said);
    }
}

#[test]
fn a_wrongly_declared_result_is_an_error() {
    let f32 = |dims: &[usize]| Meta::new(DType::F32, Shape::new(dims).unwrap());
    for (lie, said) in [
        (vec![f32(&[4, 3])], "declared as float32 (4, 3), but is float32 (4, 2)"),
        (vec![f32(&[1 << 40])], "declared as float32 (1099511627776,)"),
        (vec![f32(&[4, 2]), f32(&[4, 2])], "2 results are declared, and it has 1"),
    ] {
        let mut pair = Pair::new();
        let mut program = Program::default();
        program.shard_rows();
        let x = program.ones(&[4, 2]);
        let sum = program.run(&ops::binary::ADD, &[x, x], &[]);
        let of = program.run(&ops::unary::EXP, &[sum], &[]);
        let ClientCommand::Run(run) = &mut program.commands[2] else { unreachable!() };
        run.results = lie.iter().copied().collect();
        program.fetch(sum);
        program.fetch(of);
        program.fetch(x);
        pair.attack(program.commands);
        let errors = pair.cluster.errors(pair.bad);
        assert_eq!(errors.len(), 2, "{errors:?}");
        assert!(errors.iter().all(|(_, text)| text.contains(said)), "{errors:?}");
        assert_eq!(pair.cluster.goodbye(pair.bad), None);
        pair.check(said);
    }
    // No result at all is not a valid instruction.
    let mut program = Program::default();
    program.ones(&[2]);
    let ClientCommand::Run(run) = &mut program.commands[0] else { unreachable!() };
    run.results.clear();
    let mut pair = Pair::new();
    pair.attack(program.commands);
    pair.ended("'full' declares no result");
    pair.check("no result");
}

#[test]
fn a_mesh_has_one_axis_or_two() {
    for count in [0, 3, 8] {
        let axis = MeshAxis { name: "long".into(), length: u32::MAX, axis: Some(0) };
        let mut program = Program::default();
        program.define_signal(1, "odd", Shard { workers: None, mesh: vec![axis; count] });
        program.signal = 1;
        let x = program.ones(&[4, 2]);
        let y = program.run(&ops::binary::ADD, &[x, x], &[]);
        program.fetch(y);
        let mut pair = Pair::new();
        pair.attack(program.commands);
        let errors = pair.cluster.errors(pair.bad);
        let said = format!("signal 'odd' has a mesh of {count} axes");
        assert!(errors.len() == 1 && errors[0].1.contains(&said), "{errors:?}");
        pair.check(&said);
    }
}
