//! Golden tests: the placement of a client's program and the workers' programs that are planned
//! from it, compared with the files in `streams/`. `GT_WRITE_STREAMS=1` rewrites them.

use crate::common::golden::Golden;
use crate::common::{Program, all_of};
use gt_dispatcher::Limits;
use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::{Attribute, DType, Fabric, Operand, Scalar, Shape, TensorData, TensorId, ops};

/// Compares a program and what `workers` workers get with the golden file of this name.
fn check(name: &str, workers: usize, program: Program) {
    Golden::new(workers).check(name, [program.commands]);
}

#[test]
fn one_worker_gets_the_stream_unchanged() {
    let mut program = Program::default();
    program.define_signal(1, "rows", Shard::row(None, Some(0)));
    program.signal = 1;
    let x = program.ones(&[4, 2]);
    let y = program.run(&ops::binary::ADD, &[x, x], &[]);
    program.fetch(y);
    check("one_worker.txt", 1, program);
}

#[test]
fn a_matmul_of_sharded_rows_replicates_the_other_operand() {
    let mut program = Program::default();
    program.define_signal(1, "rows", Shard::row(None, Some(0)));
    let right = program.ones(&[3, 2]);
    program.signal = 1;
    let left = program.ones(&[5, 3]);
    let product = program.run(&ops::matmul::MATMUL, &[left, right], &[]);
    program.run(&ops::unary::RELU, &[product], &[]);
    check("sharded_by_replicated.txt", 2, program);
}

#[test]
fn a_mean_is_weighted_and_summed_where_it_is_needed() {
    let mut program = Program::default();
    program.define_signal(1, "rows", Shard::row(None, Some(0)));
    program.signal = 1;
    let x = program.ones(&[5, 3]);
    let mean = program.run(&ops::reduce::MEAN, &[x], &all_of(&[]));
    program.run(&ops::unary::EXP, &[mean], &[]);
    check("mean.txt", 2, program);
}

#[test]
fn another_scope_receives_its_input() {
    let mut program = Program::default();
    program.define_signal(1, "first stage", Shard::row(Some(vec![0]), Some(0)));
    program.define_signal(2, "second stage", Shard::row(Some(vec![1, 2]), Some(0)));
    program.signal = 1;
    let x = program.ones(&[4, 2]);
    program.signal = 2;
    let y = program.run(&ops::unary::RELU, &[x], &[]);
    program.fetch(y);
    check("pipeline.txt", 3, program);
}

/// Workers 0 and 1 have a fabric; the third has none, so an exchange with it is sent in pieces.
#[test]
fn engines_with_a_common_fabric_run_collectives() {
    let fabric = |worker| {
        let (kind, store) = ("gloo/2.15".into(), format!("127.0.0.1:{worker}"));
        Some(Fabric { kind, local: true, store, device: String::new() })
    };
    let mut program = Program::default();
    program.define_signal(1, "two", Shard::row(Some(vec![0, 1]), Some(0)));
    program.define_signal(2, "three", Shard::row(Some(vec![0, 1, 2]), Some(0)));
    for signal in [1, 2] {
        program.signal = signal;
        let x = program.ones(&[6, 3]);
        let sum =
            program.run(&ops::reduce::SUM, &[x], &[Attribute::ints(&[0]), Attribute::Bool(false)]);
        program.run(&ops::unary::EXP, &[sum], &[]);
    }
    let fabrics = vec![fabric(0), fabric(1), None];
    Golden::with(Limits::default(), fabrics).check("collectives.txt", [program.commands]);
}

/// Returns the attributes of a slice of rows: its start, its length and its step.
fn rows(start: i64, count: i64, step: i64) -> [Attribute; 3] {
    [[start, 0], [count, 2], [step, 1]].map(|numbers| Attribute::ints(&numbers))
}

#[test]
fn partial_sums_are_combined_where_their_sum_is_needed() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[4, 3]);
    let sum = program.run(&ops::reduce::SUM, &[x], &all_of(&[0]));
    let twice = program.run(&ops::binary::ADD, &[sum, sum], &[]);
    program.run(&ops::unary::EXP, &[twice], &[]);
    check("partial.txt", 2, program);
}

#[test]
fn a_slot_with_an_empty_shard_contributes_the_neutral_element() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[2]);
    let most = program.run(&ops::reduce::AMAX, &[x], &all_of(&[0]));
    program.fetch(most);
    check("empty_shard.txt", 3, program);
}

