//! How far two honest evaluations of one operation may be apart: a rule for each operation.
//!
//! A rule is given how far the operands may be apart, and adds what the operation itself loses.

use gt_ir::instruction::Attribute;
use gt_ir::operation::{Body, Graph, Var, float, int, ints};
use gt_ir::ops::{binary, reduce};
use gt_ir::shape::axis;
use gt_ir::{Attributes, DType, Operand, Operation, Scalar};
use smallvec::smallvec;

use super::composite::Walk;
use super::corners::{corners, nearly_equal, perturbed, uncertain};
use super::terms::{
    Pair, Value, computing, constant, distance, largest, magnitude, plus, rounding, sealed, times,
    tiny, total, unit, wide,
};

/// What a function of one number may lose in units of the dtype that it is computed in.
const FUNCTION: f64 = 16.0;
/// The same of the rarer functions, whose approximations are coarser.
const SPECIAL: f64 = 512.0;

/// How values are rounded, other than by their dtypes.
#[derive(Clone, Copy, Default)]
pub struct Loses {
    /// The dtype that counts for rounding, if it is another than the results'.
    pub nominal: Option<DType>,
    /// The dtype that float32 factors of products are rounded to, if they are.
    pub factors: Option<DType>,
}

impl Loses {
    /// What a product of two such factors loses in two evaluations.
    pub fn of_factors(self, dtype: DType) -> f64 {
        let is_single = matches!(dtype, DType::F32 | DType::C64);
        self.factors.filter(|_| is_single).map_or(0.0, |factors| 4.0 * unit(factors))
    }
}

/// One use of an operation.
pub struct Use<'a> {
    pub operation: &'static Operation,
    pub operands: &'a [Operand<Pair>],
    pub attributes: &'a Attributes,
    /// The first result; others have the numbers that follow.
    pub result: Var,
    pub loses: Loses,
}

impl Use<'_> {
    /// The dtype that a result is rounded to.
    pub fn dtype(&self, g: &dyn Graph, result: Var) -> DType {
        let dtype = g.meta(result).dtype;
        match self.loses.nominal {
            Some(nominal) if dtype.is_complex() => nominal.to_complex(),
            Some(nominal) if dtype.is_float() => nominal,
            _ => dtype,
        }
    }

    /// An operand's value.
    pub fn value(&self, index: usize) -> Value {
        self.operands[index].map(|pair| pair.value)
    }

    /// An operand's bound. A number that 16 bits do not hold may be rounded or not.
    pub fn bound(&self, g: &dyn Graph, index: usize) -> Option<Value> {
        match self.operands[index] {
            Operand::Tensor(pair) => pair.bound.map(Operand::Tensor),
            Operand::Scalar(scalar) => {
                let dtype = self.dtype(g, self.result);
                let loses = matches!(dtype, DType::F16 | DType::BF16)
                    && f64::from(scalar.as_f64() as f32).to_bits() & ((1 << 45) - 1) != 0;
                let lost = unit(dtype) * scalar.as_f64().abs();
                loses.then_some(Operand::Scalar(Scalar::Float(lost)))
            }
        }
    }

    /// Whether all operands are the same in every evaluation.
    pub fn is_exact(&self, g: &dyn Graph) -> bool {
        (0..self.operands.len()).all(|index| self.bound(g, index).is_none())
    }

    /// |operand| in float64.
    fn magnitude(&self, g: &mut dyn Graph, index: usize) -> Value {
        magnitude(g, self.value(index))
    }

    /// The bound of an operand, grown by `relative` of the operand itself.
    fn grown(&self, g: &mut dyn Graph, index: usize, relative: f64) -> Option<Value> {
        let bound = self.bound(g, index);
        if relative == 0.0 {
            return bound;
        }
        let length = self.magnitude(g, index);
        let own = times(g, length, relative);
        Some(bound.map_or(own, |bound| plus(g, bound, own)))
    }
}

/// A bound for each result; the operation's own rounding is part of it.
pub fn bounds(g: &mut dyn Graph, of: &Use, results: usize) -> Vec<Option<Var>> {
    let operands: Vec<Operand<Pair>> =
        of.operands.iter().map(|operand| narrowed(g, of, *operand)).collect();
    let of = &Use { operands: &operands, ..*of };
    (0..results as u32)
        .map(|index| {
            let result = of.result.result(index);
            let dtype = of.dtype(g, result);
            let bound = bound(g, of, index, result, dtype)?;
            Some(sealed(g, bound, result, dtype))
        })
        .collect()
}

