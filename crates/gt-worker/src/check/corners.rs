//! How a function carries on what its operands may be apart, found by evaluating it around them.

use gt_ir::instruction::Attribute;
use gt_ir::operation::{ErrorBound, Graph, Var};
use gt_ir::ops::{binary, random, reduce, ternary};
use gt_ir::{DType, Operand, Scalar};
use smallvec::smallvec;

use super::operands::Use;
use super::terms::{
    Value, computing, constant, distance, held, magnitude, spread, tiny, unit, unknown, wide,
};

/// The largest distance of the result from what the operation gives, in float64, for operands at
/// the ends of their bounds: all ends together for what grows with all of its operands, otherwise
/// each with each. That is sound for what is monotone in each operand there.
pub fn corners(g: &mut dyn Graph, of: &Use, index: u32, together: bool) -> Var {
    let mut choices: Vec<Vec<Value>> = Vec::new();
    for operand in 0..of.operands.len() {
        choices.push(ends(g, of, operand));
    }
    let result = of.result.result(index);
    let Operand::Tensor(expected) = wide(g, result.into()) else { unreachable!("a tensor") };
    let dtype = of.dtype(g, result);
    let doubtful: Vec<usize> = (0..choices.len()).filter(|&at| choices[at].len() > 1).collect();
    let count = if together { 2 } else { 1 << doubtful.len() };
    let mut largest: Option<Var> = None;
    for corner in 0..count {
        let operands: Vec<Value> = (choices.iter().enumerate())
            .map(|(at, ends)| match doubtful.iter().position(|&of| of == at) {
                Some(bit) => ends[(corner >> if together { 0 } else { bit }) & 1],
                None => ends[0],
            })
            .collect();
        let computed = g.emit(of.operation, &operands, of.attributes.clone()).result(index);
        let Operand::Tensor(computed) = wide(g, computed.into()) else { unreachable!("a tensor") };
        let computed = held(g, computed, dtype);
        let apart = distance(g, computed, expected);
        largest = Some(largest.map_or(apart, |largest| g.maximum(largest, apart)));
    }
    let largest = largest.expect("there is a corner");
    poles(g, of, largest)
}

/// An operand in float64, or what it may be at both ends of its bound.
fn ends(g: &mut dyn Graph, of: &Use, operand: usize) -> Vec<Value> {
    let value = of.value(operand);
    let Some(bound) = of.bound(g, operand) else {
        // A number keeps its kind, and what is no float its dtype, unless others are float64.
        return vec![match value {
            Operand::Tensor(var) if !g.meta(var).dtype.is_exact() => wide(g, value),
            other => other,
        }];
    };
    if let (Operand::Scalar(value), Operand::Scalar(bound)) = (value, bound) {
        let (value, bound) = (value.as_f64(), bound.as_f64());
        return [value + bound, value - bound].map(|x| Operand::Scalar(Scalar::Float(x))).into();
    }
    let is_bool = value.tensor().is_some_and(|&var| g.meta(var).dtype == DType::Bool);
    let value = wide(g, value);
    [&binary::ADD, &binary::SUB]
        .map(|way| {
            let end = g.emit(way, &[value, bound], smallvec![]);
            if !is_bool {
                return Operand::Tensor(end);
            }
            let limits = [0.0, 1.0].map(|limit| Operand::Scalar(Scalar::Float(limit)));
            let end = g.emit(&ternary::CLAMP, &[end.into(), limits[0], limits[1]], smallvec![]);
            Operand::Tensor(g.cast(end, DType::Bool))
        })
        .into()
}

/// A quotient is unknown where the divisor may be zero.
fn poles(g: &mut dyn Graph, of: &Use, bound: Var) -> Var {
    if !matches!(of.operation.facts.bound, ErrorBound::Quotient { .. }) {
        return bound;
    }
    let Some(doubt) = of.bound(g, 1) else { return bound };
    let length = magnitude(g, of.value(1));
    let apart = g.gt(length, doubt);
    g.select(apart, bound, f64::INFINITY)
}

/// eq, ne, and casts to bool: either is right where both sides are as near as their bounds.
pub fn nearly_equal(g: &mut dyn Graph, of: &Use, result: Var) -> Option<Var> {
    let zero = Operand::Scalar(Scalar::Float(0.0));
    let (a, b, second) = match of.operands.len() {
        1 => (wide(g, of.value(0)), zero, None),
        _ => (wide(g, of.value(0)), wide(g, of.value(1)), of.bound(g, 1)),
    };
    let apart = g.sub(a, b);
    let apart = g.abs(apart);
    let bounds = [of.bound(g, 0), second];
    let bound = bounds.into_iter().flatten().reduce(|a, b| g.add(a, b).into())?;
    let near = g.le(apart, bound);
    // An unknown side leaves the answer open, whatever the other is.
    let open = g.eq(bound, f64::INFINITY);
    let near = g.logical_or(near, open);
    let near = spread(g, near.into(), result);
    Some(g.cast(near, DType::F64))
}

