//! Writing at the places that an index names along an axis.

use super::binary::{DIV, MUL};
use super::index::{check_pointwise, mismatch, same_dtype, the_axis};
use super::infer::promote;
use super::sample::{number, sample, tensor};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::Result;
use crate::instruction::Attribute;
use crate::number::Numbers;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, Default, FIRST, Family, Graph, Meta, NO_GRADIENT, OUTPUT, Operation, SECOND,
    Sample, Saved, THIRD, Var, face, takes,
};
use crate::sharding::{Rule, shape_of};
use smallvec::smallvec;

fn infer(call: &Call) -> Result<Meta> {
    let (meta, index) = check_pointwise(call)?;
    if let Some(source) = call.operands[2].tensor() {
        same_dtype(call, meta, *source)?;
        if source.shape != index.shape {
            return Err(mismatch(call, *source, format!("the index's {}", index.shape)));
        }
    }
    Ok(meta)
}

const SCATTERING: Defaults = Defaults(Operation {
    family: Family::Index,
    infer,
    sharding: along_whole_axes,
    batching: Batching::Leading,
    ..Operation::base().0
});

/// Shardable along the axes, other than the indexed one, that the index covers whole.
fn along_whole_axes(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output);
    let (x, index) = (shape_of(call, 0), shape_of(call, 1));
    let over = the_axis(call);
    for along in (0..x.rank()).filter(|&along| along != over) {
        if x[along] > 1 && x[along] == index[along] {
            let operands = [(0, along), (1, along), (2, along)];
            let count = if call.operands[2].tensor().is_some() { 3 } else { 2 };
            rule.share(&operands[..count], Some(along));
        }
    }
    rule
}

fn samples(further: &[Attribute]) -> Vec<Sample> {
    let x = |dtype, dims: &[usize]| tensor(dtype, dims, 0.5, 3.0);
    let index = |dims: &[usize], below| tensor(DType::I64, dims, 0.0, below);
    let attributes = |dim| {
        let mut all = vec![Attribute::Int(dim)];
        all.extend(further.iter().cloned());
        all
    };
    let mut samples = Vec::new();
    for dtype in [DType::F32, DType::F64, DType::F16, DType::I64] {
        // One index along the axis: of several that name one place any may win.
        let operands = [x(dtype, &[3, 4]), index(&[1, 4], 3.0), x(dtype, &[1, 4])];
        samples.push(sample(&operands, &attributes(0)));
        let operands = [x(dtype, &[3, 4]), index(&[2, 1], 4.0), x(dtype, &[2, 1])];
        samples.push(sample(&operands, &attributes(1)));
    }
    samples
}

pub static SCATTER: Operation = Operation {
    id: 144,
    name: "scatter",
    doc: "values (or one number) put at an index along an axis: `x[index[i][j]][j] = src[i][j]` for dim 0; of equal indices the last counts",
    complex: ComplexRule::OwnRule,
    numbers: Numbers::Stored(|operands| promote(&operands[..1])),
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim"),
        takes::tensor("index"),
        takes::value("src"),
    ],
    gradient: Each(&[
        |g, s| {
            let (index, dim) = (s.operand(1), smallvec![Attribute::Int(s.int(0))]);
            g.emit(&SCATTER, &[s.grad.into(), index, 0i64.into()], dim)
        },
        NO_GRADIENT,
        |g, s| g.gather(s.grad, s.tensor(1), s.int(0)),
    ]),
    saves: SECOND,
    samples: || {
        let mut all = samples(&[]);
        let operands = [
            tensor(DType::F32, &[3, 4], 0.0, 1.0),
            tensor(DType::I64, &[2, 4], 0.0, 3.0),
            number(2.5),
        ];
        all.push(sample(&operands, &[Attribute::Int(0)]));
        all
    },
    ..SCATTERING.with(facts(Unchanged, Moved(&[0, 2]), Computed))
};

/// The ways to combine values in the order of the choice.
const SUM: i64 = 0;
const PROD: i64 = 1;
const MEAN: i64 = 2;

pub static SCATTER_REDUCE: Operation = Operation {
    id: 145,
    name: "scatter_reduce",
    doc: "values combined at an index along an axis: by their sum, product, mean, maximum or minimum, with the existing value or (where any is put) without it",
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim"),
        takes::tensor("index"),
        takes::tensor("src"),
        takes::choice("reduce", &["sum", "prod", "mean", "amax", "amin"]),
        takes::flag("include_self").or(Default::Bool(true)),
    ],
    face: face::ELEMENTWISE,
    gradient: Each(&[of_self, NO_GRADIENT, of_source]),
    saves: FIRST | SECOND | THIRD | OUTPUT,
    samples: || {
        let ways = (0..5).flat_map(|way| [(way, true), (way, false)]);
        ways.flat_map(|(way, own)| samples(&[Attribute::Int(way), Attribute::Bool(own)])).collect()
    },
    ..SCATTERING.with(facts(Unchanged, Estimated, Computed))
};

