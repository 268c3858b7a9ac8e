//! Loops with data-dependent shapes.

use gt_ir::ops::{data_dependent, reduce};
use gt_ir::{Attribute, DType, Meta, Shape};
use smallvec::smallvec;

use crate::hotpath::issuer::{Issuer, number, tensor};

/// Issues a round of a loop: steps, a mask's count, steps on the masked rows, their sum, and steps.
fn round(issuer: &mut Issuer, x: u64, count: usize) {
    let mut alive = vec![x];
    let mut before = x;
    for line in 0..12 {
        before = issuer.add(line, before, number(1.0));
        alive.push(before);
    }
    let scalar = Meta::new(DType::F32, Shape::SCALAR);
    let all = || smallvec![Attribute::ints::<i64>(&[]), Attribute::Bool(false)];
    let counted = issuer.run(20, &reduce::SUM, &[tensor(before)], all(), scalar);
    issuer.fetch(counted);
    let rows = Meta::new(DType::F32, Shape::new(&[count]).unwrap());
    let attributes = smallvec![Attribute::Int(count as i64)];
    let operands = [tensor(x), tensor(before)];
    let picked = issuer.run(21, &data_dependent::MASKED_ROWS, &operands, attributes, rows);
    let more = issuer.add(22, picked, number(2.0));
    let sum = issuer.run(23, &reduce::SUM, &[tensor(more)], all(), scalar);
    alive.extend([counted, picked, more, sum]);
    let mut after = sum;
    for line in 30..42 {
        after = issuer.add(line, after, number(1.0));
        alive.push(after);
    }
    alive[1..].iter().for_each(|&id| issuer.free(id));
}

#[test]
fn commands_around_a_varying_shape_are_hot() {
    let mut issuer = Issuer::new();
    let x = issuer.create(8);
    for count in 0..20 {
        round(&mut issuer, x, count % 7 + 1);
    }
    // Hot in a round: all but the three whose own or whose operands' shapes depend on the count.
    let stats = issuer.detector.get_stats();
    assert!(stats.hot_instructions >= 14 * 25, "{stats:?}");
    issuer.finish();
}

#[test]
fn a_loop_with_a_constant_count_is_hot_as_a_whole() {
    let mut issuer = Issuer::new();
    let x = issuer.create(8);
    for _ in 0..20 {
        round(&mut issuer, x, 4);
    }
    let stats = issuer.detector.get_stats();
    assert!(stats.hot_instructions >= 12 * 28, "{stats:?}");
    issuer.finish();
}

#[test]
fn counts_may_change_and_sections_may_end_early() {
    let mut issuer = Issuer::new();
    let x = issuer.create(8);
    for number in 0..60 {
        round(&mut issuer, x, [3, 3, 3, 5, 3, 1][number % 6]);
        if number % 11 == 10 {
            let y = issuer.add(99, x, crate::hotpath::issuer::number(1.0));
            issuer.free(y);
        }
    }
    assert!(issuer.detector.get_stats().hot_instructions > 20 * 25);
    issuer.finish();
}
