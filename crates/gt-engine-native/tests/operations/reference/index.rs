//! Operations that find elements by an operand of indices.

use gt_ir::operation::int;
use gt_ir::shape::axis;
use gt_ir::{Attributes, Meta};

use super::{Array, positions};

/// What operations give that take a tensor of indices.
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