/// An operand of more digits than the result, as a tensor without axes may have: it may be rounded
/// before the operation or not.
fn narrowed(g: &mut dyn Graph, of: &Use, operand: Operand<Pair>) -> Operand<Pair> {
    use gt_ir::operation::Family::{Binary, Ternary};
    let own = unit(of.dtype(g, of.result));
    let Operand::Tensor(Pair { value, bound }) = operand else { return operand };
    let dtype = g.meta(value).dtype;
    let given = of.loses.nominal.filter(|_| !dtype.is_exact()).map_or(unit(dtype), unit);
    let is_wider = given < own && (dtype.is_float() || g.shape(value).rank() == 0);
    if !matches!(of.operation.family, Binary | Ternary) || !is_wider || dtype == DType::Bool {
        return operand;
    }
    let lost = rounding(g, value, own, 0.0);
    let bound = bound.map_or(lost, |bound| g.add(bound, lost));
    Operand::Tensor(Pair { value, bound: Some(bound) })
}

fn bound(g: &mut dyn Graph, of: &Use, index: u32, result: Var, dtype: DType) -> Option<Var> {
    if let Body::Composite(body) = of.operation.body {
        let mut walk = Walk::new(g, Loses { nominal: Some(computing(dtype)), ..of.loses });
        let bound = walk.bound(body, of);
        return joined(g, bound, 2.0 * unit(dtype), result, dtype);
    }
    let (own, computed) = (unit(dtype), unit(computing(dtype)));
    let is_exact = of.is_exact(g);
    match of.operation.name {
        "rand" | "randn" | "randint" | "eye" | "nonzero" => None,
        "full" => (own > 0.0).then(|| rounding(g, result, own, 0.0)),
        "arange" | "linspace" => {
            let ends: f64 =
                of.operands.iter().filter_map(|of| Some(of.scalar()?.as_f64().abs())).sum();
            (own > 0.0).then(|| rounding(g, result, 8.0 * own, 8.0 * own * ends))
        }
        "reshape" | "permute" | "expand" | "flip" | "slice" | "tril" | "triu" | "gather"
        | "index_select" | "masked_rows" => moved(g, of, &[0]),
        "slice_assign" => moved(g, of, &[0, 1]),
        "cat" => moved(g, of, &(0..of.operands.len()).collect::<Vec<_>>()),
        "index_copy" | "scatter" | "masked_rows_scatter" => moved(g, of, &[0, 2]),
        "where" => chosen(g, of),
        "neg" | "abs" | "conj" => of.bound(g, 0).map(|bound| *bound.tensor().expect("of a tensor")),
        "view_as_real" | "view_as_complex" => parts(g, of, result),
        "cast" => cast(g, of, result, dtype, own),
        "add" | "sub" => {
            let bounds = [of.bound(g, 0), of.bound(g, 1)];
            let sum = bounds.into_iter().flatten().reduce(|a, b| plus(g, a, b));
            let sum = sum.map(|sum| spread(g, sum, result));
            joined(g, sum, 2.0 * own, result, dtype)
        }
        "mul" => {
            let product = product(g, of, 0, 1, &binary::MUL, 0.0);
            joined(g, product, 2.0 * own, result, dtype)
        }
        "mul_add" => {
            let product = product(g, of, 1, 2, &binary::MUL, 2.0 * own);
            let bound = of.bound(g, 0).map(|bound| spread(g, bound, result));
            let sum = total(g, &[product, bound]).map(|sum| spread(g, sum.into(), result));
            joined(g, sum, 2.0 * own, result, dtype)
        }
        "matmul" | "conv_general" => {
            let terms = terms_of(g, of, result);
            let lost = gamma(terms, computed) + of.loses.of_factors(computing(dtype));
            let product = product(g, of, 0, 1, of.operation, lost);
            joined(g, product, 2.0 * own, result, dtype)
        }
        "sum" | "mean" | "cumsum" => {
            let lost = gamma(terms_of(g, of, result), computed);
            let sum = of.grown(g, 0, lost).filter(|_| own > 0.0 || !is_exact);
            let sum = sum.map(|sum| g.emit(of.operation, &[sum], of.attributes.clone()));
            joined(g, sum, 2.0 * own, result, dtype)
        }
        "index_add" | "scatter_add" => {
            // Each is added to what is there, in the result's dtype.
            let lost = gamma(terms_of(g, of, result), own);
            let [Some(a), Some(b)] = [of.grown(g, 0, lost), of.grown(g, 2, lost)] else {
                return (!is_exact).then(|| unknown(g, result));
            };
            Some(g.emit(of.operation, &[a, of.value(1), b], of.attributes.clone()))
        }
        "prod" | "cumprod" => {
            let factors = terms_of(g, of, result);
            grown_product(g, of, result, dtype, 2.0 * own, factors)
                .filter(|_| own > 0.0 || !is_exact)
        }
        name @ ("_fft_c2c" | "_fft_r2c" | "_fft_c2r") => {
            let scale = float(of.attributes, if name == "_fft_r2c" { 1 } else { 2 }).abs();
            let at = [int(of.attributes, 0)];
            let lost = gamma(terms_of(g, of, result).max(2.0).log2() * 4.0 + 4.0, computed);
            let grown = of.grown(g, 0, lost)?;
            let sum = g.sum(*grown.tensor()?, &at, true);
            let sum = g.mul(sum, 2.0 * scale);
            Some(spread(g, sum.into(), result))
        }
        "eq" | "ne" if !is_exact => nearly_equal(g, of, result),
        "isnan" => {
            let bound = *of.bound(g, 0)?.tensor()?;
            let known = g.lt(bound, f64::INFINITY);
            Some(g.select(known, 0.0, 1.0))
        }
        "sign" | "relu" | "floor" | "ceil" | "round" | "trunc" | "signbit" | "maximum"
        | "minimum" | "fmax" | "fmin" | "clamp" | "copysign" | "eq" | "ne" | "lt" | "le" | "gt"
        | "ge" | "logical_not" | "logical_and" | "logical_or" | "logical_xor" | "floor_divide"
        | "fmod"
            if is_exact =>
        {
            None
        }
        "amax" | "amin" | "any" | "all" | "relu" | "clamp" | "maximum" | "minimum" => {
            (!is_exact).then(|| corners(g, of, 0, true))
        }
        // The signs of vectors are anybody's choice, and so is the order.
        "_linalg_svd" if index != 1 => Some(unknown(g, result)),
        "_linalg_eigh" if index == 1 => Some(unknown(g, result)),
        "_linalg_eig" => Some(unknown(g, result)),
        "sort" | "topk" | "max_pool" | "max_along" | "min_along" | "cummax" | "cummin" => {
            (!is_exact).then(|| match index {
                0 => corners(g, of, 0, true),
                _ => unknown(g, result),
            })
        }
        "argmax" | "argmin" => (!is_exact).then(|| candidates(g, of, result)),
        "bitwise_and"
        | "bitwise_or"
        | "bitwise_xor"
        | "bitwise_not"
        | "gcd"
        | "lcm"
        | "bitwise_left_shift"
        | "bitwise_right_shift" => uncertain(g, of, result),
        "remainder" | "fmod" => remainder(g, of, result, own),
        "wrap_index" => (!is_exact).then(|| unknown(g, result)),
        "logcumsumexp" => {
            let grown = corners(g, of, 0, true);
            let lost = gamma(terms_of(g, of, result), computed) + FUNCTION * computed + 2.0 * own;
            let lost = rounding(g, result, lost, lost);
            Some(g.add(grown, lost))
        }
        name => {
            use gt_ir::operation::Family::{Binary, Ternary, Unary};
            let family = of.operation.family;
            if !matches!(family, Unary | Binary | Ternary) || of.operation.further.is_some() {
                return perturbed(g, of, index, result, dtype);
            }
            let grown = (!is_exact).then(|| corners(g, of, 0, false));
            let relative = match name {
                "sqrt" | "div" | "floor_divide" => 0.0,
                "pow" => 4.0 * FUNCTION * computed,
                name if COMMON.contains(&name) => FUNCTION * computed,
                _ => SPECIAL * computed,
            };
            let special = SPECIAL * computed;
            let absolute = if relative == special { special } else { 0.0 };
            if own == 0.0 {
                return grown;
            }
            let lost = rounding(g, result, relative + 2.0 * own, absolute + tiny(dtype));
            Some(grown.map_or(lost, |grown| g.add(grown, lost)))
        }
    }
}

