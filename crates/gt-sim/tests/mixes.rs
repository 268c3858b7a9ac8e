//! Mixes of sessions that share a worker in virtual time: who waits for each answer has a full share,
//! beside others who do, and beside floods.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use gt_dispatcher::rules::{PolicyRule, Rules};
use gt_dispatcher::{Limits, PeerId, ToPeer};
use gt_ir::message::{ClientToServer, ServerToClient};
use gt_ir::{
    ClientCommand, Create, DType, Instruction, Meta, Operand, RequestId, Shape, SourceId,
    TensorData, TensorId, ops,
};
use gt_sim::{Chance, Delays, World};
use gt_worker::Options;

/// What a session does.
#[derive(Clone)]
struct Habit {
    /// The microseconds of device time of an operation, and the operations of a question.
    operation: u64,
    operations: u64,
    /// The microseconds from an answer to the next question.
    think: Range<u64>,
    /// The questions that are in flight.
    ahead: usize,
}

/// A session that waits for each answer, and asks again soon.
fn waits(operation: u64) -> Habit {
    Habit { operation, operations: 1, think: 100..300, ahead: 1 }
}

/// A session that keeps questions in flight.
fn floods(operation: u64) -> Habit {
    Habit { ahead: 4, ..waits(operation) }
}

struct Asker {
    peer: PeerId,
    habit: Habit,
    next: u64,
    asked: VecDeque<Duration>,
    /// When each answer came, and the time that it took.
    answers: Vec<(Duration, Duration)>,
}

/// The operand of all operations.
const OPERAND: TensorId = TensorId(0);

impl Asker {
    fn shape(&self) -> Shape {
        // Four bytes are read and four written for each element, of which ten pass in a microsecond.
        Shape::new(&[(self.habit.operation * 10 / 8) as usize]).unwrap()
    }

    fn create(&self) -> ClientCommand {
        let bytes = 1.0f32.to_le_bytes().repeat(self.shape()[0]);
        let data = TensorData::new(DType::F32, self.shape(), bytes.into()).unwrap();
        let content = gt_ir::Content::Data(data);
        let (signal, source) = (0, SourceId(0));
        ClientCommand::Create(Create { output: OPERAND, content, signal, source })
    }

    fn ask(&mut self, world: &mut World, at: Duration) {
        let mut commands = Vec::new();
        for _ in 0..self.habit.operations {
            self.next += 1;
            let output = TensorId(self.next);
            commands.push(ClientCommand::Run(Instruction {
                operation: &ops::unary::SQRT,
                output,
                results: [Meta::new(DType::F32, self.shape())].into_iter().collect(),
                operands: [Operand::Tensor(OPERAND)].into_iter().collect(),
                attributes: Default::default(),
                source: Default::default(),
                signal: 0,
            }));
            if commands.len() < self.habit.operations as usize * 2 - 1 {
                commands.push(ClientCommand::Free(output));
            }
        }
        let (request, tensor) = (RequestId(self.next), TensorId(self.next));
        commands.push(ClientCommand::Fetch { request, tensor, line: SourceId(0) });
        commands.push(ClientCommand::Free(tensor));
        world.send_at(at, self.peer, ClientToServer::Stream(commands));
        self.asked.push_back(at);
    }

    /// The device time of its answers between two times, in seconds.
    fn used(&self, during: &Range<Duration>) -> f64 {
        let answers = self.answers.iter().filter(|(at, _)| during.contains(at)).count() as u64;
        (answers * self.habit.operations * self.habit.operation) as f64 / 1e6
    }

