//! How far two correct evaluations of one operation may differ: a rule for each operation.
//!
//! A rule is given how far the operands may be apart, and adds what the operation itself loses.

use gt_ir::operation::{Accuracy, Body, ErrorBound, Graph, TermCount, Var, float, int};
use gt_ir::ops::binary;
use gt_ir::{DType, Operand};

use super::carried::{
    candidates, cast, chosen, gamma, grown_product, joined, moved, paired, pairs, product,
    remainder, terms_of,
};
use super::composite::Walk;
use super::corners::{corners, nearly_equal, perturbed, uncertain};
use super::operands::{Loses, Use};
use super::terms::{Pair, computing, plus, rounding, sealed, spread, tiny, total, unit, unknown};

/// What a function of one number may lose in units of the dtype that it is computed in.
const FUNCTION: f64 = 16.0;
/// The same of the rarer functions, whose approximations are coarser.
const SPECIAL: f64 = 512.0;

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
        let mut walk = Walk::new(g, Loses { nominal: Some(computing(dtype)), ..of.loses }, bounds);
        let bound = walk.bound(body, of);
        return joined(g, bound, 2.0 * unit(dtype), result, dtype);
    }
    let (own, computed) = (unit(dtype), unit(computing(dtype)));
    let is_exact = of.is_exact(g);
    match of.operation.facts.bound {
        ErrorBound::Same | ErrorBound::OfBody => None,
        ErrorBound::Rounded => (own > 0.0).then(|| rounding(g, result, own, 0.0)),
        ErrorBound::Spaced => {
            let ends: f64 =
                of.operands.iter().filter_map(|of| Some(of.scalar()?.as_f64().abs())).sum();
            (own > 0.0).then(|| rounding(g, result, 8.0 * own, 8.0 * own * ends))
        }
        ErrorBound::Moved(from) => moved(g, of, from),
        ErrorBound::MovedFromAll => moved(g, of, &(0..of.operands.len()).collect::<Vec<_>>()),
        ErrorBound::Chosen => chosen(g, of),
        ErrorBound::Negated => of.bound(g, 0).map(|bound| *bound.tensor().expect("of a tensor")),
        ErrorBound::ComplexToReal => pairs(g, of, result),
        ErrorBound::RealToComplex => paired(g, of),
        ErrorBound::Cast => cast(g, of, result, dtype, own),
        ErrorBound::Sum => {
            let bounds = [of.bound(g, 0), of.bound(g, 1)];
            let sum = bounds.into_iter().flatten().reduce(|a, b| plus(g, a, b));
            let sum = sum.map(|sum| spread(g, sum, result));
            joined(g, sum, 2.0 * own, result, dtype)
        }
        ErrorBound::Product => {
            let product = product(g, of, 0, 1, &binary::MUL, 0.0);
            joined(g, product, 2.0 * own, result, dtype)
        }
        ErrorBound::ProductSum => {
            let product = product(g, of, 1, 2, &binary::MUL, 2.0 * own);
            let bound = of.bound(g, 0).map(|bound| spread(g, bound, result));
            let sum = total(g, &[product, bound]).map(|sum| spread(g, sum.into(), result));
            joined(g, sum, 2.0 * own, result, dtype)
        }
        ErrorBound::Contraction(terms) => {
            let terms = terms_of(g, of, result, terms);
            let lost = gamma(terms, computed) + of.loses.of_factors(computing(dtype));
            let product = product(g, of, 0, 1, of.operation, lost);
            joined(g, product, 2.0 * own, result, dtype)
        }
        ErrorBound::Reduction(terms) => {
            let lost = gamma(terms_of(g, of, result, terms), computed);
            let sum = of.grown(g, 0, lost).filter(|_| own > 0.0 || !is_exact);
            let sum = sum.map(|sum| g.emit(of.operation, &[sum], of.attributes.clone()));
            joined(g, sum, 2.0 * own, result, dtype)
        }
        ErrorBound::ScatteredSum(terms) => {
            // Each is added to the existing element, in the result's dtype.
            let lost = gamma(1.0 + terms_of(g, of, result, terms), own);
            let [Some(a), Some(b)] = [of.grown(g, 0, lost), of.grown(g, 2, lost)] else {
                return (!is_exact).then(|| unknown(g, result));
            };
            Some(g.emit(of.operation, &[a, of.value(1), b], of.attributes.clone()))
        }
        ErrorBound::Products(terms) => {
            let factors = terms_of(g, of, result, terms);
            grown_product(g, of, result, dtype, 2.0 * own, factors)
                .filter(|_| own > 0.0 || !is_exact)
        }
        ErrorBound::Fourier { scale } => {
            let scale = float(of.attributes, scale).abs();
            let at = [int(of.attributes, 0)];
            let terms = terms_of(g, of, result, TermCount::AlongAxis);
            let lost = gamma(terms.max(2.0).log2() * 4.0 + 4.0, computed);
            let grown = of.grown(g, 0, lost)?;
            let sum = g.sum(*grown.tensor()?, &at, true);
            let sum = g.mul(sum, 2.0 * scale);
            Some(spread(g, sum.into(), result))
        }
        ErrorBound::Finiteness => {
            let bound = *of.bound(g, 0)?.tensor()?;
            let known = g.lt(bound, f64::INFINITY);
            Some(g.select(known, 0.0, 1.0))
        }
        ErrorBound::Equality
        | ErrorBound::Stepwise
        | ErrorBound::Selected
        | ErrorBound::Ordered { .. }
        | ErrorBound::IndexOf { .. }
        | ErrorBound::Opaque
        | ErrorBound::Remainder { is_exact: true }
        | ErrorBound::Quotient { is_whole: true }
            if is_exact =>
        {
            None
        }
        ErrorBound::Equality => nearly_equal(g, of, result),
        ErrorBound::Stepwise => function(g, of, result, dtype, SPECIAL),
        ErrorBound::Selected => Some(corners(g, of, 0, true)),
        ErrorBound::Ordered { .. } => Some(match index {
            0 => corners(g, of, 0, true),
            _ => unknown(g, result),
        }),
        ErrorBound::IndexOf { is_max } => Some(candidates(g, of, result, is_max)),
        ErrorBound::Bits => uncertain(g, of, result),
        ErrorBound::Remainder { .. } => remainder(g, of, result, own),
        ErrorBound::Opaque => Some(unknown(g, result)),
        ErrorBound::LogSum => {
            let grown = corners(g, of, 0, true);
            let terms = terms_of(g, of, result, TermCount::AlongAxis);
            let lost = gamma(terms, computed) + FUNCTION * computed + 2.0 * own;
            let lost = rounding(g, result, lost, lost);
            Some(g.add(grown, lost))
        }
        ErrorBound::Arbitrary(results) if results.contains(&index) => Some(unknown(g, result)),
        ErrorBound::Arbitrary(_) | ErrorBound::Estimated => perturbed(g, of, index, result, dtype),
        ErrorBound::Quotient { .. } => function(g, of, result, dtype, 0.0),
        ErrorBound::Function(accuracy) => {
            let units = match accuracy {
                Accuracy::Rounded => 0.0,
                Accuracy::Units => FUNCTION,
                Accuracy::Power => 4.0 * FUNCTION,
                Accuracy::Coarse => SPECIAL,
            };
            function(g, of, result, dtype, units)
        }
    }
}

/// A function of each element that loses some units of the dtype that it is computed in.
fn function(g: &mut dyn Graph, of: &Use, result: Var, dtype: DType, units: f64) -> Option<Var> {
    let (own, computed) = (unit(dtype), unit(computing(dtype)));
    let grown = (!of.is_exact(g)).then(|| corners(g, of, 0, false));
    if own == 0.0 {
        return grown;
    }
    let relative = units * computed;
    let absolute = if units == SPECIAL { relative } else { 0.0 };
    let lost = rounding(g, result, relative + 2.0 * own, absolute + tiny(dtype));
    Some(grown.map_or(lost, |grown| g.add(grown, lost)))
}
