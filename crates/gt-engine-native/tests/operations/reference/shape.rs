//! Operations that move elements, and matrix products.

use gt_ir::operation::{int, ints};
use gt_ir::shape::{axes, axis};
use gt_ir::{Attributes, Meta};

use super::{Array, positions};

/// Returns the result of an operation whose elements are found by position.
pub fn moved(name: &str, x: &[Array], attributes: &Attributes, output: Meta) -> Option<Vec<f64>> {
    let positions = positions(&output.shape);
    let rank = output.shape.rank();
    let inside = |position: &[usize]| -> Option<Vec<usize>> {
        let (starts, sizes, steps) =
            (ints(attributes, 0), ints(attributes, 1), ints(attributes, 2));
        (0..position.len())
            .map(|axis| {
                let from_start = position[axis].checked_sub(starts[axis] as usize)?;
                let step = steps[axis] as usize;
                let within = from_start % step == 0 && from_start / step < sizes[axis] as usize;
                within.then_some(from_start / step)
            })
            .collect()
    };
    let at = |from: &dyn Fn(&[usize]) -> f64| positions.iter().map(|p| from(p)).collect::<Vec<_>>();
    Some(match name {
        "reshape" => x[0].values.clone(),
        "permute" => at(&|position| {
            let mut from = vec![0; rank];
            for (to, &axis_from) in ints(attributes, 0).iter().enumerate() {
                from[axis(axis_from, rank, "reference").unwrap()] = position[to];
            }
            x[0].at(&from)
        }),
        "expand" => at(&|position| x[0].at(position)),
        "flip" => at(&|position| {
            let mut from = position.to_vec();
            for along in axes(ints(attributes, 0), rank, "reference").unwrap() {
                from[along] = output.shape[along] - 1 - from[along];
            }
            x[0].at(&from)
        }),
        "slice" => at(&|position| {
            let from: Vec<usize> = (0..rank)
                .map(|a| {
                    ints(attributes, 0)[a] as usize + position[a] * ints(attributes, 2)[a] as usize
                })
                .collect();
            x[0].at(&from)
        }),
        "slice_assign" => at(&|position| match inside(position) {
            Some(within) => x[1].at(&within),
            None => x[0].at(position),
        }),
        "cat" => at(&|position| {
            let along = axis(int(attributes, 0), rank, "reference").unwrap();
            let mut from = position.to_vec();
            let mut part = 0;
            while from[along] >= x[part].shape[along] {
                from[along] -= x[part].shape[along];
                part += 1;
            }
            x[part].at(&from)
        }),
        "tril" | "triu" => at(&|position| {
            let distance =
                position[rank - 1] as i64 - position[rank - 2] as i64 - int(attributes, 0);
            let kept = if name == "tril" { distance <= 0 } else { distance >= 0 };
            if kept { x[0].at(position) } else { 0.0 }
        }),
        "matmul" => at(&|position| {
            let depth = x[0].shape[x[0].shape.rank() - 1];
            let (batch, cell) = position.split_at(rank - 2);
            // An operand with fewer axes has none of the leading batch axes.
            let of = |x: &Array, row: usize, column: usize| {
                let extra = rank - x.shape.rank();
                x.at(&[&batch[extra..], &[row, column]].concat())
            };
            (0..depth).map(|k| of(&x[0], cell[0], k) * of(&x[1], k, cell[1])).sum()
        }),
        _ => return None,
    })
}
