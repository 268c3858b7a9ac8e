//! The stream that leaves the detector stands for the one that entered it.

use gt_client::hotpath::{HotPathDetector, Settings};
use gt_ir::ops::{binary, slice, unary};
use gt_ir::template::{MAX_ALL_STEPS, MAX_TEMPLATES, expand};
use gt_ir::{
    Attribute, Attributes, ClientCommand, Content, Create, DType, Instance, Instruction, Meta,
    Operand, Operation, RequestId, Scalar, Shape, SourceId, TensorData, TensorId,
};
use proptest::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;

/// Puts what invocations stand for into their places, as whoever receives them does.
#[derive(Default)]
struct Receiver {
    templates: FxHashMap<u32, Instance>,
    commands: Vec<ClientCommand>,
    passes: usize,
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
                let freed = known.take(&invocation).expect("valid, and bound alike at both ends");
                self.passes += 1;
                self.commands.extend(expand(known, &invocation, freed));
                self.commands.extend(invocation.others.into_iter().map(ClientCommand::Free));
            }
            other => self.commands.push(other),
        }
    }
}

/// Issues commands as a session does, and checks what comes out.
struct Issuer {
    detector: HotPathDetector,
    next: u64,
    issued: Vec<ClientCommand>,
    out: Vec<ClientCommand>,
    alive: FxHashMap<u64, Meta>,
    region: u32,
}

impl Issuer {
    fn new() -> Issuer {
        let settings = Settings { enabled: true, threshold: 3, compile: false };
        Issuer {
            detector: HotPathDetector::new(settings),
            next: 0,
            issued: Vec::new(),
            out: Vec::new(),
            alive: FxHashMap::default(),
            region: 0,
        }
    }

    fn pass(&mut self, command: ClientCommand) {
        self.issued.push(command.clone());
        self.detector.process(command, self.region, &mut self.out);
    }

    fn run(
        &mut self,
        line: u32,
        operation: &'static Operation,
        operands: &[Operand],
        attributes: Attributes,
        meta: Meta,
    ) -> u64 {
        let output = TensorId(self.next);
        self.next += 1;
        let operands = operands.iter().copied().collect();
        let source = SourceId(line);
        let (results, signal) = (smallvec![meta], 0);
        let instruction =
            Instruction { operation, output, results, operands, attributes, source, signal };
        self.pass(ClientCommand::Run(instruction));
        self.alive.insert(output.0, meta);
        output.0
    }

    fn add(&mut self, line: u32, left: u64, right: Operand) -> u64 {
        let meta = self.alive[&left];
        self.run(line, &binary::ADD, &[tensor(left), right], smallvec![], meta)
    }

    fn create(&mut self, length: usize) -> u64 {
        let output = TensorId(self.next);
        self.next += 1;
        let shape = Shape::new(&[length]).unwrap();
        let bytes = bytes::Bytes::from(vec![0; length * 4]);
        let content = Content::Data(TensorData { dtype: DType::F32, shape, bytes });
        let meta = content.meta();
        self.pass(ClientCommand::Create(Create { output, content, signal: 0 }));
        self.alive.insert(output.0, meta);
        output.0
    }

    fn free(&mut self, id: u64) {
        self.alive.remove(&id).expect("freed once");
        self.pass(ClientCommand::Free(TensorId(id)));
    }

    fn fetch(&mut self, id: u64) {
        let (request, tensor) = (RequestId(0), TensorId(id));
        self.pass(ClientCommand::Fetch { request, tensor, line: SourceId(0) });
    }

    /// All that came out, unfolded; checked against what went in.
    fn finish(mut self) -> Receiver {
        self.detector.flush(&mut self.out);
        let mut receiver = Receiver::default();
        self.out.into_iter().for_each(|command| receiver.take(command));
        check(&self.issued, &receiver.commands);
        receiver
    }
}

fn tensor(id: u64) -> Operand {
    Operand::Tensor(TensorId(id))
}

fn number(value: f64) -> Operand {
    Operand::Scalar(Scalar::Float(value))
}

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
    // Nothing is used before it is there or after it is freed.
    let mut there = FxHashSet::default();
    for command in received {
        match command {
            ClientCommand::Run(instruction) => {
                for id in instruction.operands.iter().filter_map(Operand::tensor) {
                    assert!(there.contains(id), "{instruction} uses {id}, which is not there");
                }
                there.insert(instruction.output);
            }
            ClientCommand::Create(create) => {
                there.insert(create.output);
            }
            ClientCommand::Fetch { tensor, .. } => assert!(there.contains(tensor)),
            ClientCommand::Free(id) => assert!(there.remove(id)),
            _ => {}
        }
    }
}

