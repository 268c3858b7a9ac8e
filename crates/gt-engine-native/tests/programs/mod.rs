//! Traces executed as programs and operation by operation have the same bits and the same errors.
//!
//! `GT_PLANS=10000` runs more random traces.

mod compare;
mod failures;
mod patterns;
mod random;
mod splits;

use gt_engine_native::NativeEngine;

use crate::programs::compare::compare;
use crate::programs::random::{Dice, random_trace};

/// Returns the number of random traces.
fn count() -> u64 {
    std::env::var("GT_PLANS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[test]
fn programs_match_single_operations() {
    for threads in [1, 2] {
        let mut engine = NativeEngine::new(threads);
        for seed in 0..count() {
            let mut dice = Dice::new(seed);
            let trace = random_trace(&mut dice);
            if trace.steps.is_empty() {
                continue;
            }
            if let Err(text) = compare(&mut engine, &trace, &mut dice) {
                for (index, step) in trace.steps.iter().enumerate() {
                    eprintln!(
                        "{} := {:?} {:?} {:?} -> {} {}",
                        trace.inputs.len() + index,
                        step.operation,
                        step.operands,
                        step.attributes,
                        step.output.dtype,
                        step.output.shape
                    );
                }
                panic!(
                    "seed {seed}: {text}; inputs {:?} outputs {:?}",
                    trace.inputs, trace.outputs
                );
            }
        }
    }
}
