//! Propagation of operands' bounds: moved, added, multiplied, selected.

use gt_ir::instruction::Attribute;
use gt_ir::operation::{Graph, TermCount, Var, int, ints};
use gt_ir::ops::reduce;
use gt_ir::shape::axis;
use gt_ir::{Attributes, DType, Operand, Operation, Scalar};
use smallvec::smallvec;

use super::corners::{corners, nearly_equal};
use super::operands::Use;
use super::terms::{
    Value, constant, distance, largest, magnitude, plus, rounding, spread, times, tiny, unit,
    unknown, wide,
};

/// Higham's bound for a sum of `n` terms, each of which is rounded: `n u`, for two evaluations.
/// From 1024 terms on, rounding errors are assumed independent: the bound grows with the root of n.
pub fn gamma(terms: f64, unit: f64) -> f64 {
    2.0 * terms.min(32.0 * terms.sqrt()) * unit
}

/// How many numbers are added or multiplied for each element of the result.
pub fn terms_of(g: &dyn Graph, of: &Use, result: Var, count: TermCount) -> f64 {
    let shape = |index: usize| of.value(index).tensor().map(|&var| g.meta(var).shape);
    let along = |index: usize, at: i64| {
        shape(index).map_or(1, |shape| match axis(at, shape.rank(), of.operation.name) {
            Ok(at) if shape.rank() > 0 => shape[at],
            _ => 1,
        })
    };
    let terms = match count {
        TermCount::LastAxis => along(0, -1),
        TermCount::AlongAxis => along(0, int(of.attributes, 0)),
        TermCount::Reduced => {
            shape(0).map_or(1, |shape| shape.numel()) / g.meta(result).shape.numel().max(1)
        }
        TermCount::Filter => shape(1).map_or(1, |shape| shape[1..].iter().product()),
        TermCount::Indices => shape(1).map_or(1, |shape| shape.numel()),
        TermCount::ScatteredAlongAxis => along(2, int(of.attributes, 0)),
    };
    terms.max(1) as f64
}

/// A bound and what rounding the result loses; none for an exact result of exact operands.
pub fn joined(
    g: &mut dyn Graph,
    bound: Option<Var>,
    relative: f64,
    result: Var,
    dtype: DType,
) -> Option<Var> {
    if relative == 0.0 {
        return bound;
    }
    let lost = rounding(g, result, relative, tiny(dtype));
    Some(bound.map_or(lost, |bound| g.add(bound, lost)))
}

/// Operations that move values: their bounds move along.
pub fn moved(g: &mut dyn Graph, of: &Use, data: &[usize]) -> Option<Var> {
    if of.is_exact(g) {
        return None;
    }
    let mut operands: Vec<Value> = Vec::new();
    for index in 0..of.operands.len() {
        let bound = of.bound(g, index);
        operands.push(match (data.contains(&index), bound) {
            (true, Some(bound)) => bound,
            (true, None) => match of.value(index) {
                Operand::Tensor(var) => {
                    let shape = g.shape(var);
                    Operand::Tensor(constant(g, shape, 0.0))
                }
                Operand::Scalar(_) => Operand::Scalar(Scalar::Float(0.0)),
            },
            (false, None) => of.value(index),
            (false, Some(_)) => return Some(unknown(g, of.result)),
        });
    }
    Some(g.emit(of.operation, &operands, of.attributes.clone()))
}

/// `where`: both may be chosen where the condition is not certain.
pub fn chosen(g: &mut dyn Graph, of: &Use) -> Option<Var> {
    if of.is_exact(g) {
        return None;
    }
    let [a, b] =
        [1, 2].map(|index| of.bound(g, index).unwrap_or(Operand::Scalar(Scalar::Float(0.0))));
    let own = g.select(of.value(0), a, b);
    let own = spread(g, own.into(), of.result);
    let Some(doubt) = of.bound(g, 0) else { return Some(g.cast(own, DType::F64)) };
    let [x, y] = [1, 2].map(|index| wide(g, of.value(index)));
    let (x, y) = (spread(g, x, of.result), spread(g, y, of.result));
    let apart = distance(g, x, y);
    let both = plus(g, a, b);
    let apart = g.add(apart, both);
    let doubted = g.gt(doubt, 0.0);
    Some(g.select(doubted, apart, own))
}

/// Complex numbers of pairs of real ones.
pub fn paired(g: &mut dyn Graph, of: &Use) -> Option<Var> {
    let bound = *of.bound(g, 0)?.tensor()?;
    let rank = g.shape(bound).rank();
    Some(g.sum(bound, &[rank as i64 - 1], false))
}

/// The pairs of real numbers that complex ones consist of.
pub fn pairs(g: &mut dyn Graph, of: &Use, result: Var) -> Option<Var> {
    let bound = *of.bound(g, 0)?.tensor()?;
    let mut shape: Vec<usize> = g.shape(bound).to_vec();
    shape.push(1);
    let column =
        g.emit(&gt_ir::ops::shape::RESHAPE, &[bound.into()], smallvec![Attribute::dims(&shape)]);
    Some(spread(g, column.into(), result))
}

