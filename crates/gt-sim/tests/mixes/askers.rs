//! Sessions that ask questions, each a number of operations of a given device time.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use gt_dispatcher::rules::{PolicyRule, Rules};
use gt_dispatcher::{Limits, PeerId, ToPeer};
use gt_ir::instruction::Results;
use gt_ir::message::{ClientToServer, ServerToClient};
use gt_ir::signal::Shard;
use gt_ir::{
    Attribute, ClientCommand, Content, Create, DType, Instruction, Meta, Operand, Operation,
    RequestId, Shape, SourceId, TensorData, TensorId, ops,
};
use gt_sim::{Chance, Delays, World};
use gt_worker::Options;

/// What a session does.
#[derive(Clone)]
pub struct Habit {
    /// The microseconds of device time of an operation, on each worker, and the operations of a
    /// question.
    pub operation: u64,
    pub operations: u64,
    /// The microseconds from an answer to the next question.
    pub think: Range<u64>,
    /// The questions that are in flight.
    pub ahead: usize,
    pub placement: Placement,
}

/// Where a session computes.
#[derive(Clone, Copy)]
pub enum Placement {
    /// On one worker.
    One(u32),
    /// On all workers, which exchange their parts of a sum after each operation.
    All(u32),
}

/// A session that waits for each answer, and asks again soon.
pub fn waits(operation: u64) -> Habit {
    Habit { operation, operations: 1, think: 100..300, ahead: 1, placement: Placement::One(0) }
}

/// A session that keeps questions in flight.
pub fn floods(operation: u64) -> Habit {
    Habit { ahead: 4, ..waits(operation) }
}

/// A session's client.
pub struct Asker {
    peer: PeerId,
    habit: Habit,
    next: u64,
    /// The result of the last operation.
    result: Option<TensorId>,
    asked: VecDeque<Duration>,
    /// When each answer came, and the time that it took.
    answers: Vec<(Duration, Duration)>,
}

/// The operand of all operations.
const OPERAND: TensorId = TensorId(0);
/// The signal of operations on a given placement.
const SIGNAL: u32 = 1;
/// The length of the sum that workers exchange.
const WIDTH: usize = 8;

impl Asker {
    /// The shape of the operand. An operation passes ten bytes in a microsecond.
    fn shape(&self) -> Shape {
        let bytes = 10 * self.habit.operation as usize;
        match self.habit.placement {
            // Four bytes are read and four written for each element.
            Placement::One(_) => Shape::new(&[bytes / 8]),
            // Four are read, written, and read again for the sum.
            Placement::All(workers) => {
                Shape::new(&[workers as usize * (bytes / 12 / WIDTH), WIDTH])
            }
        }
        .unwrap()
    }

    fn ones(&self, output: TensorId, shape: Shape) -> ClientCommand {
        let bytes = 1.0f32.to_le_bytes().repeat(shape.numel());
        let data = TensorData::new(DType::F32, shape, bytes.into()).unwrap();
        let content = Content::Data(data);
        ClientCommand::Create(Create { output, content, signal: SIGNAL, source: SourceId(0) })
    }

    fn begin(&mut self) -> Vec<ClientCommand> {
        let shard = match self.habit.placement {
            Placement::One(worker) => Shard::row(Some(vec![worker]), None),
            Placement::All(_) => Shard::row(None, Some(0)),
        };
        let (number, name) = (SIGNAL, "placed".into());
        let signal = ClientCommand::Signal { number, name, shard: Some(shard) };
        vec![signal, self.ones(OPERAND, self.shape())]
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: &[TensorId],
        shape: Shape,
        attributes: &[Attribute],
    ) -> ClientCommand {
        self.next += 1;
        ClientCommand::Run(Instruction {
            operation,
            output: TensorId(self.next),
            results: Results::from_iter([Meta::new(DType::F32, shape)]),
            operands: operands.iter().map(|operand| Operand::Tensor(*operand)).collect(),
            attributes: attributes.iter().cloned().collect(),
            source: SourceId(0),
            signal: SIGNAL,
        })
    }