/// Operations on bits: unknown where an operand is not certain.
pub fn uncertain(g: &mut dyn Graph, of: &Use, result: Var) -> Option<Var> {
    let bounds: Vec<Value> = (0..of.operands.len()).filter_map(|at| of.bound(g, at)).collect();
    let sum = bounds.into_iter().reduce(|a, b| g.add(a, b).into())?;
    let doubted = g.gt(sum, 0.0);
    let doubted = spread(g, doubted.into(), result);
    let shape = g.shape(result);
    let certain = constant(g, shape, 0.0);
    Some(g.select(doubted, f64::INFINITY, certain))
}

/// The operand of an estimate is moved by this many units of its largest element, as a backward
/// stable algorithm may be taken to have done.
const BACKWARD: f64 = 64.0;
/// How much larger the estimate is than the distances that were seen.
const MARGIN: f64 = 8.0;

/// An estimate for what has no rule of its own, as factorizations: the operation is computed in
/// float64 for two operands that differ from these by random signs times what they may be apart,
/// and the largest distance of any element counts for all.
pub fn perturbed(
    g: &mut dyn Graph,
    of: &Use,
    index: u32,
    result: Var,
    dtype: DType,
) -> Option<Var> {
    let own = unit(dtype);
    if of.is_exact(g) && own == 0.0 {
        return None;
    }
    let computed = unit(computing(dtype));
    let Operand::Tensor(expected) = wide(g, result.into()) else { unreachable!("a tensor") };
    let lost = [BACKWARD * computed, 4.0 * own + of.loses.of_factors(computing(dtype))];
    let mut seen: Option<Var> = None;
    for sign in [1.0, -1.0] {
        let mut operands: Vec<Value> = Vec::new();
        for operand in 0..of.operands.len() {
            operands.push(shaken(g, of, operand, sign, lost));
        }
        let made = g.emit(of.operation, &operands, of.attributes.clone()).result(index);
        let Operand::Tensor(made) = wide(g, made.into()) else { unreachable!("a tensor") };
        let apart = distance(g, made, expected);
        seen = Some(seen.map_or(apart, |seen| g.maximum(seen, apart)));
    }
    let seen = seen?;
    if g.shape(result).numel() == 0 {
        return None;
    }
    let most = g.amax(seen, &[], false);
    let most = g.mul(most, if dtype.is_exact() { 1.0 } else { MARGIN });
    let most = g.add(most, tiny(dtype));
    if g.meta(result).dtype.is_exact() {
        let none = g.le(most, tiny(dtype));
        let doubt = g.select(none, 0.0, f64::INFINITY);
        return Some(spread(g, doubt.into(), result));
    }
    Some(spread(g, most.into(), result))
}

/// An operand moved by random signs times what it may be apart, and `lost` of its largest element
/// and of each element.
fn shaken(g: &mut dyn Graph, of: &Use, operand: usize, sign: f64, lost: [f64; 2]) -> Value {
    let value = of.value(operand);
    let Operand::Tensor(var) = value else { return value };
    let shape = g.shape(var);
    if g.meta(var).dtype.is_exact() {
        return if of.bound(g, operand).is_some() { unknown(g, var).into() } else { value };
    }
    if shape.numel() == 0 {
        return wide(g, value);
    }
    let Operand::Tensor(length) = magnitude(g, value) else { unreachable!("a tensor") };
    let most = g.emit(
        &reduce::AMAX,
        &[length.into()],
        smallvec![Attribute::ints::<i64>(&[]), Attribute::Bool(false)],
    );
    let (most, each) = (g.mul(most, lost[0]), g.mul(length, lost[1]));
    let mut reach = g.add(most, each);
    if let Some(bound) = of.bound(g, operand) {
        reach = g.add(reach, bound);
    }
    let seed = [7, operand as i64].map(|number| Operand::Scalar(Scalar::Int(number)));
    let attributes = smallvec![
        Attribute::dims(&shape),
        Attribute::DType(DType::F64),
        Attribute::ints::<i64>(&[]),
    ];
    let random = g.emit(&random::RAND, &seed, attributes);
    let up = g.lt(random, 0.5);
    let signs = g.select(up, sign, -sign);
    let move_by = g.mul(reach, signs);
    let value = wide(g, value);
    Operand::Tensor(g.add(value, move_by))
}
