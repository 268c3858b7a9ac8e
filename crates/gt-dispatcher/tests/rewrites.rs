//! Rewrites that need more than a program: several batches, a modifier, or another configuration.
//! Their streams are in `streams/`, too.

use crate::common::Program;
use crate::common::golden::Golden;
use gt_dispatcher::Limits;
use gt_ir::modifier::Modifier;
use gt_ir::signal::Shard;
use gt_ir::{Attribute, ClientCommand, DType, Operand, Scalar, TensorId, ops};

/// Rewrites `x * 2` as `x + x`.
struct Doubling;

impl Modifier for Doubling {
    fn name(&self) -> &'static str {
        "doubling"
    }

    fn process(&mut self, mut command: ClientCommand, out: &mut Vec<ClientCommand>) {
        if let ClientCommand::Run(instruction) = &mut command
            && instruction.operation.id == ops::binary::MUL.id
            && instruction.operands[1] == Operand::Scalar(Scalar::Int(2))
        {
            instruction.operation = &ops::binary::ADD;
            instruction.operands[1] = instruction.operands[0];
        }
        out.push(command);
    }

    fn get_stats(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

fn free(tensor: Operand) -> ClientCommand {
    ClientCommand::Free(*tensor.tensor().unwrap_or(&TensorId(0)))
}

#[test]
fn instructions_freed_in_the_queue_are_not_planned() {
    let mut program = Program::default();
    let x = program.ones(&[2]);
    let mut batches = vec![std::mem::take(&mut program.commands)];
    // The lane is full: this batch waits.
    program.run(&ops::unary::NEG, &[x], &[]);
    batches.push(std::mem::take(&mut program.commands));
    let unwanted = program.run(&ops::unary::EXP, &[x], &[]);
    let also = program.run(&ops::unary::NEG, &[unwanted], &[]);
    program.commands.extend([free(unwanted), free(also)]);
    batches.push(std::mem::take(&mut program.commands));
    program.fetch(x);
    batches.push(program.commands);
    let limits = Limits { lane_window: 1, ..Limits::default() };
    Golden::with(limits, vec![None]).check("pruned.txt", batches);
}

#[test]
fn a_modifier_changes_what_is_planned() {
    let mut program = Program::default();
    let x = program.ones(&[2]);
    program.run(&ops::binary::MUL, &[x, Operand::Scalar(Scalar::Int(2))], &[]);
    let mut golden = Golden::new(1);
    golden.dispatcher.pipeline().push(Box::new(Doubling));
    golden.check("modifier.txt", [program.commands]);
}

#[test]
fn a_large_tensor_is_sharded_over_all_workers() {
    let mut program = Program::default();
    let small = program.ones(&[2, 2]);
    let large = program.ones(&[2, 8]);
    program.run(&ops::binary::ADD, &[large, large], &[]);
    program.run(&ops::binary::ADD, &[small, small], &[]);
    let mut golden = Golden::new(2);
    golden.dispatcher.planner().shard_automatically(64);
    golden.check("automatic.txt", [program.commands]);
}

#[test]
fn a_replicated_summand_becomes_partial_with_zeros() {
    let mut program = Program::default();
    program.define_signal(2, "copies", Shard::row(None, None));
    program.signal = 2;
    let table = program.ones(&[300, 200]);
    program.shard_rows();
    let values = program.ones(&[4000, 200]);
    let attributes = [Attribute::dims(&[4000]), Attribute::DType(DType::I64)];
    let index = program.run(&ops::create::FULL, &[Operand::Scalar(Scalar::Int(1))], &attributes);
    program.signal = 0;
    program.run(&ops::index::INDEX_ADD, &[table, index, values], &[Attribute::Int(0)]);
    Golden::new(2).check("partial_from_replicated.txt", [program.commands]);
}

#[test]
fn the_oldest_copies_are_freed_when_there_are_too_many() {
    let mut program = Program::default();
    program.shard_rows();
    // A gigabyte each: only shapes matter, nothing is computed.
    let parts: Vec<Operand> = (0..3).map(|_| program.ones(&[1 << 14, 1 << 14])).collect();
    program.define_signal(2, "first", Shard::row(Some(vec![0]), None));
    program.signal = 2;
    for part in &parts {
        program.run(&ops::unary::NEG, &[*part], &[]);
    }
    Golden::new(2).check("extra_copies.txt", [program.commands]);
}
