//! Plans executed as programs and operation by operation have the same bits and the same errors.
//!
//! `GT_PLANS=10000` runs more random plans.

mod compare;
mod failures;
mod patterns;
mod random;
mod splits;

use gt_engine_native::NativeEngine;

use crate::programs::compare::compare;
use crate::programs::random::{Dice, random_plan};

/// Returns the number of random plans.
fn count() -> u64 {
    std::env::var("GT_PLANS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

#[test]
fn programs_match_single_operations() {
    for threads in [1, 2] {
        let mut engine = NativeEngine::new(threads);
        for seed in 0..count() {
            let mut dice = Dice::new(seed);
            let plan = random_plan(&mut dice);
            if plan.steps.is_empty() {
                continue;
            }
            if let Err(text) = compare(&mut engine, &plan, &mut dice) {
                for (index, step) in plan.steps.iter().enumerate() {
                    eprintln!(
                        "{} := {:?} {:?} {:?} -> {} {}",
                        plan.inputs.len() + index,
                        step.operation,
                        step.operands,
                        step.attributes,
                        step.output.dtype,
                        step.output.shape
                    );
                }
                panic!("seed {seed}: {text}; inputs {:?} outputs {:?}", plan.inputs, plan.outputs);
            }
        }
    }
}
