//! Fixtures of the dispatcher's tests: a client's program, and a dispatcher with workers that
//! complete everything at once.

pub mod golden;
pub mod listing;
pub mod pair;

use std::time::Duration;

use gt_dispatcher::{Dispatcher, FromPeer, Limits, PeerId, ToPeer};
use gt_ir::entitlement::Usage;
use gt_ir::message::{
    Answer, Badge, ClientHello, ClientToServer, ClientWelcome, Hello, Role, ServerToClient,
    ServerToWorker, Welcome, WorkerHello, WorkerToServer,
};
use gt_ir::signal::Shard;
use gt_ir::template::{Bindings, IterationPart, Name, Step, TemplateBuilder, Values};
use gt_ir::wire::{Frames, Record};
use gt_ir::{
    Attribute, Attributes, ClientCommand, Content, Create, DType, Definition, Fabric, Instruction,
    Invocation, Meta, Operand, Operation, RequestId, Scalar, SessionOrigin, SourceId, TensorData,
    TensorId, TransferId, WorkerCommand, ops,
};

/// Returns the hello of a worker.
pub fn worker(name: String, fabric: Option<Fabric>) -> Hello {
    let (machine, rate) = ("machine".to_string(), u64::MAX);
    let fabric = fabric.map(Box::new);
    Hello::Worker(WorkerHello { machine, rate, fabric, ..WorkerHello::new(name) })
}

/// Returns the hello of a client.
pub fn client(name: String, badge: Option<Badge>) -> Hello {
    let (machine, badge) = ("machine".to_string(), badge.map(Box::new));
    Hello::Client(ClientHello { machine, badge, ..ClientHello::new(SessionOrigin::new(name)) })
}

/// Returns the messages that a dispatcher sends in answer to one.
pub fn send(
    dispatcher: &mut Dispatcher,
    now: Duration,
    peer: PeerId,
    message: impl Into<FromPeer>,
) -> Vec<(PeerId, ToPeer)> {
    dispatcher.handle(now, peer, message);
    let mut out = Vec::new();
    dispatcher.take_outbox(&mut out);
    out
}

/// Builds a client's program as commands.
#[derive(Default)]
pub struct Program {
    pub commands: Vec<ClientCommand>,
    pub signal: u32,
    metas: Vec<Meta>,
}

impl Program {
    /// Defines a signal.
    pub fn define_signal(&mut self, number: u32, name: &str, shard: Shard) {
        self.commands.push(ClientCommand::Signal { number, name: name.into(), shard: Some(shard) });
    }

    /// Puts the following commands in a scope that shards rows over all workers.
    pub fn shard_rows(&mut self) {
        self.define_signal(1, "rows", Shard::row(None, Some(0)));
        self.signal = 1;
    }

