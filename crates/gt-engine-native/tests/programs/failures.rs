//! Programs with errors during execution.

use std::sync::Arc;

use gt_engine_native::NativeEngine;
use gt_ir::instruction::Instruction;
use gt_ir::message::{ServerToWorker, WorkerToServer};
use gt_ir::ops::{binary as b, index, slice};
use gt_ir::template::{self, TemplateBuilder};
use gt_ir::trace::{Input, Source, Trace};
use gt_ir::{
    Attribute, Attributes, Bindings, Content, Create, DType, Incarnation, Invocation, LaneId, Meta,
    Operand, Operation, RequestId, Scalar, Shape, SlotId, SourceId, TensorData, TensorId,
    TransferId, WorkerCommand,
};
use gt_worker::plan::{InputValue, Plan};
use gt_worker::{Engine, EngineError, Out, Work, Worker};
use smallvec::{SmallVec, smallvec};

/// A slice that starts outside of the tensor is an error, even if the start that the trace was
/// created with was inside.
#[test]
fn start_indices_are_checked_in_every_iteration() {
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
    let mut builder = TemplateBuilder::new(bases, [2, 0], TransferId(0));
    for (output, start) in [(100, 0), (101, 4)] {
        let step = builder.step_with_slots(&slice(output, start)).unwrap();
        builder.push(template::Step::Run(step));
    }
    let definition = builder.finish(0, false);
    let mut bindings = Bindings::new(definition.template.widths, &definition.start);
    let content = Content::Data(data);
    let mut commands = vec![
        WorkerCommand::Create(Box::new(Create {
            output: TensorId(1),
            content,
            signal: 0,
            source: SourceId(0),
        })),
        WorkerCommand::Define(Box::new(definition)),
    ];
    for (iteration, start) in [0i64, 1, 2, 5, 12, 13, 1 << 40, -1, 3].into_iter().enumerate() {
        let base = TensorId(200 + 10 * iteration as u64);
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
        let (request, line) = (RequestId(iteration as u64), SourceId::default());
        commands.push(WorkerCommand::Invoke(Arc::new(invocation)));
        commands.push(WorkerCommand::Fetch { request, tensor: base, shared: false, line });
        let mut out = Vec::new();
        let lane = LaneId { incarnation: Incarnation(1), slot: SlotId(0) };
        let commands = std::mem::take(&mut commands);
        worker.handle(ServerToWorker::Work { lane, commands }.into(), &mut out);
        while worker.step(&mut out) {}
        let result = out.into_iter().find_map(|out| match out {
            Out::Server(WorkerToServer::Value { result, .. }) => Some(result),
            _ => None,
        });
        match result.expect("the program has an answer") {
            Ok(Content::Data(data)) => assert_eq!(data.element(0).as_f64(), start as f64),
            Ok(_) => panic!("the engine has no shared memory"),
            Err(failure) => assert!(!(0..=12).contains(&start), "{failure:?}"),
        }
    }
}

#[test]
fn an_error_leaves_the_inputs_as_they_were() {
    let mut engine = NativeEngine::new(1);
    let meta = |dtype, dims: &[usize]| Meta::new(dtype, Shape::new(dims).unwrap());
    let inputs = vec![Input::Tensor(meta(DType::F32, &[4])), Input::Tensor(meta(DType::I64, &[2]))];
    let mut trace = Trace::new(inputs);
    let lowers = |_: &'static Operation| true;
    let mut push = |operation, operands: SmallVec<[Source; 3]>, attributes: Attributes| {
        trace.push(&lowers, operation, operands, attributes, smallvec![]).unwrap()
    };
    let value = Operand::Tensor;
    let doubled = push(&b::MUL, smallvec![value(0), Operand::Scalar(Scalar::Int(2))], smallvec![]);
    let more = push(&b::ADD, smallvec![value(doubled), value(doubled)], smallvec![]);
    let along = smallvec![Attribute::Int(0)];
    let rows = push(&index::INDEX_SELECT, smallvec![value(more), value(1)], along);
    trace.outputs = vec![rows];
    let mut program = engine.prepare(&Plan { trace, dies: vec![true; 2], compile: false }).unwrap();
    let floats: Vec<u8> = [1.0f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let shape = Shape::new(&[4]).unwrap();
    let x = TensorData::new(DType::F32, shape, floats.into()).unwrap();
    for (place, is_good) in [(9i64, false), (3, true)] {
        let places: Vec<u8> = [0i64, place].iter().flat_map(|x| x.to_ne_bytes()).collect();
        let places = TensorData::new(DType::I64, Shape::new(&[2]).unwrap(), places.into()).unwrap();
        let mut given =
            [x.clone(), places].map(|data| InputValue::Tensor(engine.create(data).unwrap()));
        match engine.launch(&mut program, &mut given) {
            Ok(outputs) => {
                assert!(is_good);
                let rows = engine.read(&outputs[0]).unwrap();
                assert_eq!(rows.element(1).as_f64(), 16.0);
            }
            Err(error) => {
                assert!(!is_good);
                assert_eq!(error, EngineError::IndexOutOfRange { index: 9, length: 4 });
                let InputValue::Tensor(first) = &given[0] else { panic!("the input was consumed") };
                assert_eq!(engine.read(first).unwrap().element(0).as_f64(), 1.0);
            }
        }
    }
}
