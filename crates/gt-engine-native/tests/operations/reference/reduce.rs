//! Reductions, scans and softmax.

use gt_ir::Attributes;
use gt_ir::operation::{float, int, ints};
use gt_ir::shape::{axes, axis};

use super::{Array, Function, positions};

/// Returns the result of a reduction.
pub fn reduced(name: &str, x: &[Array], attributes: &Attributes) -> Option<Vec<f64>> {
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let variance = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        squares / (values.len() as f64 - float(attributes, 2))
    };
    let truth = |x: bool| f64::from(u8::from(x));
    let f: Function = match name {
        "sum" => Box::new(sum),
        "mean" => Box::new(mean),
        "prod" => Box::new(|values| values.iter().product()),
        "amax" => Box::new(|values| values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "amin" => Box::new(|values| values.iter().copied().fold(f64::INFINITY, f64::min)),
        "argmax" => Box::new(|values| best(values, |a, b| a > b)),
        "argmin" => Box::new(|values| best(values, |a, b| a < b)),
        "var" => Box::new(variance),
        "std" => Box::new(move |values| variance(values).sqrt()),
        "any" => Box::new(move |values| truth(values.iter().any(|&x| x != 0.0))),
        "all" => Box::new(move |values| truth(values.iter().all(|&x| x != 0.0))),
        "logsumexp" => Box::new(|values| values.iter().map(|x| x.exp()).sum::<f64>().ln()),
        "cumsum" | "softmax" | "log_softmax" => return Some(scanned(name, &x[0], attributes)),
        _ => return None,
    };
    let gone = axes(ints(attributes, 0), x[0].shape.rank(), "reference").unwrap();
    Some(groups(&x[0], &gone).iter().map(|values| f(values)).collect())
}

/// Returns the result of an operation that computes each element from all elements along an axis.
fn scanned(name: &str, x: &Array, attributes: &Attributes) -> Vec<f64> {
    if x.shape.rank() == 0 {
        return x.values.clone();
    }
    let along = axis(int(attributes, 0), x.shape.rank(), "reference").unwrap();
    let (length, stride) = (x.shape[along], x.shape.strides()[along]);
    let mut out = vec![0.0; x.values.len()];
    for (index, position) in positions(&x.shape).iter().enumerate() {
        let start = index - position[along] * stride;
        let line = |i: usize| x.values[start + i * stride];
        let largest = (0..length).map(line).fold(f64::NEG_INFINITY, f64::max);
        let total = || (0..length).map(|i| (line(i) - largest).exp()).sum::<f64>();
        out[index] = match name {
            "cumsum" if position[along] == 0 => x.values[index],
            "cumsum" => out[index - stride] + x.values[index],
            "softmax" => (x.values[index] - largest).exp() / total(),
            _ => x.values[index] - largest - total().ln(),
        };
    }
    out
}

/// Returns the elements that are reduced to each result, in row-major order of the results.
fn groups(x: &Array, gone: &[usize]) -> Vec<Vec<f64>> {
    let kept = gone.iter().fold(x.shape, |shape, &axis| shape.with(axis, 1));
    let mut groups = vec![Vec::new(); kept.numel()];
    for (position, value) in positions(&x.shape).iter().zip(&x.values) {
        let mut index = 0;
        for axis in 0..x.shape.rank() {
            index = index * kept[axis] + if gone.contains(&axis) { 0 } else { position[axis] };
        }
        groups[index].push(*value);
    }
    groups
}

/// Returns the index of the first element that no other is better than.
fn best(values: &[f64], better: fn(f64, f64) -> bool) -> f64 {
    let mut best = 0;
    for (index, &value) in values.iter().enumerate() {
        if better(value, values[best]) {
            best = index;
        }
    }
    best as f64
}
