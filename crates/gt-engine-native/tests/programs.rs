//! Random plans, run as programs and operation by operation: the same numbers.

use std::sync::Arc;

use gt_engine_native::NativeEngine;
use gt_ir::instruction::Instruction;
use gt_ir::message::Message;
use gt_ir::ops::{
    binary as b, compare as c, matmul, nn, reduce as r, shape as s, slice, ternary as t,
};
use gt_ir::ops::{create, index, unary as u};
use gt_ir::philox::Stream;
use gt_ir::template::{self, Builder};
use gt_ir::{
    Attribute, Attributes, Bindings, Content, Create, DType, Invocation, LaneId, Meta, Operand,
    Operation, RequestId, Scalar, Shape, SlotId, SourceId, TensorData, TensorId, TransferId,
    WorkerCommand,
};
use gt_worker::engine::launch_plainly;
use gt_worker::plan::{Given, Input, Plan, Source};
use gt_worker::simplify::simplify;
use gt_worker::{Engine, EngineError, Out, Work, Worker};
use smallvec::{SmallVec, smallvec};

/// Draws from a stream of random numbers.
struct Dice {
    stream: Stream,
    thrown: u64,
}

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice { stream: Stream::new(77, seed), thrown: 0 }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.fraction() * bound as f64) as usize
    }

    fn fraction(&mut self) -> f64 {
        self.thrown += 1;
        self.stream.uniform_f64(self.thrown)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

const UNARY: &[&Operation] = &[
    &u::NEG,
    &u::ABS,
    &u::SIGN,
    &u::EXP,
    &u::SQRT,
    &u::SIN,
    &u::SIGMOID,
    &u::TANH,
    &u::RELU,
    &u::FLOOR,
    &u::LOGICAL_NOT,
    &u::ISNAN,
    &nn::SILU,
    &u::ERF,
    &u::RSQRT,
];
const BINARY: &[&Operation] = &[
    &b::ADD,
    &b::SUB,
    &b::MUL,
    &b::DIV,
    &b::MAXIMUM,
    &b::MINIMUM,
    &b::POW,
    &b::REMAINDER,
    &c::LT,
    &c::EQ,
    &c::LOGICAL_AND,
    &b::ADD,
    &b::MUL,
    &b::SUB,
];
const REDUCE: &[&Operation] =
    &[&r::SUM, &r::MEAN, &r::AMAX, &r::AMIN, &r::SUM, &r::ARGMAX, &r::ANY];

fn data(meta: Meta, dice: &mut Dice) -> TensorData {
    let mut bytes = Vec::new();
    for _ in 0..meta.shape.numel() {
        let value = dice.fraction() * 4.0 - 2.0;
        let value = if meta.dtype.is_float() { value } else { value.round() };
        TensorData::encode(meta.dtype, Scalar::Float(value), &mut bytes);
    }
    TensorData::new(meta.dtype, meta.shape, bytes.into()).unwrap()
}

/// Adds a random step; false if what was drawn is no valid operation.
fn grow(plan: &mut Plan, dice: &mut Dice) -> bool {
    let tensors: Vec<u32> =
        (0..plan.values() as u32).filter(|&value| plan.meta(value).tensor().is_some()).collect();
    let numbers: Vec<u32> =
        (0..plan.inputs.len() as u32).filter(|&v| plan.meta(v).tensor().is_none()).collect();
    // Recent values more often: chains.
    let recent = tensors.len().saturating_sub(4);
    let tensor = |dice: &mut Dice| {
        if dice.below(2) == 0 { dice.pick(&tensors) } else { dice.pick(&tensors[recent..]) }
    };
    let operand = |dice: &mut Dice| -> Source {
        match dice.below(6) {
            0 if !numbers.is_empty() => Operand::Tensor(dice.pick(&numbers)),
            1 => Operand::Scalar(dice.pick(&[
                Scalar::Float(0.5),
                Scalar::Int(2),
                Scalar::Float(3.0),
                Scalar::Bool(true),
            ])),
            _ => Operand::Tensor(tensor(dice)),
        }
    };
    let x = tensor(dice);
    let meta = *plan.meta(x).tensor().unwrap();
    let (shape, rank) = (meta.shape, meta.shape.rank());
    let first: Source = Operand::Tensor(x);
    let (operation, operands, attributes): (&'static Operation, SmallVec<[Source; 3]>, Attributes) =
        match dice.below(20) {
            0..5 => (dice.pick(UNARY), smallvec![first], smallvec![]),
            5..10 => {
                let second = operand(dice);
                let turned = dice.below(3) == 0;
                let operands =
                    if turned { smallvec![second, first] } else { smallvec![first, second] };
                (dice.pick(BINARY), operands, smallvec![])
            }
            10..13 if rank > 0 => {
                let axes: Vec<i64> = match dice.below(4) {
                    0 => vec![],
                    1 => vec![rank as i64 - 1],
                    2 => vec![0],
                    _ => vec![dice.below(rank) as i64],
                };
                let keeps = Attribute::Bool(dice.below(3) > 0);
                (dice.pick(REDUCE), smallvec![first], smallvec![Attribute::ints(&axes), keeps])
            }
            13 => {
                let dtype =
                    dice.pick(&[DType::F32, DType::F16, DType::F64, DType::I32, DType::BF16]);
                (&u::CAST, smallvec![first], smallvec![Attribute::DType(dtype)])
            }
            14 if rank == 2 => {
                (&s::PERMUTE, smallvec![first], smallvec![Attribute::ints(&[1i64, 0])])
            }
            15 if rank > 0 => {
                let sizes = shape.with(0, shape[0].div_ceil(2));
                let mut starts = vec![0i64; rank];
                starts[0] = (shape[0] / 3) as i64;
                let steps = vec![1i64; rank];
                let lists = smallvec![
                    Attribute::ints(&starts),
                    Attribute::dims(&sizes),
                    Attribute::ints(&steps)
                ];
                (&slice::SLICE, smallvec![first], lists)
            }
            16 => {
                let (second, third) = (operand(dice), operand(dice));
                let operation = dice.pick(&[&t::MUL_ADD, &t::CLAMP, &t::WHERE]);
                (operation, smallvec![first, second, third], smallvec![])
            }
            17 => {
                let second = Operand::Tensor(tensor(dice));
                (&matmul::MATMUL, smallvec![first, second], smallvec![])
            }
            18 if rank > 0 => {
                let operation = dice.pick(&[&nn::SOFTMAX, &nn::LOG_SOFTMAX]);
                (operation, smallvec![first], smallvec![Attribute::Int(rank as i64 - 1)])
            }
            19 if rank > 0 => {
                (&s::RESHAPE, smallvec![first], smallvec![Attribute::ints(&[shape.numel() as i64])])
            }
            _ => (&nn::GELU, smallvec![first], smallvec![Attribute::Bool(dice.below(2) == 0)]),
        };
    let lowers = |operation: &'static Operation| NativeEngine::new(1).lowers(operation);
    plan.push(&lowers, operation, operands, attributes, smallvec![]).is_ok()
}

fn random_plan(dice: &mut Dice) -> Plan {
    let (rows, columns) = dice.pick(&[
        (3, 5),
        (64, 10),
        (1, 7),
        (33, 257),
        (5, 1),
        (130, 1100),
        (2, 9000),
        (6, 6),
        (40, 40),
    ]);
    let shapes: [&[usize]; 8] = [
        &[rows, columns],
        &[rows, columns],
        &[columns],
        &[rows, 1],
        &[1, columns],
        &[],
        &[2, rows, columns],
        &[rows, columns],
    ];
    let mut inputs = Vec::new();
    for _ in 0..2 + dice.below(4) {
        let dtype = match dice.below(12) {
            0 => DType::I64,
            1 => DType::Bool,
            2 => DType::F64,
            3 => DType::F16,
            4 => DType::I32,
            _ => DType::F32,
        };
        let meta = Meta::new(dtype, Shape::new(dice.pick(&shapes)).unwrap());
        inputs.push(Input::Tensor { meta, dies: dice.below(2) == 0 });
    }
    for _ in 0..dice.below(3) {
        inputs.push(Input::Number(dice.pick(&[Scalar::Float(0.25), Scalar::Int(3)])));
    }
    let mut plan = Plan::new(inputs);
    let steps = 1 + dice.below(25);
    let mut tries = 0;
    while plan.steps.len() < steps && tries < 200 {
        tries += 1;
        grow(&mut plan, dice);
    }
    let made = plan.inputs.len() as u32..plan.values() as u32;
    plan.outputs = made.filter(|_| dice.below(3) == 0).collect();
    if plan.outputs.is_empty() && !plan.steps.is_empty() {
        plan.outputs.push(plan.values() as u32 - 1);
    }
    plan
}

fn near(a: &TensorData, b: &TensorData) -> Result<(), String> {
    assert_eq!((a.dtype, a.shape), (b.dtype, b.shape));
    let off = match a.dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 => 2e-5,
        // What was summed in float32 may have been cast.
        DType::F64 => 1e-6,
        _ => 0.0,
    };
    for index in 0..a.shape.numel() {
        let (x, y) = (a.element(index).as_f64(), b.element(index).as_f64());
        let same = x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= off * y.abs().max(1.0);
        if !same {
            return Err(format!("element {index} of {} {}: {x} instead of {y}", a.dtype, a.shape));
        }
    }
    Ok(())
}

/// Runs a plan step by step and as workers do, twice as a program with other numbers.
fn compare(engine: &mut NativeEngine, plan: &Plan, dice: &mut Dice) -> Result<(), String> {
    let mut program = engine.prepare(&simplify(plan)).unwrap();
    let last_uses = plan.last_uses();
    for round in 0..2 {
        let mut values: Vec<TensorData> = Vec::new();
        let given = |engine: &mut NativeEngine, dice: &mut Dice, values: &mut Vec<TensorData>| {
            let inputs = plan.inputs.iter().map(|input| match input {
                Input::Tensor { meta, .. } => {
                    let values_of = data(*meta, dice);
                    values.push(values_of.clone());
                    Given::Tensor(engine.create(values_of).unwrap())
                }
                Input::Number(Scalar::Float(x)) => {
                    Given::Number(Scalar::Float(x + f64::from(round)))
                }
                Input::Number(other) => Given::Number(*other),
            });
            inputs.collect::<Vec<_>>()
        };
        let start = dice.thrown;
        let inputs = given(engine, dice, &mut values);
        dice.thrown = start;
        let plain = launch_plainly(engine, plan, &last_uses, &inputs);
        let kept: Vec<Given<_>> = inputs.clone();
        drop(inputs);
        let mut again = given(engine, dice, &mut Vec::new());
        let fused = engine.launch(&mut program, &mut again);
        match (plain, fused) {
            (Ok(plain), Ok(fused)) => {
                for (number, (a, b)) in fused.iter().zip(&plain).enumerate() {
                    let (a, b) = (engine.read(a).unwrap(), engine.read(b).unwrap());
                    near(&a, &b).map_err(|text| format!("output {number}: {text}"))?;
                }
                // Inputs that do not die are as they were.
                let tensors = plan.inputs.iter().zip(&again).zip(&kept);
                for ((input, given), kept) in tensors {
                    if let (Input::Tensor { dies: false, .. }, Given::Tensor(given)) =
                        (input, given)
                        && let Given::Tensor(kept) = kept
                    {
                        let (a, b) = (engine.read(given).unwrap(), engine.read(kept).unwrap());
                        near(&a, &b).map_err(|text| format!("an input changed: {text}"))?;
                    }
                }
            }
            (Err(a), Err(b)) => {
                assert_eq!(a, b);
                assert!(!again.iter().any(|given| matches!(given, Given::Taken)));
            }
            // What nobody needs is not computed, and so cannot fail.
            (Err(_), Ok(_)) => {}
            (Ok(_), Err(error)) => return Err(format!("only the program fails: {error}")),
        }
    }
    Ok(())
}

#[test]
fn programs_give_the_same_numbers() {
    let count = std::env::var("GT_PLANS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    for threads in [1, 2] {
        let mut engine = NativeEngine::new(threads);
        for seed in 0..count {
            let mut dice = Dice::new(seed);
            let plan = random_plan(&mut dice);
            if plan.steps.is_empty() {
                continue;
            }
            if let Err(text) = compare(&mut engine, &plan, &mut dice) {
                for (index, step) in plan.steps.iter().enumerate() {
                    eprintln!(
                        "{} := {:?} {:?} {:?} -> {} {}",
                        plan.inputs.len() + index,
                        step.operation,
                        step.operands,
                        step.attributes,
                        step.output.dtype,
                        step.output.shape
                    );
                }
                panic!("seed {seed}: {text}; inputs {:?} outputs {:?}", plan.inputs, plan.outputs);
            }
        }
    }
}

/// As the gradient of a weight: matrices turned, multiplied and summed over the batch.
#[test]
fn products_are_summed_over_their_batch() {
    let meta = |dims: &[usize]| Meta::new(DType::F32, Shape::new(dims).unwrap());
    for threads in [1, 2] {
        let mut engine = NativeEngine::new(threads);
        for (seed, (batch, turned)) in
            [(1, false), (3, true), (5, false), (2, true)].into_iter().enumerate()
        {
            let dims: [&[usize]; 2] = if turned {
                [&[batch, 40, 130], &[batch, 40, 9]]
            } else {
                [&[batch, 130, 40], &[batch, 9, 40]]
            };
            let inputs = dims.map(|dims| Input::Tensor { meta: meta(dims), dies: false });
            let mut plan = Plan::new(inputs.to_vec());
            let lowers = |_: &'static Operation| true;
            let mut push = |operation, operands: &[u32], attributes: Attributes| {
                let operands = operands.iter().map(|&value| Operand::Tensor(value)).collect();
                plan.push(&lowers, operation, operands, attributes, smallvec![]).unwrap()
            };
            let order = || smallvec![Attribute::ints(&[0i64, 2, 1])];
            let (left, right) = if turned {
                (push(&s::PERMUTE, &[0], order()), 1)
            } else {
                (0, push(&s::PERMUTE, &[1], order()))
            };
            let product = push(&matmul::MATMUL, &[left, right], smallvec![]);
            let product = if batch == 3 { push(&s::PERMUTE, &[product], order()) } else { product };
            let over = smallvec![Attribute::ints(&[0i64]), Attribute::Bool(seed % 2 == 0)];
            let sum = push(&r::SUM, &[product], over);
            plan.outputs = vec![sum];
            compare(&mut engine, &plan, &mut Dice::new(seed as u64)).unwrap();
        }
    }
}

/// A sum over rows without its axis broadcasts along them: it stands for columns then.
#[test]
fn what_rows_give_is_read_as_it_broadcasts() {
    for keepdims in [false, true] {
        let shape = Shape::new(&[6, 6]).unwrap();
        let input = Input::Tensor { meta: Meta::new(DType::F32, shape), dies: false };
        let mut plan = Plan::new(vec![input; 2]);
        let lowers = |_: &'static Operation| true;
        let mut push = |operation, operands: &[Source], attributes: Attributes| {
            let operands = operands.iter().copied().collect();
            plan.push(&lowers, operation, operands, attributes, smallvec![]).unwrap()
        };
        let (value, two) = (Operand::Tensor, Operand::Scalar(Scalar::Float(2.0)));
        let y = push(&b::MUL, &[value(0), two], smallvec![]);
        let over = smallvec![Attribute::ints(&[1i64]), Attribute::Bool(keepdims)];
        let sums = push(&r::SUM, &[value(y)], over);
        let z = push(&b::MUL, &[value(1), two], smallvec![]);
        let both = push(&b::ADD, &[value(z), value(sums)], smallvec![]);
        let last = push(&b::MUL, &[value(both), two], smallvec![]);
        plan.outputs = vec![last];
        compare(&mut NativeEngine::new(1), &plan, &mut Dice::new(5)).unwrap();
    }
}

/// A start beyond the tensor is an error, also where the plan was made with another.
#[test]
fn starts_are_looked_at_in_every_iteration() {
    let result = Meta::new(DType::F32, Shape::new(&[4]).unwrap());
    let slice = |output: u64, start: i64| Instruction {
        operation: &slice::SLICE,
        output: TensorId(output),
        results: smallvec![result],
        operands: smallvec![Operand::Tensor(TensorId(1))],
        attributes: [[start], [4], [1]].map(|ints| Attribute::ints(&ints)).into_iter().collect(),
        source: SourceId::default(),
        signal: 0,
    };
    let mut worker = Worker::new("w".into(), NativeEngine::new(1));
    let bytes: Vec<u8> = (0..16).flat_map(|x| (x as f32).to_ne_bytes()).collect();
    let data = TensorData::new(DType::F32, Shape::new(&[16]).unwrap(), bytes.into()).unwrap();
    let bases = [TensorId(100), TensorId::PLANNED];
    let mut builder = Builder::new(bases, [2, 0], TransferId(0));
    for (output, start) in [(100, 0), (101, 4)] {
        let step = builder.step_with_slots(&slice(output, start)).unwrap();
        builder.push(template::Step::Run(step));
    }
    let definition = builder.finish(0, false);
    let mut bindings = Bindings::new(definition.template.widths, &definition.start);
    let content = Content::Data(data);
    let mut commands = vec![
        WorkerCommand::Create(Box::new(Create { output: TensorId(1), content, signal: 0 })),
        WorkerCommand::Define(Box::new(definition)),
    ];
    for (pass, start) in [0i64, 1, 2, 5, 12, 13, 1 << 40, -1, 3].into_iter().enumerate() {
        let base = TensorId(200 + 10 * pass as u64);
        let bases = [base, TensorId::PLANNED];
        let numbers = vec![(0, Scalar::Int(start)), (1, Scalar::Int(4))];
        bindings.begin(bases);
        numbers.iter().for_each(|(slot, value)| bindings.bind_number(*slot, *value));
        let invocation = Invocation {
            template: 0,
            bases,
            transfer: TransferId(0),
            part: template::IterationPart { first: 0, last: 2, frees: 0 },
            tensors: vec![],
            numbers,
            others: vec![],
            digest: bindings.digest(),
        };
        let (request, line) = (RequestId(pass as u64), SourceId::default());
        commands.push(WorkerCommand::Invoke(Arc::new(invocation)));
        commands.push(WorkerCommand::Fetch { request, tensor: base, shared: false, line });
        let mut out = Vec::new();
        let lane = LaneId { session: 1, slot: SlotId(0) };
        let commands = std::mem::take(&mut commands);
        worker.handle(Message::Work { lane, commands }, &mut out);
        while worker.step(&mut out) {}
        let result = out.into_iter().find_map(|out| match out {
            Out::Dispatcher(Message::Value { result, .. }) => Some(result),
            _ => None,
        });
        match result.expect("an answer") {
            Ok(Content::Data(data)) => assert_eq!(data.element(0).as_f64(), start as f64),
            Ok(_) => panic!("there is no shared memory"),
            Err(failure) => assert!(!(0..=12).contains(&start), "{failure:?}"),
        }
    }
}

/// As the gradients of slices: parts put into zeros, and added.
#[test]
fn parts_of_zeros_are_joined() {
    let meta = |dims: &[usize]| Meta::new(DType::F32, Shape::new(dims).unwrap());
    let places: [&[(i64, usize)]; 3] =
        [&[(2, 2), (0, 2), (4, 2)], &[(0, 2), (3, 3)], &[(0, 4), (3, 3), (1, 1)]];
    for (seed, places) in places.into_iter().enumerate() {
        let inputs = places
            .iter()
            .map(|&(_, rows)| Input::Tensor { meta: meta(&[5, rows, 3]), dies: rows == 2 });
        let mut plan = Plan::new(inputs.collect());
        let lowers = |_: &'static Operation| true;
        let mut push = |operation, operands: &[Source], attributes: Attributes| {
            let operands = operands.iter().copied().collect();
            plan.push(&lowers, operation, operands, attributes, smallvec![]).unwrap()
        };
        let mut total = None;
        for (value, &(start, rows)) in places.iter().enumerate() {
            let whole = smallvec![Attribute::ints(&[5i64, 6, 3]), Attribute::DType(DType::F32)];
            let zeros = push(&create::FULL, &[Operand::Scalar(Scalar::Int(0))], whole);
            let region = [[0, start, 0], [5, rows as i64, 3], [1, 1, 1]];
            let region = region.map(|ints| Attribute::ints(&ints)).into_iter().collect();
            let operands = [Operand::Tensor(zeros), Operand::Tensor(value as u32)];
            let part = push(&slice::SLICE_ASSIGN, &operands, region);
            total = Some(match total {
                Some(total) => {
                    push(&b::ADD, &[Operand::Tensor(total), Operand::Tensor(part)], smallvec![])
                }
                None => part,
            });
        }
        plan.outputs = total.into_iter().collect();
        let mut engine = NativeEngine::new(2);
        compare(&mut engine, &plan, &mut Dice::new(seed as u64)).unwrap();
    }
}

#[test]
fn an_error_leaves_the_inputs_as_they_were() {
    let mut engine = NativeEngine::new(1);
    let meta = |dtype, dims: &[usize]| Meta::new(dtype, Shape::new(dims).unwrap());
    let inputs = vec![
        Input::Tensor { meta: meta(DType::F32, &[4]), dies: true },
        Input::Tensor { meta: meta(DType::I64, &[2]), dies: true },
    ];
    let mut plan = Plan::new(inputs);
    let lowers = |_: &'static Operation| true;
    let mut push = |operation, operands: SmallVec<[Source; 3]>, attributes: Attributes| {
        plan.push(&lowers, operation, operands, attributes, smallvec![]).unwrap()
    };
    let value = Operand::Tensor;
    let doubled = push(&b::MUL, smallvec![value(0), Operand::Scalar(Scalar::Int(2))], smallvec![]);
    let more = push(&b::ADD, smallvec![value(doubled), value(doubled)], smallvec![]);
    let along = smallvec![Attribute::Int(0)];
    let rows = push(&index::INDEX_SELECT, smallvec![value(more), value(1)], along);
    plan.outputs = vec![rows];
    let mut program = engine.prepare(&plan).unwrap();
    let floats: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let shape = Shape::new(&[4]).unwrap();
    let x = TensorData::new(DType::F32, shape, floats.into()).unwrap();
    for (place, is_good) in [(9i64, false), (3, true)] {
        let places: Vec<u8> = [0i64, place].iter().flat_map(|x| x.to_ne_bytes()).collect();
        let places = TensorData::new(DType::I64, Shape::new(&[2]).unwrap(), places.into()).unwrap();
        let mut given = [x.clone(), places].map(|data| Given::Tensor(engine.create(data).unwrap()));
        match engine.launch(&mut program, &mut given) {
            Ok(outputs) => {
                assert!(is_good);
                let rows = engine.read(&outputs[0]).unwrap();
                assert_eq!(rows.element(1).as_f64(), 16.0);
            }
            Err(error) => {
                assert!(!is_good);
                assert_eq!(error, EngineError::IndexOutOfRange { index: 9, length: 4 });
                let Given::Tensor(first) = &given[0] else { panic!("the input was taken") };
                assert_eq!(engine.read(first).unwrap().element(0).as_f64(), 1.0);
            }
        }
    }
}
