//! Random traces split into programs at random steps, on several numbers of threads, have the same
//! bits.

use gt_engine_native::NativeEngine;
use gt_ir::trace::{Input, Trace, TraceStep};
use gt_ir::{Operand, TensorData};
use gt_worker::Engine;
use gt_worker::engine::launch_plainly;
use gt_worker::plan::{InputValue, Plan};
use gt_worker::simplify::simplify;

use crate::programs::compare::{data, same};
use crate::programs::count;
use crate::programs::random::{Dice, random_trace};

type Tensor = <NativeEngine as Engine>::Tensor;

#[test]
fn splits_and_threads_do_not_change_a_bit() {
    let mut engines = [1, 2, 3].map(NativeEngine::new);
    for seed in 0..count() {
        let mut dice = Dice::new(1_000_000 + seed);
        let trace = random_trace(&mut dice);
        let values: Vec<Option<TensorData>> = trace
            .inputs
            .iter()
            .map(|input| match input {
                Input::Tensor(meta) => Some(data(*meta, &mut dice)),
                Input::Number(_) => None,
            })
            .collect();
        let mut expected: Option<Vec<TensorData>> = None;
        for engine in &mut engines {
            let given = given(engine, &trace, &values);
            if expected.is_none() {
                let plain = launch_plainly(engine, &trace, &trace.last_uses(), &given);
                let Ok(plain) = plain else { break };
                expected = Some(plain.iter().map(|tensor| engine.read(tensor).unwrap()).collect());
            }
            let ends = ends(&trace, &mut dice);
            let made = run_in_parts(engine, &trace, &ends, given);
            for (number, (made, expected)) in made.iter().zip(expected.iter().flatten()).enumerate()
            {
                let made = engine.read(made).unwrap();
                if let Err(text) = same(&made, expected) {
                    panic!("seed {seed}, programs end at {ends:?}: output {number}: {text}");
                }
            }
        }
    }
}

fn given(
    engine: &mut NativeEngine,
    trace: &Trace,
    values: &[Option<TensorData>],
) -> Vec<InputValue<Tensor>> {
    let inputs = trace.inputs.iter().zip(values);
    let given = inputs.map(|(input, value)| match (input, value) {
        (Input::Number(number), _) => InputValue::Number(*number),
        (_, value) => InputValue::Tensor(engine.create(value.clone().unwrap()).unwrap()),
    });
    given.collect()
}

/// Returns the ends of the programs: up to four random steps, and the last step.
fn ends(trace: &Trace, dice: &mut Dice) -> Vec<usize> {
    let steps = trace.steps.len();
    let mut ends: Vec<usize> = (0..dice.below(5)).map(|_| dice.below(steps + 1)).collect();
    ends.push(steps);
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Executes the steps up to each end as a separate program.
fn run_in_parts(
    engine: &mut NativeEngine,
    trace: &Trace,
    ends: &[usize],
    inputs: Vec<InputValue<Tensor>>,
) -> Vec<Tensor> {
    let count = inputs.len();
    let mut values: Vec<Option<InputValue<Tensor>>> = inputs.into_iter().map(Some).collect();
    values.resize(trace.values(), None);
    let mut start = 0;
    for &end in ends {
        let (steps, later) = (&trace.steps[start..end], &trace.steps[end..]);
        let (first, last) = ((count + start) as u32, (count + end) as u32);
        let mut taken: Vec<u32> = steps.iter().flat_map(TraceStep::reads).collect();
        taken.retain(|&value| value < first);
        taken.sort_unstable();
        taken.dedup();
        let input = |&value: &u32| match trace.meta(value) {
            Operand::Tensor(meta) => Input::Tensor(meta),
            Operand::Scalar(number) => Input::Number(number),
        };
        let mut part = Trace::new(taken.iter().map(input).collect());
        let place = |value: &u32| match taken.binary_search(value) {
            Ok(place) => place as u32,
            Err(_) => value - first + taken.len() as u32,
        };
        part.steps = steps.to_vec();
        for step in &mut part.steps {
            step.operands = step.operands.iter().map(|source| source.map(place)).collect();
            step.varying = step.varying.iter().map(place).collect();
        }
        let is_needed = |value: &u32| {
            trace.outputs.contains(value)
                || later.iter().any(|step| step.reads().any(|v| v == *value))
        };
        let needed: Vec<u32> = (first..last).filter(is_needed).collect();
        part.outputs = needed.iter().map(place).collect();
        let mut program = engine.prepare(&Plan::new(simplify(&part))).unwrap();
        let given = taken.iter().map(|&value| values[value as usize].clone().unwrap());
        let made = engine.launch(&mut program, &mut given.collect::<Vec<_>>()).unwrap();
        for (value, made) in needed.into_iter().zip(made) {
            values[value as usize] = Some(InputValue::Tensor(made));
        }
        start = end;
    }
    let output = |&value: &u32| match &values[value as usize] {
        Some(InputValue::Tensor(tensor)) => tensor.clone(),
        _ => unreachable!("outputs are computed tensors"),
    };
    trace.outputs.iter().map(output).collect()
}
