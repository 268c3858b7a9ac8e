//! Issues commands as a session does, and checks how a receiver expands them.

use gt_client::hotpath::{HotPathDetector, Settings, UninferredInstruction};
use gt_ir::ops::binary;
use gt_ir::template::{MAX_ALL_STEPS, MAX_TEMPLATES, expand};
use gt_ir::{
    Attributes, ClientCommand, Content, Create, DType, Instance, Instruction, Meta, Operand,
    Operation, RequestId, Scalar, Shape, SourceId, TensorData, TensorId,
};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;

/// Expands invocations into their commands, as a receiver does.
#[derive(Default)]
pub struct Receiver {
    pub templates: FxHashMap<u32, Instance>,
    commands: Vec<ClientCommand>,
    /// The number of invocations received.
    pub invocations: usize,
}

impl Receiver {
    fn take(&mut self, command: ClientCommand) {
        match command {
            ClientCommand::Forget { template } => {
                self.templates.remove(&template);
            }
            ClientCommand::Define(definition) => {
                definition.check_client().expect("valid");
                self.templates.insert(definition.number, Instance::new(*definition));
                let steps: usize = self.templates.values().map(|known| known.template.len()).sum();
                assert!(steps <= MAX_ALL_STEPS && self.templates.len() <= MAX_TEMPLATES as usize);
            }
            ClientCommand::Invoke(invocation) => {
                let known = self.templates.get_mut(&invocation.template).expect("defined");
                let freed =
                    known.take(&invocation).expect("valid, with equal bindings at both ends");
                self.invocations += 1;
                self.commands.extend(expand(known, &invocation, freed));
                self.commands.extend(invocation.others.into_iter().map(ClientCommand::Free));
            }
            other => self.commands.push(other),
        }
    }
}

/// Issues commands as a session does, and checks what leaves the detector.
pub struct Issuer {
    pub detector: HotPathDetector,
    next: u64,
    issued: Vec<ClientCommand>,
    out: Vec<ClientCommand>,
    pub alive: FxHashMap<u64, Meta>,
    pub region: u32,
    /// The number of instructions that repeated one of the previous iteration without a command.
    pub repeated: usize,
}

impl Issuer {
    pub fn new() -> Issuer {
        let settings = Settings { enabled: true, threshold: 3, compile: false };
        Issuer {
            detector: HotPathDetector::new(settings),
            next: 0,
            issued: Vec::new(),
            out: Vec::new(),
            alive: FxHashMap::default(),
            region: 0,
            repeated: 0,
        }
    }

    fn send(&mut self, command: ClientCommand) {
        self.issued.push(command.clone());
        self.detector.process(command, self.region, &mut self.out);
    }

    pub fn run(
        &mut self,
        line: u32,
        operation: &'static Operation,
        operands: &[Operand],
        attributes: Attributes,
        meta: Meta,
    ) -> u64 {
        let output = TensorId(self.next);
        self.next += 1;
        let inputs: Vec<Operand<Meta>> =
            operands.iter().map(|operand| operand.map(|id| self.alive[&id.0])).collect();
        let metas = inputs.iter().map(|input| input.tensor().copied());
        let source = SourceId(line);
        let issue = UninferredInstruction {
            operation,
            output,
            operands,
            attributes: &attributes,
            source,
            signal: 0,
        };
        let repeated = self.detector.repeat(&issue, self.region, metas);
        let (results, signal) = (smallvec![meta], 0);
        let operands = operands.iter().copied().collect();
        let instruction =
            Instruction { operation, output, results, operands, attributes, source, signal };
        let command = ClientCommand::Run(instruction);
        match repeated {
            Some((made, _)) => {
                assert_eq!(made, meta, "the meta that was inferred before");
                self.issued.push(command);
                self.repeated += 1;
            }
            None => {
                self.send(command);
                self.detector.note(&inputs, 1);
            }
        }
        self.alive.insert(output.0, meta);
        output.0
    }

    pub fn add(&mut self, line: u32, left: u64, right: Operand) -> u64 {
        let meta = self.alive[&left];
        self.run(line, &binary::ADD, &[tensor(left), right], smallvec![], meta)
    }

    pub fn create(&mut self, length: usize) -> u64 {
        let output = TensorId(self.next);
        self.next += 1;
        let shape = Shape::new(&[length]).unwrap();
        let bytes = bytes::Bytes::from(vec![0; length * 4]);
        let content = Content::Data(TensorData { dtype: DType::F32, shape, bytes });
        let meta = content.meta();
        self.send(ClientCommand::Create(Create {
            output,
            content,
            signal: 0,
            source: SourceId(0),
        }));
        self.alive.insert(output.0, meta);
        output.0
    }

    pub fn free(&mut self, id: u64) {
        self.alive.remove(&id).expect("freed once");
        self.send(ClientCommand::Free(TensorId(id)));
    }

    pub fn fetch(&mut self, id: u64) {
        let (request, tensor) = (RequestId(0), TensorId(id));
        self.send(ClientCommand::Fetch { request, tensor, line: SourceId(0) });
    }

    /// Returns a receiver that has expanded all commands that left the detector, and checks them
    /// against those that entered it.
    pub fn finish(mut self) -> Receiver {
        self.detector.flush(&mut self.out);
        let mut receiver = Receiver::default();
        self.out.into_iter().for_each(|command| receiver.take(command));
        check(&self.issued, &receiver.commands);
        receiver
    }
}

pub fn tensor(id: u64) -> Operand {
    Operand::Tensor(TensorId(id))
}

pub fn number(value: f64) -> Operand {
    Operand::Scalar(Scalar::Float(value))
}

/// Checks that the received commands are those that were issued, each kind in order (frees in any
/// order), and that tensors are used only between their creation and their free.
fn check(issued: &[ClientCommand], received: &[ClientCommand]) {
    let of =
        |commands: &[ClientCommand], wanted: fn(&ClientCommand) -> bool| -> Vec<ClientCommand> {
            commands.iter().filter(|command| wanted(command)).cloned().collect()
        };
    for kind in [
        |command: &ClientCommand| matches!(command, ClientCommand::Run(_)),
        |command: &ClientCommand| matches!(command, ClientCommand::Create(_)),
        |command: &ClientCommand| matches!(command, ClientCommand::Fetch { .. }),
    ] {
        assert_eq!(of(issued, kind), of(received, kind));
    }
    let frees = |commands: &[ClientCommand]| -> Vec<u64> {
        let mut ids: Vec<u64> = commands
            .iter()
            .filter_map(|command| match command {
                ClientCommand::Free(id) => Some(id.0),
                _ => None,
            })
            .collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(frees(issued), frees(received));
    let mut alive = FxHashSet::default();
    for command in received {
        match command {
            ClientCommand::Run(instruction) => {
                for id in instruction.operands.iter().filter_map(Operand::tensor) {
                    assert!(alive.contains(id), "{instruction} uses {id}, which is not alive");
                }
                alive.insert(instruction.output);
            }
            ClientCommand::Create(create) => {
                alive.insert(create.output);
            }
            ClientCommand::Fetch { tensor, .. } => assert!(alive.contains(tensor)),
            ClientCommand::Free(id) => assert!(alive.remove(id)),
            _ => {}
        }
    }
}
