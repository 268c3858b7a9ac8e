//! Operations with a tensor of indices or a mask.

use gt_ir::operation::int;
use gt_ir::shape::axis;
use gt_ir::{Attributes, Meta};

use super::{Array, positions};

/// Returns the result of an operation with a tensor of indices.
pub fn indexed(name: &str, x: &[Array], attributes: &Attributes, output: Meta) -> Option<Vec<f64>> {
    const KNOWN: [&str; 6] =
        ["gather", "scatter_add", "index_select", "index_add", "index_copy", "wrap_index"];
    if !KNOWN.contains(&name) {
        return None;
    }
    let rank = x[0].shape.rank();
    let along =
        if name == "wrap_index" { 0 } else { axis(int(attributes, 0), rank, "reference").unwrap() };
    let strides = output.shape.strides();
    let offset = |position: &[usize]| -> usize {
        position.iter().zip(strides).map(|(at, stride)| at * stride).sum()
    };
    let replaced = |position: &[usize], at: f64| {
        let mut position = position.to_vec();
        position[along] = at as usize;
        position
    };
    let mut out = x[0].values.clone();
    Some(match name {
        "gather" => positions(&output.shape)
            .iter()
            .map(|position| x[0].at(&replaced(position, x[1].at(position))))
            .collect(),
        "scatter_add" => {
            for position in positions(&x[1].shape) {
                out[offset(&replaced(&position, x[1].at(&position)))] += x[2].at(&position);
            }
            out
        }
        "index_select" => positions(&output.shape)
            .iter()
            .map(|position| x[0].at(&replaced(position, x[1].values[position[along]])))
            .collect(),
        "index_add" | "index_copy" => {
            for position in positions(&x[2].shape) {
                let to = offset(&replaced(&position, x[1].values[position[along]]));
                let value = x[2].at(&position);
                out[to] = if name == "index_add" { out[to] + value } else { value };
            }
            out
        }
        "wrap_index" => {
            let length = int(attributes, 0) as f64;
            out.iter().map(|&at| if at < 0.0 { at + length } else { at }).collect()
        }
        _ => return None,
    })
}

/// Returns the result of an operation with a mask over leading axes.
pub fn masked(name: &str, x: &[Array]) -> Option<Vec<f64>> {
    let mask = if name == "nonzero" { &x[0] } else { x.get(1)? };
    let chosen: Vec<usize> =
        (0..mask.values.len()).filter(|&place| mask.values[place] != 0.0).collect();
    let row = x[0].values.len() / mask.values.len().max(1);
    let rows = |of: &Array, place: usize| of.values[place * row..][..row].to_vec();
    Some(match name {
        "nonzero" => {
            let all = positions(&mask.shape);
            chosen.iter().flat_map(|&place| all[place].iter().map(|&at| at as f64)).collect()
        }
        "masked_rows" => chosen.iter().flat_map(|&place| rows(&x[0], place)).collect(),
        "masked_rows_scatter" => {
            let mut out = x[0].values.clone();
            for (number, place) in chosen.iter().enumerate() {
                out[place * row..][..row].copy_from_slice(&rows(&x[2], number));
            }
            out
        }
        _ => return None,
    })
}
