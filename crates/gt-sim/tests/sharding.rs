//! Every operation gives the same result on any placement: each sample of each operation, with
//! sharded, replicated and unplaced operands, on two and three workers, against one.

use bytes::Bytes;
use gt_dispatcher::{Limits, PeerId, ToPeer};
use gt_ir::message::{ClientToServer, Reply, ServerToClient};
use gt_ir::operation::{Sample, SampleOperand};
use gt_ir::ops::custom::CUSTOM;
use gt_ir::philox::RandomStream;
use gt_ir::signal::Shard;
use gt_ir::{
    ClientCommand, Content, Create, DType, Instruction, Meta, Operand, Operation, RequestId,
    Scalar, SourceId, TensorData, TensorId, ops,
};
use gt_sim::{Delays, World};

/// A client that sends commands as they are.
struct Client {
    world: World,
    peer: PeerId,
    next: u64,
}

impl Client {
    fn new(workers: usize) -> Client {
        let delays = Delays { least: 1, most: 30 };
        let mut world = World::new(7, workers, delays, Limits::default());
        world.settle();
        let peer = world.add_client();
        Client { world, peer, next: 0 }
    }

    fn send(&mut self, command: ClientCommand) {
        self.world.send_from_client(self.peer, ClientToServer::Stream(vec![command]));
        self.world.settle();
    }

    fn name(&mut self) -> TensorId {
        self.next += 1;
        TensorId(self.next)
    }

    fn fetch(&mut self, tensor: TensorId) -> Result<TensorData, String> {
        let request = RequestId(self.next);
        self.send(ClientCommand::Fetch { request, tensor, line: SourceId(0) });
        for message in self.world.receive(self.peer) {
            match message {
                ToPeer::Client(ServerToClient::Answer(answer)) => match answer.result {
                    Ok(Reply::Value(Content::Data(data))) => return Ok(data),
                    Ok(other) => panic!("{other:?}"),
                    Err(failure) => return Err(failure.reason),
                },
                ToPeer::Goodbye(goodbye) => panic!("{}", goodbye.reason),
                _ => {}
            }
        }
        panic!("no answer")
    }

    /// Runs an operation on operands placed by signals (0 for none), itself under `signal`.
    fn run(
        &mut self,
        operation: &'static Operation,
        sample: &Sample,
        values: &[Option<TensorData>],
        placements: &[u32],
        signal: u32,
    ) -> Result<Vec<TensorData>, String> {
        let mut names = Vec::new();
        let mut operands = Vec::new();
        for (index, operand) in sample.operands.iter().enumerate() {
            operands.push(match operand {
                SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
                SampleOperand::Tensor { .. } => {
                    let output = self.name();
                    let content = Content::Data(values[index].clone().unwrap());
                    self.send(ClientCommand::Create(Create {
                        output,
                        content,
                        signal: placements[index],
                        source: SourceId(0),
                    }));
                    names.push(output);
                    Operand::Tensor(output)
                }
            });
        }
        let output = self.name();
        let metas: Vec<Operand<Meta>> = sample
            .operands
            .iter()
            .map(|operand| match operand {
                SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
                SampleOperand::Tensor { meta, .. } => Operand::Tensor(*meta),
            })
            .collect();
        let results = operation.results(&metas, &sample.attributes).map_err(|e| e.to_string())?;
        let mut outputs = vec![output];
        outputs.extend(results[1..].iter().map(|_| self.name()));
        self.send(ClientCommand::Run(Instruction {
            operation,
            output,
            results,
            operands: operands.into_iter().collect(),
            attributes: sample.attributes.clone(),
            source: SourceId::default(),
            signal,
        }));
        let result = outputs.iter().map(|output| self.fetch(*output)).collect();
        names.extend(outputs);
        names.into_iter().for_each(|name| self.send(ClientCommand::Free(name)));
        result
    }
}

/// Signal 1 replicates; 2 to 5 shard axis 0 to 3.
const SIGNALS: u32 = 5;

fn explain_signals(client: &mut Client) {
    for number in 1..=SIGNALS {
        let axis = (number > 1).then(|| i64::from(number) - 2);
        let shard = Some(Shard::row(None, axis));
        client.send(ClientCommand::Signal { number, name: format!("s{number}"), shard });
    }
}

fn values(sample: &Sample, stream: &RandomStream) -> Vec<Option<TensorData>> {
    let mut drawn = 0;
    sample
        .operands
        .iter()
        .map(|operand| {
            let SampleOperand::Tensor { meta, low, high } = operand else { return None };
            let mut bytes = Vec::new();
            for _ in 0..meta.shape.numel() {
                drawn += 1;
                let value = low + (high - low) * stream.uniform_f64(drawn);
                let value = if meta.dtype.is_float() { value } else { value.floor() };
                TensorData::encode(meta.dtype, Scalar::Float(value), &mut bytes);
            }
            TensorData::new(meta.dtype, meta.shape, Bytes::from(bytes))
        })
        .collect()
}

fn assert_close(got: &TensorData, want: &TensorData, what: &str) {
    assert_eq!((got.dtype, got.shape), (want.dtype, want.shape), "{what}");
    let tolerance = match want.dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 | DType::C64 => 1e-5,
        DType::F64 | DType::C128 => 1e-12,
        _ => 0.0,
    };
    for index in 0..want.shape.numel() {
        for (a, b) in parts(got, index).into_iter().zip(parts(want, index)) {
            let close = (a - b).abs() <= tolerance * (1.0 + b.abs()) || (a.is_nan() && b.is_nan());
            assert!(close || a == b, "{what}: element {index} is {a}, one worker gives {b}");
        }
    }
}

/// The real and the imaginary part of an element.
fn parts(data: &TensorData, index: usize) -> [f64; 2] {
    if data.dtype.is_complex() {
        return data.complex(index).into();
    }
    [data.element(index).as_f64(), 0.0]
}

#[test]
fn every_operation_gives_the_same_on_any_placement() {
    let mut alone = Client::new(1);
    for workers in [2, 3] {
        let mut client = Client::new(workers);
        explain_signals(&mut client);
        // Only engines in Python can compute custom operations.
        for operation in ops::ALL.iter().filter(|operation| ***operation != CUSTOM) {
            for (number, sample) in (operation.samples)().iter().enumerate() {
                let stream = RandomStream::new(u64::from(operation.id), number as u64);
                let values = values(sample, &stream);
                let none = vec![0; values.len()];
                let want = alone.run(operation, sample, &values, &none, 0);
                for round in 0..6 {
                    let choose = |place: u64| {
                        stream.integer(1_000_000 + round * 16 + place, 0, i64::from(SIGNALS) + 1)
                            as u32
                    };
                    let placements: Vec<u32> =
                        (0..values.len()).map(|index| choose(index as u64)).collect();
                    let signal = choose(15);
                    let got = client.run(operation, sample, &values, &placements, signal);
                    let what = format!(
                        "{} {sample:?} with operands in {placements:?}, itself in {signal}, on {workers}",
                        operation.name
                    );
                    match (&got, &want) {
                        (Ok(got), Ok(want)) => {
                            let pairs = got.iter().zip(want);
                            pairs.for_each(|(got, want)| assert_close(got, want, &what));
                        }
                        (Err(_), Err(_)) => {}
                        _ => panic!("{what}: {got:?}, one worker gives {want:?}"),
                    }
                }
            }
        }
        assert_eq!(client.world.tensors_held(), 0, "everything was freed");
    }
}
