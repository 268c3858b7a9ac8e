//! Scaled dot-product attention (Vaswani et al., 2017) as one operation, so that an engine need not
//! keep the weights of all queries and keys: FlashAttention (Dao et al., 2022).
//!
//! - Here: what is taken and given. [`gradients`]: the rules.

mod gradients;

use smallvec::smallvec;

use super::sample::{number, sample, tensor};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::{Attribute, Attributes};
use crate::operation::Gradient::AllOperands;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, FIRST, Family, Meta, OUTPUT, Operation, SECOND, Sample, SampleOperand, THIRD, takes,
};
use crate::shape::Shape;
use crate::sharding::{Rule, shape_of};

const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// The place of the mask among the operands.
const MASK: usize = 3;

pub static ATTENTION: Operation = Operation {
    id: 242,
    name: "_attention",
    family: Family::Matmul,
    doc: "softmax(scale * query @ key.mT + attn_mask) @ value, and the logarithm of the sum of exp(scores) for each query: 0 and inf for one that sees no key; a bool mask says which keys are seen, is_causal that query i sees keys up to i",
    parameters: &[
        takes::tensor("query"),
        takes::tensor("key"),
        takes::tensor("value"),
        takes::value("attn_mask"),
        takes::flag("is_causal"),
        takes::float("scale"),
    ],
    infer: |call| Ok(operands(call, 0)?.output()),
    further: Some(|call, output| {
        operands(call, 0).map_or(smallvec![output], |given| smallvec![given.logsumexp()])
    }),
    gradient: AllOperands(gradients::attention),
    saves: FIRST | SECOND | THIRD | 1 << MASK | OUTPUT,
    sharding: |call, output| over_batches(call, output, MASK),
    samples: || samples(false),
    ..Operation::base().with(facts(Lower, Estimated, Computed))
};

/// The gradients for query, key and value, of which the weights are computed anew from the scores
/// and what [`ATTENTION`] has given.
pub static ATTENTION_BACKWARD: Operation = Operation {
    id: 243,
    name: "_attention_backward",
    family: Family::Matmul,
    doc: "the gradients of _attention's first result for query, key and value, given both results",
    parameters: &[
        takes::tensor("grad"),
        takes::tensor("query"),
        takes::tensor("key"),
        takes::tensor("value"),
        takes::value("attn_mask"),
        takes::tensor("output"),
        takes::tensor("logsumexp"),
        takes::flag("is_causal"),
        takes::float("scale"),
    ],
    infer: |call| {
        let given = operands(call, 1)?;
        let others = [(0, given.output()), (5, given.output()), (6, given.logsumexp())];
        for (index, expected) in others {
            let meta = call.tensor(index)?;
            if meta.shape != expected.shape {
                return Err(unfit(call, meta.shape, format!("the shape {}", expected.shape)));
            }
            if meta.dtype != expected.dtype {
                return Err(wrong_dtype(call, meta.dtype, "the dtypes that _attention gives"));
            }
        }
        Ok(given.query)
    },
    further: Some(|call, query| {
        operands(call, 1).map_or(smallvec![query, query], |given| smallvec![given.key, given.value])
    }),
    gradient: AllOperands(gradients::backward),
    saves: 0b111_1111,
    sharding: |call, output| over_batches(call, output, 1 + MASK),
    samples: || samples(true),
    ..Operation::base().with(facts(Unchanged, Estimated, Computed))
};

/// The attributes of both operations.
fn attributes(is_causal: bool, scale: f64) -> Attributes {
    smallvec![Attribute::Bool(is_causal), Attribute::Float(scale)]
}

/// What fits together: (..., queries, width), (..., keys, width), (..., keys, width of the result).
struct AttentionShapes {
    query: Meta,
    key: Meta,
    value: Meta,
}

impl AttentionShapes {
    fn output(&self) -> Meta {
        let (query, value) = (self.query.shape, self.value.shape);
        let last = query.rank() - 1;
        Meta::new(self.query.dtype, query.with(last, value[last]))
    }

    /// A number for each query, which the 16-bit floats do not have the digits for.
    fn logsumexp(&self) -> Meta {
        let shape = self.query.shape;
        let dtype = if self.query.dtype.size() == 2 { DType::F32 } else { self.query.dtype };
        let queries = Shape::new(&shape[..shape.rank() - 1]).expect("a part of a shape");
        Meta::new(dtype, queries)
    }
}