pub fn cast(g: &mut dyn Graph, of: &Use, result: Var, dtype: DType, own: f64) -> Option<Var> {
    let from = g.meta(*of.value(0).tensor()?).dtype;
    if dtype.is_exact() {
        of.bound(g, 0)?;
        return if dtype == DType::Bool {
            nearly_equal(g, of, result)
        } else {
            Some(corners(g, of, 0, false))
        };
    }
    let bound = of.bound(g, 0).and_then(|bound| bound.tensor().copied());
    let narrows = (from.is_exact() && from != DType::Bool) || unit(from) < own;
    joined(g, bound, if narrows { 2.0 * own } else { 0.0 }, result, dtype)
}

/// Products of two operands, with `relative` lost for each product of two numbers:
/// `|a b - a' b'| <= da (|b| + db) + |a| db`.
pub fn product(
    g: &mut dyn Graph,
    of: &Use,
    first: usize,
    second: usize,
    operation: &'static Operation,
    relative: f64,
) -> Option<Var> {
    let attributes =
        if operation.id == of.operation.id { of.attributes.clone() } else { smallvec![] };
    let exact = g.meta(of.result).dtype.is_exact();
    let lost = if exact { 0.0 } else { relative };
    let (da, db) = (of.grown(g, first, lost), of.bound(g, second));
    let (a, b) = (of.magnitude(g, first), of.magnitude(g, second));
    let left = da.map(|da| {
        let b = db.map_or(b, |db| plus(g, b, db));
        times_each(g, operation, da, b, &attributes)
    });
    let right = db.map(|db| times_each(g, operation, a, db, &attributes));
    let sum = left.into_iter().chain(right).reduce(|a, b| plus(g, a, b))?;
    Some(match sum {
        Operand::Tensor(sum) => sum,
        Operand::Scalar(_) => spread(g, sum, of.result),
    })
}

pub fn times_each(
    g: &mut dyn Graph,
    operation: &'static Operation,
    a: Value,
    b: Value,
    attributes: &Attributes,
) -> Value {
    match (a, b) {
        (Operand::Scalar(a), Operand::Scalar(b)) => {
            Operand::Scalar(Scalar::Float(a.as_f64() * b.as_f64()))
        }
        _ => Operand::Tensor(g.emit(operation, &[a, b], attributes.clone())),
    }
}

/// `prod(|x| + d) - prod(|x|)`, which is no less than any difference of two products.
pub fn grown_product(
    g: &mut dyn Graph,
    of: &Use,
    result: Var,
    dtype: DType,
    relative: f64,
    factors: f64,
) -> Option<Var> {
    let length = of.magnitude(g, 0);
    let grown = of.grown(g, 0, relative)?;
    let grown = plus(g, length, grown);
    let [whole, grown] = [length, grown].map(|x| g.emit(of.operation, &[x], of.attributes.clone()));
    let apart = g.sub(grown, whole);
    let lost = rounding(g, result, factors * unit(DType::F64), tiny(dtype));
    let overflows = g.gt(grown, largest(dtype));
    let apart = g.select(overflows, f64::INFINITY, apart);
    Some(g.add(apart, lost))
}

/// `a - n b` with a whole n: what b may be apart counts n times, and where the result is near one
/// of its ends it may be at the other.
pub fn remainder(g: &mut dyn Graph, of: &Use, result: Var, own: f64) -> Option<Var> {
    let is_exact = of.is_exact(g);
    if is_exact && own == 0.0 {
        return None;
    }
    let [a, b] = [0, 1].map(|index| of.magnitude(g, index));
    let lost = times(g, b, 2.0 * own);
    let mut apart = spread(g, lost, result);
    if let Some(doubt) = of.bound(g, 0) {
        apart = g.add(apart, doubt);
    }
    if let Some(doubt) = of.bound(g, 1) {
        let whole = g.div(a, b);
        let whole = g.add(whole, 1.0);
        let grown = g.mul(whole, doubt);
        apart = g.add(apart, grown);
    }
    if is_exact {
        return Some(apart);
    }
    let length = magnitude(g, result.into());
    let (from_end, reach) = (g.sub(b, length), g.mul(apart, 2.0));
    let (low, high) = (g.le(length, reach), g.le(from_end, reach));
    let near = g.logical_or(low, high);
    let whole = g.add(apart, b);
    Some(g.select(near, whole, apart))
}

/// argmax, argmin: certain where no other element may be as large.
pub fn candidates(g: &mut dyn Graph, of: &Use, result: Var, is_max: bool) -> Var {
    let value = wide(g, of.value(0));
    let bound = of.bound(g, 0).expect("the operand is uncertain");
    let value = if is_max { value } else { Operand::Tensor(g.neg(value)) };
    let (low, high) = (g.sub(value, bound), g.add(value, bound));
    let over = smallvec![Attribute::ints(ints(of.attributes, 0)), Attribute::Bool(true)];
    let best = g.emit(&reduce::AMAX, &[low.into()], over);
    let below = g.lt(high, best);
    let may = g.logical_not(below);
    let may = g.cast(may, DType::F64);
    let count = g.emit(&reduce::SUM, &[may.into()], of.attributes.clone());
    let doubted = g.gt(count, 1.0);
    let shape = g.shape(result);
    let certain = constant(g, shape, 0.0);
    g.select(doubted, f64::INFINITY, certain)
}