/// Functions that every library has to a few units.
const COMMON: [&str; 24] = [
    "exp", "log", "log1p", "expm1", "rsqrt", "sin", "cos", "erf", "sigmoid", "tanh", "asin",
    "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "log2", "log10", "exp2", "atan2",
    "hypot", "erfc",
];

/// Higham's bound for a sum of so many terms, of which each is rounded: `n u`, for two evaluations.
/// From 1024 terms on roundings are taken for independent, where the sum grows as the root of n.
fn gamma(terms: f64, unit: f64) -> f64 {
    2.0 * terms.min(32.0 * terms.sqrt()) * unit
}

/// How many numbers are added for each element of the result.
fn terms_of(g: &dyn Graph, of: &Use, result: Var) -> f64 {
    let shape = |index: usize| of.value(index).tensor().map(|&var| g.meta(var).shape);
    let along = |index: usize, at: i64| {
        shape(index).map_or(1, |shape| match axis(at, shape.rank(), of.operation.name) {
            Ok(at) if shape.rank() > 0 => shape[at],
            _ => 1,
        })
    };
    let terms = match of.operation.name {
        "matmul" => along(0, -1),
        "conv_general" => shape(1).map_or(1, |shape| shape[1..].iter().product()),
        "index_add" => 1 + shape(1).map_or(1, |shape| shape.numel()),
        "scatter_add" => 1 + along(2, int(of.attributes, 0)),
        "sum" | "mean" | "prod" => {
            shape(0).map_or(1, |shape| shape.numel()) / g.meta(result).shape.numel().max(1)
        }
        _ => along(0, int(of.attributes, 0)),
    };
    terms.max(1) as f64
}