    /// The commands of an operation on the result of the one before, if there is one.
    fn operation(&mut self) -> Vec<ClientCommand> {
        let (shape, before) = (self.shape(), self.result);
        let mut commands = match self.habit.placement {
            Placement::One(_) => {
                let operand = before.unwrap_or(OPERAND);
                vec![self.run(&ops::unary::SQRT, &[operand], shape, &[])]
            }
            Placement::All(_) => {
                let operands = [OPERAND, before.unwrap_or(OPERAND)];
                let product = self.run(&ops::binary::MUL, &operands, shape, &[]);
                let multiplied = TensorId(self.next);
                let over = [Attribute::ints(&[0]), Attribute::Bool(false)];
                let width = Shape::new(&[WIDTH]).unwrap();
                let sum = self.run(&ops::reduce::SUM, &[multiplied], width, &over);
                vec![product, sum, ClientCommand::Free(multiplied)]
            }
        };
        commands.extend(before.map(ClientCommand::Free));
        self.result = Some(TensorId(self.next));
        commands
    }

    fn ask(&mut self, world: &mut World, at: Duration) {
        let mut commands = Vec::new();
        for _ in 0..self.habit.operations {
            commands.extend(self.operation());
        }
        let (request, tensor) = (RequestId(self.next), TensorId(self.next));
        commands.push(ClientCommand::Fetch { request, tensor, line: SourceId(0) });
        world.send_at(at, self.peer, ClientToServer::Stream(commands));
        self.asked.push_back(at);
    }

    /// The device time of its answers between two times on each worker, in seconds.
    pub fn used(&self, during: &Range<Duration>) -> f64 {
        let answers = self.answers.iter().filter(|(at, _)| during.contains(at)).count() as u64;
        (answers * self.habit.operations * self.habit.operation) as f64 / 1e6
    }

    /// The times of its answers after the first second, in milliseconds and in order.
    pub fn times(&self) -> Vec<f64> {
        let late = self.answers.iter().filter(|(at, _)| *at > MEASURED.start);
        let mut times: Vec<f64> = late.map(|(_, took)| took.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

/// The time that counts.
pub const MEASURED: Range<Duration> = Duration::from_secs(1)..Duration::from_secs(6);

/// Runs sessions, those of the users if there are any, on the workers that they need.
pub fn mix(seed: u64, habits: &[Habit], users: &[(&str, u32)]) -> Vec<Asker> {
    let mut world = World::new(seed, 0, Delays { least: 20, most: 60 }, Limits::default());
    world.options = Options { pauses: true, ..Options::default() };
    let rule = |share| PolicyRule { share: Some(share), ..PolicyRule::default() };
    let users_rules = users.iter().map(|(user, share)| (user.to_string(), rule(*share))).collect();
    world.set_rules(Rules { users: users_rules, ..Rules::default() });
    let workers = habits.iter().map(|habit| match habit.placement {
        Placement::One(worker) => worker + 1,
        Placement::All(workers) => workers,
    });
    for _ in 0..workers.max().unwrap_or(0) {
        world.add_worker();
    }
    world.settle();
    let mut chance = Chance::new(seed);
    let mut askers: Vec<Asker> = Vec::new();
    for (index, habit) in habits.iter().enumerate() {
        let peer = world.add_client_of(users.get(index).map(|(user, _)| *user));
        world.settle();
        let (habit, asked, answers) = (habit.clone(), VecDeque::new(), Vec::new());
        let mut asker = Asker { peer, habit, next: 0, result: None, asked, answers };
        let begin = asker.begin();
        world.send_from_client(peer, ClientToServer::Stream(begin));
        let now = world.now();
        (0..asker.habit.ahead).for_each(|_| asker.ask(&mut world, now));
        askers.push(asker);
    }
    while world.now() < MEASURED.end && world.step() {
        let now = world.now();
        for asker in &mut askers {
            for message in world.receive(asker.peer) {
                let ToPeer::Client(ServerToClient::Answer(answer)) = message else { continue };
                assert!(answer.result.is_ok(), "{answer:?}");
                let asked = asker.asked.pop_front().expect("it has asked");
                asker.answers.push((now, now - asked));
                let Range { start, end } = asker.habit.think;
                let think = Duration::from_micros(start + chance.below(end - start));
                asker.ask(&mut world, now + think);
            }
        }
    }
    askers
}

/// Jain's index of what sessions have used after the first second, and their sum in seconds.
pub fn shares(askers: &[Asker]) -> (f64, f64) {
    let used: Vec<f64> = askers.iter().map(|asker| asker.used(&MEASURED)).collect();
    let sum: f64 = used.iter().sum();
    let squares: f64 = used.iter().map(|used| used * used).sum();
    (sum * sum / (used.len() as f64 * squares), sum)
}