    /// Builds an instruction and names its result, without adding it to the stream.
    pub fn step(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand],
        attributes: &[Attribute],
    ) -> Instruction {
        let output = TensorId(self.metas.len() as u64);
        let metas: Vec<Operand<Meta>> =
            operands.iter().map(|operand| operand.map(|id| self.metas[id.0 as usize])).collect();
        let attributes: Attributes = attributes.iter().cloned().collect();
        let result = operation.check(&metas, &attributes).unwrap();
        self.metas.push(result);
        Instruction {
            operation,
            output,
            results: [result].into_iter().collect(),
            operands: operands.iter().copied().collect(),
            attributes,
            source: SourceId::default(),
            signal: self.signal,
        }
    }

    pub fn run(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand],
        attributes: &[Attribute],
    ) -> Operand {
        let step = self.step(operation, operands, attributes);
        let output = Operand::Tensor(step.output);
        self.commands.push(ClientCommand::Run(step));
        output
    }

    pub fn ones(&mut self, dims: &[usize]) -> Operand {
        let one = Operand::Scalar(Scalar::Int(1));
        let attributes = [Attribute::dims(dims), Attribute::DType(DType::F32)];
        self.run(&ops::create::FULL, &[one], &attributes)
    }

    pub fn data(&mut self, data: TensorData) -> Operand {
        let (output, signal) = (self.base(), self.signal);
        self.metas.push(Meta::new(data.dtype, data.shape));
        let content = Content::Data(data);
        self.commands.push(ClientCommand::Create(Create {
            output,
            content,
            signal,
            source: SourceId(0),
        }));
        Operand::Tensor(output)
    }

    pub fn fetch(&mut self, tensor: Operand) {
        let Operand::Tensor(tensor) = tensor else { panic!("a number") };
        self.commands.push(fetch(tensor.0));
    }

    /// Returns the name that the next tensor gets.
    pub fn base(&self) -> TensorId {
        TensorId(self.metas.len() as u64)
    }

    /// Defines a template of the steps that `body` builds. Their names are those of the template's
    /// start, which is not run.
    pub fn define(
        &mut self,
        number: u32,
        frees: &[Operand],
        body: impl Fn(&mut Program) -> Vec<Instruction>,
    ) -> Repeated {
        let base = self.base();
        let steps = body(self);
        let widths = [steps.len() as u32, 0];
        let mut builder = TemplateBuilder::new([base, TensorId::PLANNED], widths, TransferId(0));
        for step in &steps {
            let step = builder.step_with_slots(step).unwrap();
            builder.push(Step::Run(step));
        }
        frees.iter().filter_map(Operand::tensor).for_each(|id| builder.free_later(*id));
        let definition = builder.finish(number, false);
        self.commands.push(ClientCommand::Define(Box::new(definition.clone())));
        Repeated::new(definition)
    }

    /// Invokes the template once more.
    pub fn invoke(&mut self, repeated: &mut Repeated, numbers: &[(u32, Scalar)]) {
        let invocation = repeated.next(self.base().0, numbers);
        let template = &repeated.definition.template;
        let results = template.steps.iter().flat_map(|step| step.makes());
        self.metas.extend(results.map(|(_, meta)| meta));
        self.commands.push(ClientCommand::Invoke(Box::new(invocation)));
    }
}

pub fn fetch(id: u64) -> ClientCommand {
    ClientCommand::Fetch { request: RequestId(id), tensor: TensorId(id), line: SourceId(0) }
}

/// A template, and the bindings of its next iteration.
pub struct Repeated {
    pub definition: Definition,
    /// The outside tensors of the iterations to come, by slot.
    pub inputs: Vec<TensorId>,
    bindings: Bindings,
}

impl Repeated {
    pub fn new(definition: Definition) -> Repeated {
        let bindings = Bindings::new(definition.template.widths, &definition.start);
        Repeated { inputs: definition.start.tensors.clone(), definition, bindings }
    }

    /// Returns the invocation of the next iteration, with these numbers changed.
    pub fn next(&mut self, base: u64, numbers: &[(u32, Scalar)]) -> Invocation {
        let bases = [TensorId(base), TensorId::PLANNED];
        self.bindings.begin(bases);
        // A tensor made before the first iteration may be predicted as made by an iteration.
        let slots = (0..).zip(&self.inputs);
        let differs =
            |(slot, id): &(u32, &TensorId)| self.bindings.tensor(Name::Outside(*slot)) != **id;
        let tensors: Vec<_> = slots.filter(differs).map(|(slot, id)| (slot, *id)).collect();
        tensors.iter().for_each(|(slot, id)| self.bindings.bind_tensor(*slot, *id));
        numbers.iter().for_each(|(slot, value)| self.bindings.bind_number(*slot, *value));
        let template = &self.definition.template;
        let (last, frees) = (template.len() as u32, template.frees.len() as u32);
        Invocation {
            template: self.definition.number,
            bases,
            transfer: TransferId(0),
            part: IterationPart { first: 0, last, frees },
            tensors,
            numbers: numbers.to_vec(),
            others: vec![],
            digest: self.bindings.digest(),
        }
    }
}

/// A dispatcher with workers that complete everything at once, and answer no requests.
pub struct Cluster {
    pub dispatcher: Dispatcher,
    pub now: Duration,
    /// Messages sent to clients.
    pub to_clients: Vec<(PeerId, ToPeer)>,
    /// Commands sent to workers, encoded: session, worker, bytes.
    pub streams: Vec<(u32, u64, Vec<u8>)>,
    /// The sessions of `EndSession` messages to workers.
    pub ended: Vec<u32>,
    /// The tensors that workers were asked to free.
    pub freed: Vec<TensorId>,
}

impl Cluster {
    pub fn new(workers: u64) -> Cluster {
        Cluster::with_limits(workers, Limits::default())
    }