/// A step of a program that a loop repeats.
#[derive(Clone, Debug)]
enum Step {
    /// Add two of the tensors there are, counted from the newest.
    Add(usize, usize),
    AddNumber(usize, bool),
    Exp(usize),
    /// A slice that starts where the round says.
    Slice(usize),
    Create,
    Free(usize),
    Fetch(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0usize..6, 0usize..6).prop_map(|(a, b)| Step::Add(a, b)),
        3 => (0usize..6, any::<bool>()).prop_map(|(a, changes)| Step::AddNumber(a, changes)),
        3 => (0usize..6).prop_map(Step::Exp),
        1 => (0usize..6).prop_map(Step::Slice),
        1 => Just(Step::Create),
        4 => (0usize..8).prop_map(Step::Free),
        1 => (0usize..4).prop_map(Step::Fetch),
    ]
}

/// A part of a program: its steps, how often they are repeated, and which are left out when.
#[derive(Clone, Debug)]
struct IterationPart {
    steps: Vec<Step>,
    rounds: usize,
    line: u32,
    skips: Vec<(usize, usize)>,
}

fn part() -> impl Strategy<Value = IterationPart> {
    let steps = proptest::collection::vec(step(), 1..14);
    let skips = proptest::collection::vec((0usize..30, 0usize..14), 0..3);
    (steps, 1usize..25, 0u32..3, skips).prop_map(|(steps, rounds, line, skips)| IterationPart {
        steps,
        rounds,
        line,
        skips,
    })
}

fn run_part(issuer: &mut Issuer, tensors: &mut Vec<u64>, part: &IterationPart) {
    for round in 0..part.rounds {
        for (index, step) in part.steps.iter().enumerate() {
            if part.skips.contains(&(round, index)) {
                continue;
            }
            let line = part.line * 100 + index as u32;
            let pick = |back: usize| tensors[tensors.len() - 1 - back % tensors.len()];
            let made = match *step {
                Step::Add(a, b) => issuer.add(line, pick(a), tensor(pick(b))),
                Step::AddNumber(a, changes) => {
                    let value = if changes { round as f64 * 0.5 } else { 2.0 };
                    issuer.add(line, pick(a), number(value))
                }
                Step::Exp(a) => {
                    let meta = issuer.alive[&pick(a)];
                    issuer.run(line, &unary::EXP, &[tensor(pick(a))], smallvec![], meta)
                }
                Step::Slice(a) => {
                    let attributes = smallvec![
                        Attribute::ints(&[round as i64 * 3]),
                        Attribute::ints(&[4i64]),
                        Attribute::ints(&[1i64])
                    ];
                    let meta = issuer.alive[&pick(a)];
                    issuer.run(line, &slice::SLICE, &[tensor(pick(a))], attributes, meta)
                }
                Step::Create => issuer.create(4 + part.line as usize),
                Step::Free(back) => {
                    if tensors.len() > 3 {
                        let at = tensors.len() - 1 - back % (tensors.len() - 1);
                        let id = tensors.remove(at);
                        issuer.free(id);
                    }
                    continue;
                }
                Step::Fetch(back) => {
                    issuer.fetch(pick(back));
                    continue;
                }
            };
            tensors.push(made);
        }
        // A loop does not grow for ever.
        while tensors.len() > 12 {
            let id = tensors.remove(1);
            issuer.free(id);
        }
    }
}

#[test]
fn whoever_receives_templates_never_holds_too_many() {
    let mut issuer = Issuer::new();
    // One of them takes the place of several.
    let loops = (0..11).map(|number| (number, 6000)).chain([(11, 16_000), (12, 40)]);
    for (number_of_loop, length) in loops {
        let x = issuer.create(4);
        for _ in 0..5 {
            let mut y = x;
            for step in 0..length {
                y = issuer.add(number_of_loop * 100_000 + step, y, number(1.0));
            }
            issuer.fetch(y);
        }
    }
    assert!(issuer.finish().passes > 12);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_program_stays_what_it_is(
        parts in proptest::collection::vec(part(), 1..4),
        outer in 1usize..6,
    ) {
        let mut issuer = Issuer::new();
        let mut tensors = vec![issuer.create(4), issuer.create(4)];
        for _ in 0..outer {
            for part in &parts {
                run_part(&mut issuer, &mut tensors, part);
            }
        }
        issuer.finish();
    }
}

/// A training step: parameters replace themselves, a loss is left over.
fn training_step(issuer: &mut Issuer, parameters: &mut [u64], data: u64, rate: f64) -> u64 {
    let mut x = data;
    let mut hidden = Vec::new();
    for (layer, &parameter) in parameters.iter().enumerate() {
        x = issuer.add(layer as u32, x, tensor(parameter));
        hidden.push(x);
    }
    let loss = issuer.add(50, x, number(1.0));
    for (layer, parameter) in parameters.iter_mut().enumerate() {
        let gradient = issuer.add(60, hidden[layer], tensor(loss));
        let step = issuer.add(61, gradient, number(rate));
        let new = issuer.add(62, *parameter, tensor(step));
        issuer.free(gradient);
        issuer.free(step);
        issuer.free(std::mem::replace(parameter, new));
    }
    hidden.into_iter().for_each(|id| issuer.free(id));
    loss
}