fn emit(g: &mut dyn Graph, s: &Saved, input: Var, source: Var) -> Var {
    let operands = [input.into(), s.operand(1), source.into()];
    g.emit(&SCATTER_REDUCE, &operands, s.attributes.clone())
}

/// Zeros of the input's shape, or ones.
fn filled(g: &mut dyn Graph, s: &Saved, value: f64) -> Var {
    g.full(s.shape(0), s.output_meta.dtype, value)
}

/// How many values are combined at each place, 1 where none are.
fn counts(g: &mut dyn Graph, s: &Saved) -> Var {
    let start = filled(g, s, f64::from(u8::from(s.bool(2))));
    let ones = g.full(s.shape(2), s.output_meta.dtype, 1.0);
    let counts = g.scatter_add(start, s.tensor(1), ones, s.int(0));
    let none = g.eq(counts, 0.0);
    g.select(none, 1.0, counts)
}

/// Of equal extremes each gets an even share: the gradient divided by how many there are.
fn even_shares(g: &mut dyn Graph, s: &Saved) -> (Var, Var, Var) {
    let (dtype, dim) = (s.output_meta.dtype, s.int(0));
    let value = g.gather(s.output(), s.tensor(1), dim);
    let own = g.eq(s.tensor(0), s.output());
    let own = g.cast(own, dtype);
    let put = g.eq(s.tensor(2), value);
    let put = g.cast(put, dtype);
    let many = g.scatter_add(own, s.tensor(1), put, dim);
    (own, put, g.call(&DIV, &[s.grad.into(), many.into()]))
}

fn of_self(g: &mut dyn Graph, s: &Saved) -> Var {
    let grad = match s.int(1) {
        SUM => s.grad,
        PROD => {
            // The product of the others: the result with 1 in place of a 0, over the value.
            let is_zero = g.eq(s.tensor(0), 0.0);
            let whole = g.select(is_zero, 1.0, s.operand(0));
            let product = emit(g, s, whole, s.tensor(2));
            let scaled = g.mul(s.grad, product);
            g.div(scaled, whole)
        }
        MEAN => {
            let counts = counts(g, s);
            g.div(s.grad, counts)
        }
        _ => {
            let (own, _, share) = even_shares(g, s);
            g.call(&MUL, &[own.into(), share.into()])
        }
    };
    if s.bool(2) {
        return grad;
    }
    let dim = smallvec![Attribute::Int(s.int(0))];
    g.emit(&SCATTER, &[grad.into(), s.operand(1), 0i64.into()], dim)
}

fn of_source(g: &mut dyn Graph, s: &Saved) -> Var {
    let (index, dim) = (s.tensor(1), s.int(0));
    match s.int(1) {
        SUM => g.gather(s.grad, index, dim),
        PROD => {
            // With one 0 at a place, only that 0 has a gradient: the product of the others.
            let dtype = s.output_meta.dtype;
            let is_zero = g.eq(s.tensor(2), 0.0);
            let zeros = filled(g, s, 0.0);
            let ones = g.cast(is_zero, dtype);
            let many = g.scatter_add(zeros, index, ones, dim);
            let many = g.gather(many, index, dim);
            let single = g.eq(many, 1.0);
            let single = g.logical_and(is_zero, single);
            let without = g.select(single, 1.0, s.operand(2));
            let product = emit(g, s, s.tensor(0), without);
            let of_zero = g.mul(s.grad, product);
            let of_zero = g.gather(of_zero, index, dim);
            let whole = g.select(is_zero, 1.0, s.operand(2));
            let of_others = g.mul(s.grad, s.output());
            let of_others = g.gather(of_others, index, dim);
            let of_others = g.div(of_others, whole);
            g.select(single, of_zero, of_others)
        }
        MEAN => {
            let counts = counts(g, s);
            let share = g.div(s.grad, counts);
            g.gather(share, index, dim)
        }
        _ => {
            let (_, put, share) = even_shares(g, s);
            let share = g.gather(share, index, dim);
            g.mul(put, share)
        }
    }
}