/// A bound and what rounding the result loses; none for an exact result of exact operands.
fn joined(
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

/// A bound broadcast to a result's shape.
pub fn spread(g: &mut dyn Graph, bound: Value, result: Var) -> Var {
    let shape = g.shape(result);
    match bound {
        Operand::Scalar(bound) => constant(g, shape, bound.as_f64()),
        Operand::Tensor(bound) => g.expand(bound, shape),
    }
}

/// A bound that says nothing.
pub fn unknown(g: &mut dyn Graph, result: Var) -> Var {
    let shape = g.shape(result);
    constant(g, shape, f64::INFINITY)
}

/// Operations that move values: their bounds move along.
fn moved(g: &mut dyn Graph, of: &Use, data: &[usize]) -> Option<Var> {
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
fn chosen(g: &mut dyn Graph, of: &Use) -> Option<Var> {
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

/// Complex numbers and the pairs of real ones that they consist of.
fn parts(g: &mut dyn Graph, of: &Use, result: Var) -> Option<Var> {
    let bound = *of.bound(g, 0)?.tensor()?;
    let rank = g.shape(bound).rank();
    if of.operation.name == "view_as_complex" {
        return Some(g.sum(bound, &[rank as i64 - 1], false));
    }
    let mut shape: Vec<usize> = g.shape(bound).to_vec();
    shape.push(1);
    let column =
        g.emit(&gt_ir::ops::shape::RESHAPE, &[bound.into()], smallvec![Attribute::dims(&shape)]);
    Some(spread(g, column.into(), result))
}

fn cast(g: &mut dyn Graph, of: &Use, result: Var, dtype: DType, own: f64) -> Option<Var> {
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
fn product(
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

fn times_each(
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
fn grown_product(
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
fn remainder(g: &mut dyn Graph, of: &Use, result: Var, own: f64) -> Option<Var> {
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
fn candidates(g: &mut dyn Graph, of: &Use, result: Var) -> Var {
    let value = wide(g, of.value(0));
    let bound = of.bound(g, 0).expect("the operand is uncertain");
    let is_max = of.operation.name == "argmax";
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
