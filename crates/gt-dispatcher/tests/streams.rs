//! What the dispatcher makes of a client's stream, as the instruction log writes it, compared with
//! the texts in `streams/`. `GT_WRITE_STREAMS=1` writes them anew.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_dispatcher::log::Log;
use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_ir::message::{Hello, Message, PROTOCOL_VERSION, Role, schema};
use gt_ir::signal::Shard;
use gt_ir::{
    Attribute, Attributes, Command, DType, Fabric, Instruction, Operand, Operation, RequestId,
    Scalar, SourceId, TensorId, ops,
};

const CLIENT: PeerId = PeerId(100);

fn hello(role: Role, name: String, fabric: Option<Fabric>) -> Message {
    let (version, schema) = (PROTOCOL_VERSION, schema());
    let (machine, endpoint) = ("machine".to_string(), String::new());
    Message::Hello(Hello { version, schema, role, name, machine, endpoint, fabric })
}

/// A client's program, written down as commands.
#[derive(Default)]
struct Program {
    commands: Vec<Command>,
    signal: u32,
    tensors: u64,
}

impl Program {
    /// Says what a signal means.
    fn mean(&mut self, number: u32, name: &str, shard: Shard) {
        self.commands.push(Command::Signal { number, name: name.into(), shard: Some(shard) });
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand],
        attributes: &[Attribute],
    ) -> Operand {
        let output = TensorId(self.tensors);
        self.tensors += 1;
        self.commands.push(Command::Run(Instruction {
            operation,
            output,
            operands: operands.iter().copied().collect(),
            attributes: attributes.iter().cloned().collect::<Attributes>(),
            source: SourceId::default(),
            signal: self.signal,
        }));
        Operand::Tensor(output)
    }

    fn ones(&mut self, dims: &[usize]) -> Operand {
        let one = Operand::Scalar(Scalar::Int(1));
        let attributes = [Attribute::dims(dims), Attribute::DType(DType::F32)];
        self.run(&ops::create::FULL, &[one], &attributes)
    }

    fn fetch(&mut self, tensor: Operand) {
        let Operand::Tensor(tensor) = tensor else { panic!("a number") };
        self.commands.push(Command::Fetch {
            request: RequestId(0),
            tensor,
            shared: false,
            line: SourceId(0),
        });
    }
}

/// Compares the log of a program on `workers` workers with the text of this name.
fn check(name: &str, workers: u64, program: Program) {
    check_on(name, vec![None; workers as usize], program);
}

/// As [`check`], on workers with these fabrics.
fn check_on(name: &str, workers: Vec<Option<Fabric>>, program: Program) {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&lines);
    let log = Log::new(Box::new(move |line| sink.lock().unwrap().push(line.to_string())));
    let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), Some(log));
    for (worker, fabric) in workers.into_iter().enumerate() {
        let message = hello(Role::Worker, format!("w{worker}"), fabric);
        dispatcher.handle(Duration::ZERO, PeerId(1 + worker as u64), Role::Worker, message);
    }
    let message = hello(Role::Client, "client".into(), None);
    dispatcher.handle(Duration::ZERO, CLIENT, Role::Client, message);
    let stream = Message::Stream(program.commands);
    dispatcher.handle(Duration::ZERO, CLIENT, Role::Client, stream);
    let got = lines.lock().unwrap().join("\n") + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(name);
    if std::env::var_os("GT_WRITE_STREAMS").is_some() {
        std::fs::write(&path, &got).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(got, want, "{name}: GT_WRITE_STREAMS=1 writes it anew");
}

#[test]
fn one_worker_gets_the_stream_as_it_comes() {
    let mut program = Program::default();
    program.mean(1, "rows", Shard::row(None, Some(0)));
    program.signal = 1;
    let x = program.ones(&[4, 2]);
    let y = program.run(&ops::binary::ADD, &[x, x], &[]);
    program.fetch(y);
    check("one_worker.txt", 1, program);
}

#[test]
fn rows_by_whole_moves_the_whole_alone() {
    let mut program = Program::default();
    program.mean(1, "rows", Shard::row(None, Some(0)));
    let right = program.ones(&[3, 2]);
    program.signal = 1;
    let left = program.ones(&[5, 3]);
    let product = program.run(&ops::matmul::MATMUL, &[left, right], &[]);
    program.run(&ops::unary::RELU, &[product], &[]);
    check("rows_by_whole.txt", 2, program);
}

#[test]
fn a_mean_is_weighed_and_summed_where_it_is_needed() {
    let mut program = Program::default();
    program.mean(1, "rows", Shard::row(None, Some(0)));
    program.signal = 1;
    let x = program.ones(&[5, 3]);
    let all = [Attribute::ints::<i64>(&[]), Attribute::Bool(false)];
    let mean = program.run(&ops::reduce::MEAN, &[x], &all);
    program.run(&ops::unary::EXP, &[mean], &[]);
    check("mean.txt", 2, program);
}

#[test]
fn another_scope_moves_its_input_there() {
    let mut program = Program::default();
    program.mean(1, "first stage", Shard::row(Some(vec![0]), Some(0)));
    program.mean(2, "second stage", Shard::row(Some(vec![1, 2]), Some(0)));
    program.signal = 1;
    let x = program.ones(&[4, 2]);
    program.signal = 2;
    let y = program.run(&ops::unary::RELU, &[x], &[]);
    program.fetch(y);
    check("pipeline.txt", 3, program);
}

/// What the third worker takes part in goes in pieces: its engine joins nobody.
#[test]
fn engines_move_what_they_can_themselves() {
    let fabric = |worker| {
        let (kind, store) = ("gloo/2.15".into(), format!("127.0.0.1:{worker}"));
        Some(Fabric { kind, local: true, store, device: String::new() })
    };
    let mut program = Program::default();
    program.mean(1, "two", Shard::row(Some(vec![0, 1]), Some(0)));
    program.mean(2, "three", Shard::row(Some(vec![0, 1, 2]), Some(0)));
    for signal in [1, 2] {
        program.signal = signal;
        let x = program.ones(&[6, 3]);
        let sum =
            program.run(&ops::reduce::SUM, &[x], &[Attribute::ints(&[0]), Attribute::Bool(false)]);
        program.run(&ops::unary::EXP, &[sum], &[]);
    }
    check_on("joint.txt", vec![fabric(0), fabric(1), None], program);
}