#[test]
fn rows_are_redistributed_to_columns() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[4, 6]);
    program.define_signal(2, "columns", Shard::row(None, Some(1)));
    program.signal = 2;
    let y = program.ones(&[4, 6]);
    program.run(&ops::binary::ADD, &[y, x], &[]);
    check("to_columns.txt", 2, program);
}

/// On a 2x2 mesh: a product of operands sharded along both axes is computed in place, and summed
/// along one.
#[test]
fn a_mesh_of_two_axes_shards_both_tensor_axes() {
    let axis = |name: &str, axis| MeshAxis { name: name.into(), length: 2, axis: Some(axis) };
    let mesh = |first, second| Shard {
        workers: None,
        mesh: vec![axis("down", first), axis("across", second)],
    };
    let mut program = Program::default();
    program.define_signal(1, "both", mesh(0, 1));
    program.signal = 1;
    let left = program.ones(&[4, 6]);
    program.define_signal(2, "across", mesh(-1, 0));
    program.signal = 2;
    let right = program.ones(&[6, 2]);
    program.signal = 0;
    program.run(&ops::matmul::MATMUL, &[left, right], &[]);
    check("mesh.txt", 4, program);
}

#[test]
fn a_strided_slice_is_computed_in_place() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[12, 2]);
    program.run(&ops::slice::SLICE, &[x], &rows(1, 5, 2));
    check("slice.txt", 2, program);
}

#[test]
fn a_batch_is_sharded_evenly() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[12, 2]);
    let batch = program.run(&ops::slice::SLICE, &[x], &rows(1, 4, 1));
    program.run(&ops::unary::EXP, &[batch], &[]);
    check("batch.txt", 2, program);
}

#[test]
fn a_slice_on_one_slot_is_rebalanced() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[36, 2]);
    program.run(&ops::slice::SLICE, &[x], &rows(0, 6, 2));
    check("balance.txt", 3, program);
}

#[test]
fn a_composite_along_a_sharded_axis_is_expanded() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[4, 3]);
    let along = |axis| [Attribute::Int(axis)];
    // Along the other axis each slot holds all that it needs.
    program.run(&ops::nn::SOFTMAX, &[x], &along(1));
    program.run(&ops::nn::SOFTMAX, &[x], &along(0));
    check("softmax.txt", 2, program);
}

#[test]
fn an_update_keeps_the_layout_of_its_parameter() {
    let mut program = Program::default();
    let gradient = program.ones(&[4, 2]);
    program.shard_rows();
    let parameter = program.ones(&[4, 2]);
    program.signal = 0;
    program.run(&ops::binary::SUB, &[parameter, gradient], &[]);
    check("update.txt", 2, program);
}

#[test]
fn data_is_split_by_the_dispatcher_if_contiguous() {
    let numbers = |program: &mut Program, length: usize| {
        let data = TensorData::new(
            DType::U8,
            Shape::new(&[length, 2]).unwrap(),
            vec![7; 2 * length].into(),
        );
        program.data(data.unwrap())
    };
    let mut program = Program::default();
    program.shard_rows();
    numbers(&mut program, 5);
    program.define_signal(2, "columns", Shard::row(None, Some(1)));
    program.signal = 2;
    // Data whose parts are not contiguous is sent unsplit to one worker, which forwards them.
    numbers(&mut program, 4);
    check("data.txt", 2, program);
}

/// `x[i:i + 4]` with another `i` in each iteration: the workers' template contains the slice once,
/// and each invocation only its start.
#[test]
fn a_varying_slice_is_planned_once() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[12, 2]);
    let mut repeated = program.define(0, &[], |program| {
        let slice = program.step(&ops::slice::SLICE, &[x], &rows(0, 4, 1));
        let of = Operand::Tensor(slice.output);
        vec![slice, program.step(&ops::unary::EXP, &[of], &[])]
    });
    for start in [0, 4, 5] {
        // The first number of each of the three attributes: start, size and step.
        program.invoke(&mut repeated, &[(0, Scalar::Int(start))]);
    }
    check("varying_slice.txt", 2, program);
}

/// An iteration that redistributes data is planned once, then invoked.
#[test]
fn an_iteration_is_planned_once() {
    let mut program = Program::default();
    let weights = program.ones(&[3, 2]);
    program.shard_rows();
    let x = program.ones(&[4, 3]);
    let mut repeated = program.define(0, &[], |program| {
        let product = program.step(&ops::matmul::MATMUL, &[x, weights], &[]);
        let of = Operand::Tensor(product.output);
        let sum = program.step(&ops::reduce::SUM, &[of], &all_of(&[0]));
        let of = Operand::Tensor(sum.output);
        vec![product, sum, program.step(&ops::unary::EXP, &[of], &[])]
    });
    for _ in 0..3 {
        program.invoke(&mut repeated, &[]);
    }
    check("repeated.txt", 2, program);
}

