//! Fuzz test: batches of random commands neither crash the dispatcher nor affect another session.
//! `crates/gt-sim/tests/hostile.rs` mutates valid streams instead, with workers that compute.

use crate::common::pair::Pair;
use crate::common::{Repeated, fetch};
use gt_ir::operation::SampleOperand;
use gt_ir::philox::RandomStream;
use gt_ir::signal::Shard;
use gt_ir::template::{Step, TemplateBuilder};
use gt_ir::{ClientCommand, Instruction, Meta, Operand, SourceId, TensorId, TransferId, ops};

/// Seeded random numbers.
struct Chance(RandomStream, u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.1 += 1;
        self.0.integer(self.1, 0, limit as i64) as usize
    }

    /// Returns an instruction of a random operation on tensors that may not exist or fit.
    fn instruction(&mut self, output: u64) -> Instruction {
        let operation = ops::ALL[self.below(ops::ALL.len())];
        let samples = (operation.samples)();
        let sample = &samples[self.below(samples.len())];
        let metas: Vec<Operand<Meta>> = gt_ir::ops::sample::metas(sample);
        let operands = sample.operands.iter().map(|operand| match operand {
            SampleOperand::Tensor { .. } => Operand::Tensor(TensorId(self.below(12) as u64)),
            SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
        });
        let operands = operands.collect();
        let attributes = sample.attributes.clone();
        let results = operation.check(&metas, &attributes).into_iter().collect();
        let (source, signal) = (SourceId::default(), self.below(3) as u32);
        let output = TensorId(output);
        Instruction { operation, output, results, operands, attributes, source, signal }
    }

    fn command(&mut self, next: &mut u64, repeated: &mut Option<Repeated>) -> ClientCommand {
        let id = self.below(16) as u64;
        match self.below(12) {
            0 => ClientCommand::Free(TensorId(id)),
            1 => fetch(id),
            2 => {
                let axis = self.below(4) as i64 - 1;
                let (number, name) = (1 + self.below(2) as u32, "s".to_string());
                let shard = Some(Shard::row(None, Some(axis)));
                ClientCommand::Signal { number, name, shard }
            }
            3 => {
                let base = TensorId(*next);
                let mut builder =
                    TemplateBuilder::new([base, TensorId::PLANNED], [3, 0], TransferId(0));
                for place in 0..3 {
                    let mut step = self.instruction(*next + place);
                    step.results.truncate(1);
                    if let Some(step) = builder.step_with_slots(&step) {
                        builder.push(Step::Run(step));
                    }
                }
                let definition = builder.finish(self.below(2) as u32, false);
                *repeated = Some(Repeated::new(definition.clone()));
                ClientCommand::Define(Box::new(definition))
            }
            4..7 if repeated.is_some() => {
                *next += 3;
                let invocation = repeated.as_mut().map(|repeated| repeated.next(*next - 3, &[]));
                let mut invocation = invocation.expect("defined above");
                // One in 16 digests is wrong.
                invocation.digest ^= u32::from(self.below(16) == 0);
                ClientCommand::Invoke(Box::new(invocation))
            }
            _ => {
                *next += 1;
                ClientCommand::Run(self.instruction(*next - 1))
            }
        }
    }
}

#[test]
fn random_batches_do_not_crash_the_planner() {
    let (mut continued, mut ended) = (0, 0);
    for seed in 0..300 {
        let mut chance = Chance(RandomStream::new(seed, 1), 0);
        let (mut next, mut repeated, mut pair) = (0, None, Pair::new());
        for _ in 0..3 {
            let count = 1 + chance.below(24);
            let commands = (0..count).map(|_| chance.command(&mut next, &mut repeated)).collect();
            pair.attack(commands);
        }
        match pair.cluster.goodbye(pair.bad) {
            Some(reason) => {
                assert!(!reason.contains("the planner failed"), "seed {seed}: {reason}");
                ended += 1;
            }
            None => continued += 1,
        }
        pair.check(&format!("seed {seed}"));
    }
    // Both outcomes are common.
    assert!(continued > 20 && ended > 20, "{continued} {ended}");
}