/// Checks query, key, value and mask, which are the operands from `first` on.
fn operands(call: &Call, first: usize) -> Result<AttentionShapes> {
    let [query, key, value] =
        [call.tensor(first)?, call.tensor(first + 1)?, call.tensor(first + 2)?];
    if !FLOATS.contains(&query.dtype) {
        return Err(wrong_dtype(call, query.dtype, "a float dtype"));
    }
    let rank = query.shape.rank();
    if rank < 2 {
        return Err(unfit(call, query.shape, "2 axes or more in query".to_string()));
    }
    let (batch, width) = (&query.shape[..rank - 2], query.shape[rank - 1]);
    for other in [key, value] {
        if other.dtype != query.dtype {
            return Err(wrong_dtype(call, other.dtype, "query's dtype in key and value, too"));
        }
        if other.shape.rank() != rank || other.shape[..rank - 2] != *batch {
            let expected = format!("the axes {batch:?} of query before the last two");
            return Err(unfit(call, other.shape, expected));
        }
    }
    if key.shape[rank - 1] != width {
        return Err(unfit(call, key.shape, format!("query's width {width} in key")));
    }
    let keys = key.shape[rank - 2];
    if value.shape[rank - 2] != keys {
        return Err(unfit(call, value.shape, format!("a value for each of {keys} keys")));
    }
    if let Some(mask) = call.operands[first + MASK].tensor() {
        if mask.dtype != DType::Bool && !mask.dtype.is_float() {
            return Err(wrong_dtype(call, mask.dtype, "bool or floats in attn_mask"));
        }
        let scores = query.shape.with(rank - 1, keys);
        if !mask.shape.expands_to(&scores) {
            return Err(unfit(call, mask.shape, format!("an attn_mask that expands to {scores}")));
        }
    }
    Ok(AttentionShapes { query, key, value })
}

#[cold]
fn unfit(call: &Call, given: Shape, expected: String) -> Error {
    Error::ShapeMismatch { operation: call.operation, given, expected }
}

#[cold]
fn wrong_dtype(call: &Call, given: DType, expected: &'static str) -> Error {
    Error::DTypeMismatch { operation: call.operation, given, expected }
}

/// The axes before the last two of the output, batches and heads, may be cut, of all operands that
/// have them, too.
fn over_batches(call: &Call, output: &Meta, mask: usize) -> Rule {
    let mut rule = Rule::whole(call, output);
    let rank = output.shape.rank();
    for axis in (0..rank - 2).filter(|&axis| output.shape[axis] > 1) {
        let mut shared = Vec::new();
        for index in 0..call.operands.len() {
            // A mask may have fewer axes, or repeat along some.
            let shape = shape_of(call, index);
            let missing = if index == mask { rank - shape.rank() } else { 0 };
            if axis >= missing && shape[axis - missing] == output.shape[axis] {
                shared.push((index, axis - missing));
            }
        }
        rule.share(&shared, Some(axis));
    }
    rule
}

fn samples(backward: bool) -> Vec<Sample> {
    /// Axes of batches; queries, keys, width, width of values; is_causal; the mask.
    type Case<'a> = (&'a [usize], [usize; 4], bool, Option<(DType, &'a [usize])>);
    let cases: [Case; 7] = [
        (&[2], [3, 5, 4, 3], false, None),
        (&[2, 2], [5, 5, 4, 4], true, None),
        (&[2, 1], [4, 2, 2, 2], true, None),
        (&[2, 3], [2, 5, 4, 4], false, Some((DType::F32, &[2, 5]))),
        (&[], [3, 4, 2, 1], false, Some((DType::Bool, &[3, 4]))),
        (&[2, 2], [2, 3, 4, 4], false, Some((DType::Bool, &[2, 1, 1, 3]))),
        (&[0, 2], [2, 3, 4, 4], false, None),
    ];
    let mut samples = Vec::new();
    for dtype in FLOATS {
        for (batch, [queries, keys, width, values], is_causal, mask) in cases {
            let of =
                |inner: &[usize], low, high| tensor(dtype, &[batch, inner].concat(), low, high);
            let mask = mask.map_or(number(0.0), |(dtype, dims)| tensor(dtype, dims, 0.0, 0.9));
            let mut all: Vec<SampleOperand> = vec![
                of(&[queries, width], -2.0, 2.0),
                of(&[keys, width], -2.0, 2.0),
                of(&[keys, values], -2.0, 2.0),
                mask,
            ];
            if backward {
                all.insert(0, of(&[queries, values], -1.0, 1.0));
                all.push(of(&[queries, values], -1.0, 1.0));
                let wide = if dtype.size() == 2 { DType::F32 } else { dtype };
                all.push(tensor(wide, &[batch, &[queries]].concat(), 1.0, 3.0));
            }
            samples.push(sample(&all, &attributes(is_causal, 0.5)));
        }
    }
    samples
}