/// A step of Adam is planned by its steps, so that the parameter stays replicated; its numbers are
/// bound in these steps.
#[test]
fn numbers_of_a_composite_are_bound_in_its_steps() {
    let mut program = Program::default();
    program.shard_rows();
    let [mean, square] = [2, 2].map(|length| program.ones(&[length]));
    program.define_signal(2, "whole", Shard::row(None, None));
    program.signal = 2;
    let x = program.ones(&[2]);
    program.signal = 0;
    let number = |value| Operand::Scalar(Scalar::Float(value));
    let mut repeated = program.define(0, &[], |program| {
        let operands = [x, mean, square, number(1.0), number(0.5), number(2.0)];
        vec![program.step(&ops::optim::ADAM_STEP, &operands, &[Attribute::Float(1e-8)])]
    });
    for rate in [0.5, 0.25, 0.125] {
        program.invoke(&mut repeated, &[(1, Scalar::Float(rate))]);
    }
    check("numbers_of_a_composite.txt", 2, program);
}

/// A plan also depends on which of its tensors are the same.
#[test]
fn a_plan_depends_on_which_tensors_are_the_same() {
    let mut program = Program::default();
    let [a, b, c] = [4, 4, 4].map(|length| program.ones(&[length]));
    let mut repeated = program.define(0, &[], |program| {
        let sum = program.step(&ops::binary::ADD, &[a, b], &[]);
        let of = Operand::Tensor(sum.output);
        vec![sum, program.step(&ops::binary::MUL, &[of, c], &[])]
    });
    // First the second tensor is bound to two of the names, then the first.
    for on in [[0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 1, 0], [1, 0, 0]] {
        repeated.inputs = on.map(TensorId).to_vec();
        program.invoke(&mut repeated, &[]);
    }
    check("aliased_tensors.txt", 1, program);
}

/// Another plan combines the partial sums that this one has read so far, and frees them.
#[test]
fn a_plan_notices_copies_that_another_plan_made() {
    let mut program = Program::default();
    program.shard_rows();
    let x = program.ones(&[4, 3]);
    let sum = program.run(&ops::reduce::SUM, &[x], &all_of(&[0]));
    let mut twice =
        program.define(0, &[], |program| vec![program.step(&ops::binary::ADD, &[sum, sum], &[])]);
    let mut exp =
        program.define(1, &[], |program| vec![program.step(&ops::unary::EXP, &[sum], &[])]);
    (0..3).for_each(|_| program.invoke(&mut twice, &[]));
    program.invoke(&mut exp, &[]);
    let other = program.run(&ops::reduce::SUM, &[x], &all_of(&[0]));
    let Operand::Tensor(other) = other else { unreachable!("a sum is a tensor") };
    (twice.inputs, exp.inputs) = (vec![other], vec![other]);
    (0..3).for_each(|_| program.invoke(&mut twice, &[]));
    program.invoke(&mut exp, &[]);
    program.invoke(&mut twice, &[]);
    check("two_plans.txt", 2, program);
}

/// Returns a step that changes two tensors, which two signals place.
fn step(rows: Shard, other: Shard) -> Program {
    let mut program = Program::default();
    program.define_signal(1, "rows", rows);
    program.define_signal(2, "other", other);
    let olds = [1, 2].map(|signal| {
        program.signal = signal;
        program.ones(&[4])
    });
    program.signal = 0;
    let news = olds.map(|old| program.run(&ops::unary::EXP, &[old], &[]));
    let pairs = [news[0], olds[0], news[1], olds[1]];
    let attributes = ops::commit::attributes(0, false);
    program.run(&ops::commit::COMMIT, &pairs, &attributes);
    program
}

#[test]
fn a_step_on_one_slot_commits_there() {
    let home = || Shard::row(Some(vec![0]), None);
    check("step.txt", 2, step(home(), home()));
}

#[test]
fn slots_with_a_replicated_step_commit_independently() {
    let all = || Shard::row(None, None);
    check("step_replicated.txt", 2, step(all(), all()));
}

#[test]
fn slots_with_a_sharded_step_exchange_a_flag_before_they_commit() {
    check("step_sharded.txt", 2, step(Shard::row(None, Some(0)), Shard::row(None, None)));
}
