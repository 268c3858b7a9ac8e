//! Random programs: loops of random steps, some of which are skipped in some rounds.

use gt_ir::Attribute;
use gt_ir::ops::{slice, unary};
use proptest::prelude::*;
use smallvec::smallvec;

use crate::hotpath::issuer::{Issuer, number, tensor};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_program_is_received_as_it_was_issued(
        loops in proptest::collection::vec(random_loop(), 1..4),
        outer in 1usize..6,
    ) {
        let mut issuer = Issuer::new();
        let mut tensors = vec![issuer.create(4), issuer.create(4)];
        for _ in 0..outer {
            for body in &loops {
                run_loop(&mut issuer, &mut tensors, body);
            }
        }
        issuer.finish();
    }
}

/// A step of a loop.
#[derive(Clone, Debug)]
enum Step {
    /// Adds two live tensors, counted back from the newest.
    Add(usize, usize),
    /// Adds a number to a tensor; the number may differ in each round.
    AddNumber(usize, bool),
    Exp(usize),
    /// A slice whose start varies from round to round.
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

/// A loop of a program.
#[derive(Clone, Debug)]
struct Loop {
    steps: Vec<Step>,
    rounds: usize,
    /// The group of source lines of its steps.
    line: u32,
    /// The skipped steps: each a round, and the step's index.
    skips: Vec<(usize, usize)>,
}

fn random_loop() -> impl Strategy<Value = Loop> {
    let steps = proptest::collection::vec(step(), 1..14);
    let skips = proptest::collection::vec((0usize..30, 0usize..14), 0..3);
    (steps, 1usize..25, 0u32..3, skips).prop_map(|(steps, rounds, line, skips)| Loop {
        steps,
        rounds,
        line,
        skips,
    })
}

fn run_loop(issuer: &mut Issuer, tensors: &mut Vec<u64>, body: &Loop) {
    for round in 0..body.rounds {
        for (index, step) in body.steps.iter().enumerate() {
            if body.skips.contains(&(round, index)) {
                continue;
            }
            let line = body.line * 100 + index as u32;
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
                Step::Create => issuer.create(4 + body.line as usize),
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
        // The number of live tensors stays bounded.
        while tensors.len() > 12 {
            let id = tensors.remove(1);
            issuer.free(id);
        }
    }
}