/// The share of the instructions from the tenth of some training steps on that are sent by
/// invocations.
fn share_of_hot(steps: usize, mut between: impl FnMut(&mut Issuer, usize, u64)) -> (f64, Receiver) {
    let mut issuer = Issuer::new();
    let data = issuer.create(8);
    let mut parameters: Vec<u64> = (0..4).map(|_| issuer.create(8)).collect();
    let mut last = None;
    let mut before = issuer.detector.get_stats();
    for step in 0..steps {
        if step == 9 {
            before = issuer.detector.get_stats();
        }
        let rate = 0.1 / (1.0 + step as f64);
        let loss = training_step(&mut issuer, &mut parameters, data, rate);
        if let Some(last) = last.replace(loss) {
            issuer.free(last);
        }
        between(&mut issuer, step, loss);
    }
    let after = issuer.detector.get_stats();
    let hot = after.hot_instructions - before.hot_instructions;
    let all = after.total_instructions - before.total_instructions;
    (hot as f64 / all as f64, issuer.finish())
}

#[test]
fn a_training_loop_is_hot_by_its_tenth_step() {
    let (share, receiver) = share_of_hot(40, |_, _, _| {});
    assert_eq!(share, 1.0);
    // A message for each step.
    assert!(receiver.passes <= 36, "{}", receiver.passes);
}

#[test]
fn fetching_the_loss_leaves_it_hot() {
    let (share, _) = share_of_hot(40, |issuer, _, loss| issuer.fetch(loss));
    assert_eq!(share, 1.0);
    let (share, _) = share_of_hot(40, |issuer, step, loss| {
        if step % 3 == 0 {
            issuer.fetch(loss);
        }
    });
    assert_eq!(share, 1.0);
}

#[test]
fn evaluation_now_and_then_leaves_it_hot() {
    let mut others = Vec::new();
    let (share, _) = share_of_hot(60, |issuer, step, loss| {
        if step % 5 == 4 {
            let a = issuer.add(70, loss, number(1.0));
            let b = issuer.add(71, a, number(2.0));
            issuer.fetch(b);
            others.extend([a, b]);
            if others.len() > 8 {
                others.drain(..).for_each(|id| issuer.free(id));
            }
        }
    });
    assert!(share > 0.95, "{share}");
}

#[test]
fn steps_of_another_kind_now_and_then_leave_it_hot() {
    // A smaller last batch, once an epoch.
    let mut issuer = Issuer::new();
    let (data, small) = (issuer.create(8), issuer.create(6));
    let mut parameters: Vec<u64> = (0..4).map(|_| issuer.create(8)).collect();
    let mut others: Vec<u64> = (0..4).map(|_| issuer.create(6)).collect();
    for step in 0..120 {
        let loss = if step % 12 == 11 {
            training_step(&mut issuer, &mut others, small, 0.1)
        } else {
            training_step(&mut issuer, &mut parameters, data, 0.1)
        };
        issuer.free(loss);
    }
    let stats = issuer.detector.get_stats();
    let share = stats.hot_instructions as f64 / stats.total_instructions as f64;
    assert!(share > 0.85, "{share}");
    issuer.finish();
}

#[test]
fn what_is_to_be_compiled_is_hot_from_its_second_time_on() {
    let mut issuer = Issuer::new();
    let mut x = issuer.create(4);
    for round in 0..6 {
        issuer.region = round + 1;
        for line in 0..5 {
            let next = issuer.add(line, x, number(1.0));
            issuer.free(std::mem::replace(&mut x, next));
        }
        issuer.region = 0;
        // What is done in between is never the same.
        let next = issuer.add(100 + round, x, number(1.0));
        issuer.free(std::mem::replace(&mut x, next));
    }
    assert_eq!(issuer.detector.get_stats().hot_instructions, 25);
    let receiver = issuer.finish();
    assert_eq!(receiver.templates.len(), 1);
}

#[test]
fn a_pass_is_midway_between_its_first_step_and_its_last() {
    let mut issuer = Issuer::new();
    let mut x = issuer.create(4);
    let mut midway = Vec::new();
    for _ in 0..6 {
        for line in 0..20 {
            let next = issuer.add(line, x, number(1.0));
            issuer.free(std::mem::replace(&mut x, next));
            midway.push(issuer.detector.is_midway());
        }
    }
    let hot = midway.iter().position(|midway| *midway).expect("the loop becomes hot");
    assert!(hot > 2 * 20, "after {hot} steps");
    let ends: Vec<_> = (hot..midway.len()).filter(|&step| !midway[step]).collect();
    assert!(ends.len() >= 3 && ends.windows(2).all(|pair| pair[1] - pair[0] == 20), "{ends:?}");
    issuer.finish();
}

#[test]
fn what_never_repeats_is_left_alone() {
    let mut issuer = Issuer::new();
    let mut x = issuer.create(4);
    for line in 0..5000 {
        let next = issuer.add(line, x, number(1.0));
        issuer.free(std::mem::replace(&mut x, next));
    }
    assert_eq!(issuer.detector.get_stats().hot_instructions, 0);
    issuer.finish();
}