    /// The times of its answers after the first second, in milliseconds and in order.
    fn times(&self) -> Vec<f64> {
        let late = self.answers.iter().filter(|(at, _)| *at > Duration::from_secs(1));
        let mut times: Vec<f64> = late.map(|(_, took)| took.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

/// The time of a mix, of which the first second does not count.
const TIME: Duration = Duration::from_secs(6);

/// Runs sessions on one worker, those of the users if there are any.
fn mix(seed: u64, habits: &[Habit], users: &[(&str, u32)]) -> Vec<Asker> {
    let mut world = World::new(seed, 0, Delays { least: 20, most: 60 }, Limits::default());
    world.options = Options { pauses: true, ..Options::default() };
    let rule = |share| PolicyRule { share: Some(share), ..PolicyRule::default() };
    let users_rules = users.iter().map(|(user, share)| (user.to_string(), rule(*share))).collect();
    world.set_rules(Rules { users: users_rules, ..Rules::default() });
    world.add_worker();
    world.settle();
    let mut chance = Chance::new(seed);
    let mut askers: Vec<Asker> = Vec::new();
    for (index, habit) in habits.iter().enumerate() {
        let peer = world.add_client_of(users.get(index).map(|(user, _)| *user));
        world.settle();
        let (habit, asked, answers) = (habit.clone(), VecDeque::new(), Vec::new());
        let mut asker = Asker { peer, habit, next: 0, asked, answers };
        world.send_from_client(peer, ClientToServer::Stream(vec![asker.create()]));
        let now = world.now();
        (0..asker.habit.ahead).for_each(|_| asker.ask(&mut world, now));
        askers.push(asker);
    }
    while world.now() < TIME && world.step() {
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
fn shares(askers: &[Asker]) -> (f64, f64) {
    let during = Duration::from_secs(1)..TIME;
    let used: Vec<f64> = askers.iter().map(|asker| asker.used(&during)).collect();
    let sum: f64 = used.iter().sum();
    let squares: f64 = used.iter().map(|used| used * used).sum();
    (sum * sum / (used.len() as f64 * squares), sum)
}

/// The seeds that are tried: a few, or as many as a campaign says.
fn seeds() -> Range<u64> {
    let count = std::env::var("GT_MIXES").ok().and_then(|count| count.parse().ok());
    0..count.unwrap_or(5)
}

#[test]
fn two_that_wait_for_each_answer_have_equal_shares() {
    for seed in seeds() {
        for (slow, quick, index) in
            [(83_000, 1_200, 0.95), (83_000, 11_000, 0.97), (11_000, 1_200, 0.95)]
        {
            let alone = shares(&mix(seed, &[waits(slow)], &[])).1;
            let (jain, sum) = shares(&mix(seed, &[waits(slow), waits(quick)], &[]));
            println!("{seed}: {slow} and {quick}: {jain:.3}, {:.3}", sum / alone);
            assert!(jain >= index, "{seed}: {slow} and {quick}: {jain}");
            assert!(sum / alone >= 0.93, "{seed}: {slow} and {quick}: {sum} of {alone}");
        }
    }
}

#[test]
fn a_small_question_beside_a_flood_is_answered_soon() {
    for seed in seeds() {
        let small = Habit { think: 20_000..20_001, ..waits(20) };
        let times = mix(seed, &[small, floods(83_000)], &[]).remove(0).times();
        let (median, high) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("{seed}: {median:.2}, {high:.2} of {}", times.len());
        assert!(median <= 1.5 && high <= 3.0, "{seed}: {median} and {high}");
    }
}

/// Twenty milliseconds of work every second.
#[test]
fn bursts_beside_floods_take_little_longer_than_alone() {
    for seed in seeds() {
        let bursts = Habit { operation: 1_000, operations: 20, think: 980_000..980_001, ahead: 1 };
        let alone = mix(seed, std::slice::from_ref(&bursts), &[]).remove(0).times();
        let others = [bursts, floods(11_000), floods(11_000), floods(11_000)];
        let times = mix(seed, &others, &[]).remove(0).times();
        let of_alone = |place: usize| times[place] / alone[alone.len() / 2];
        let (median, highest) = (of_alone(times.len() / 2), of_alone(times.len() - 1));
        println!("{seed}: {median:.2}, {highest:.2} of {}", times.len());
        assert!(median <= 1.2 && highest <= 2.0, "{seed}: {median} and {highest}");
    }
}

#[test]
fn weights_hold_for_those_who_wait_for_each_answer() {
    for seed in seeds() {
        for (first, second) in [(10_000, 10_000), (20_000, 10_000), (10_000, 20_000)] {
            let habits = [waits(first), waits(second)];
            let during = Duration::from_secs(1)..TIME;
            let askers = mix(seed, &habits, &[("ada", 10), ("eve", 90)]);
            let [ada, eve] = [0, 1].map(|index| askers[index].used(&during));
            println!("{seed}: {first} and {second}: {:.2}", eve / ada);
            assert!((eve / ada / 9.0 - 1.0).abs() < 0.12, "{seed}: {ada} and {eve}");
        }
    }
}

/// Tokens one by one, beside a training that is never idle.
#[test]
fn generation_beside_training_has_half_of_its_speed_alone() {
    for seed in seeds() {
        let tokens = Habit { operation: 400, operations: 12, think: 300..600, ahead: 1 };
        let training = Habit { operation: 2_000, operations: 20, ..floods(0) };
        let during = Duration::from_secs(1)..TIME;
        let [tokens_alone, training_alone] = [&tokens, &training]
            .map(|habit| mix(seed, std::slice::from_ref(habit), &[]).remove(0).used(&during));
        let both = mix(seed, &[tokens, training], &[]);
        let of_alone =
            [both[0].used(&during) / tokens_alone, both[1].used(&during) / training_alone];
        println!("{seed}: {of_alone:.3?}");
        assert!(of_alone.iter().all(|part| *part >= 0.45), "{seed}: {of_alone:?}");
    }
}

#[test]
fn many_that_wait_for_each_answer_do_as_much_as_two() {
    for seed in seeds() {
        let [two, eight] = [2, 8].map(|count| shares(&mix(seed, &vec![waits(1_200); count], &[])));
        println!("{seed}: {two:?} and {eight:?}");
        assert!(eight.1 >= 0.99 * two.1 && eight.0 > 0.97, "{seed}: {two:?} and {eight:?}");
    }
}