    pub fn with_limits(workers: u64, limits: Limits) -> Cluster {
        let dispatcher = Dispatcher::new(String::new(), limits, None);
        let (to_clients, streams, ended) = (Vec::new(), Vec::new(), Vec::new());
        let (now, freed) = (Duration::ZERO, Vec::new());
        let mut cluster = Cluster { dispatcher, now, to_clients, streams, ended, freed };
        for number in 1..=workers {
            cluster.handle(PeerId::worker(number), worker(format!("w{number}"), None));
        }
        cluster
    }

    /// Connects a client; ids begin at 101.
    pub fn connect(&mut self, number: u64) -> PeerId {
        self.handle(PeerId::client(number), client(format!("c{number}"), None));
        PeerId::client(number)
    }

    pub fn send(&mut self, client: PeerId, commands: Vec<ClientCommand>) {
        self.handle(client, ClientToServer::Stream(commands));
    }

    pub fn handle(&mut self, peer: PeerId, message: impl Into<FromPeer>) {
        self.dispatcher.handle(self.now, peer, message);
        self.deliver();
    }

    /// Delivers the dispatcher's messages.
    pub fn deliver(&mut self) {
        let mut out = Vec::new();
        self.dispatcher.take_outbox(&mut out);
        for (peer, message) in out {
            match message {
                ToPeer::Worker(ServerToWorker::Work { lane, commands }) => {
                    let weight = commands.iter().map(WorkerCommand::weight).sum();
                    self.freed.extend(commands.iter().filter_map(|command| match command {
                        WorkerCommand::Free(id) => Some(*id),
                        _ => None,
                    }));
                    self.streams.push((lane.incarnation.0, peer.number, encoded(commands)));
                    let usage = Usage::default();
                    self.handle(peer, WorkerToServer::LaneDone { lane, weight, usage });
                }
                ToPeer::Worker(ServerToWorker::EndSession { incarnation }) => {
                    self.ended.push(incarnation.0);
                }
                message if peer.role == Role::Client => self.to_clients.push((peer, message)),
                _ => {}
            }
        }
    }

    /// Returns the welcome of a client, if it was welcomed.
    pub fn welcome(&self, client: PeerId) -> Option<&ClientWelcome> {
        self.to_clients.iter().find_map(|(peer, message)| match message {
            ToPeer::Welcome(Welcome::Client(welcome)) if *peer == client => Some(welcome),
            _ => None,
        })
    }

    /// Returns why a client's session was ended, if it was.
    pub fn goodbye(&self, client: PeerId) -> Option<&str> {
        self.to_clients.iter().find_map(|(peer, message)| match message {
            ToPeer::Goodbye(goodbye) if *peer == client => Some(goodbye.reason.as_str()),
            _ => None,
        })
    }

    /// Returns the errors that a client was answered with, by request.
    pub fn errors(&self, client: PeerId) -> Vec<(u64, String)> {
        let errors = self.to_clients.iter().filter(|(peer, _)| *peer == client);
        let errors = errors.filter_map(|(_, message)| match message {
            ToPeer::Client(ServerToClient::Answer(Answer { request, result: Err(failure) })) => {
                Some((request.0, failure.to_string()))
            }
            _ => None,
        });
        errors.collect()
    }

    /// Returns the commands sent to workers for a session.
    pub fn stream(&self, session: u32) -> Vec<(u64, &[u8])> {
        let of = self.streams.iter().filter(|(of, _, _)| *of == session);
        of.map(|(_, worker, bytes)| (*worker, bytes.as_slice())).collect()
    }
}

/// Encodes commands. Request ids are zeroed, as the dispatcher numbers those of all sessions
/// together.
fn encoded(mut commands: Vec<WorkerCommand>) -> Vec<u8> {
    for command in &mut commands {
        if let WorkerCommand::Fetch { request, .. } | WorkerCommand::Statistics { request } =
            command
        {
            *request = RequestId(0);
        }
    }
    let mut frames = Frames::default();
    commands.write(&mut frames);
    frames.head
}

/// Returns the attributes of a reduction over these axes.
pub fn all_of(axes: &[i64]) -> [Attribute; 2] {
    [Attribute::ints(axes), Attribute::Bool(false)]
}
