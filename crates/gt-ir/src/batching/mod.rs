//! Batching rules: how one operation is computed for a batch of operands at once, as `vmap` does.
//!
//! A batched operand has one more axis in front, the *batch axis*; other operands are the same for
//! the whole batch. Each result has the batch axis in front, too.
//!
//! - [`structure`]: rules of operations that rearrange axes; [`index`]: of those with indices.
//! - [`products`]: of matrix products and convolutions.

pub mod index;
pub mod products;
pub mod structure;

use smallvec::{SmallVec, smallvec};

use crate::call::Meta;
use crate::instruction::{Attribute, Attributes, Operand};
use crate::operation::{Graph, Operation, ParameterKind, Var};
use crate::shape::{Shape, axes, axis};

/// How an operation takes a batch axis.
#[derive(Clone, Copy)]
pub enum Batching {
    /// It is computed once per element of the batch, and the results are stacked.
    Each,
    /// Operands broadcast from the last axis, so that the batch axis is one more in front.
    Broadcast,
    /// It computes the same along any further axis in front. All tensors are given the batch axis,
    /// and axes in attributes are shifted by one.
    Leading,
    /// Like `Leading`, for an operation that draws random numbers: an option of `vmap` determines
    /// whether they differ within the batch.
    Drawn,
    /// It has a rule of its own. If the rule returns `None`, it is computed as for `Each`.
    Rule(fn(&mut dyn Graph, &BatchedCall) -> Option<Var>),
}

/// A call of an operation on a batch.
pub struct BatchedCall<'a> {
    pub operation: &'static Operation,
    pub operands: &'a [Operand<Var>],
    /// Whether each operand has the batch axis in front.
    pub batched: &'a [bool],
    /// Shape and dtype of the operands of a single call.
    pub metas: &'a [Operand<Meta>],
    pub attributes: &'a Attributes,
    /// Shape and dtype of the results of a single call.
    pub results: &'a [Meta],
    /// The length of the batch axis.
    pub size: usize,
}

/// Computes an operation for a batch, and returns its results with the batch axis in front.
pub fn apply(g: &mut dyn Graph, batch: &BatchedCall) -> SmallVec<[Var; 2]> {
    let first = match batch.operation.batching {
        Batching::Each => None,
        Batching::Broadcast => Some(broadcast(g, batch)),
        Batching::Leading | Batching::Drawn => Some(leading(g, batch)),
        Batching::Rule(rule) => rule(g, batch),
    };
    let Some(first) = first else { return each(g, batch) };
    let results = batch.results.iter().enumerate().map(|(index, meta)| {
        let shaped = g.reshape(first.result(index as u32), batch.whole(meta.shape));
        g.cast(shaped, meta.dtype)
    });
    results.collect()
}

impl BatchedCall<'_> {
    /// Returns a shape with the batch axis in front.
    pub fn whole(&self, shape: Shape) -> Shape {
        in_front(&[self.size], shape)
    }

    /// Returns the shape of an operand of a single call, which is a tensor.
    pub fn shape(&self, operand: usize) -> Shape {
        self.metas[operand].tensor().map_or(Shape::SCALAR, |meta| meta.shape)
    }

    /// The operand at `index`, which is a tensor.
    pub fn tensor(&self, index: usize) -> Var {
        *self.operands[index].tensor().expect("a tensor operand")
    }

    /// The tensor operand at `index` with the batch axis, repeated along it if it has none.
    pub fn expanded(&self, g: &mut dyn Graph, index: usize) -> Var {
        let given = self.tensor(index);
        if self.batched[index] {
            return given;
        }
        let shape = self.shape(index);
        let with_axis = g.reshape(given, in_front(&[1], shape));
        g.expand(with_axis, self.whole(shape))
    }

    /// The axis in attribute `index`, in the shape of operand 0, counted with the batch axis.
    pub fn axis(&self, index: usize) -> i64 {
        let given = crate::operation::int(self.attributes, index);
        along(given, self.shape(0).rank(), self.operation)
    }
}

/// Returns the shape with `lengths`, then those of `shape`.
pub(crate) fn in_front(lengths: &[usize], shape: Shape) -> Shape {
    let dims: SmallVec<[usize; 8]> = lengths.iter().chain(shape.iter()).copied().collect();
    Shape::new(&dims).expect("the client has checked that there is room for the batch axis")
}

/// Returns an axis, counted with the batch axis.
fn along(given: i64, rank: usize, operation: &Operation) -> i64 {
    axis(given, rank, operation.name).expect("checked by infer") as i64 + 1
}

fn broadcast(g: &mut dyn Graph, batch: &BatchedCall) -> Var {
    let ranks = (0..batch.operands.len()).map(|index| batch.shape(index).rank());
    let rank = ranks.max().unwrap_or(0);
    let aligned = (0..batch.operands.len()).map(|index| {
        let Operand::Tensor(given) = batch.operands[index] else { return batch.operands[index] };
        let shape = batch.shape(index);
        let missing: SmallVec<[usize; 8]> = smallvec![1; rank - shape.rank()];
        if batch.batched[index] {
            let to = batch.whole(in_front(&missing, shape));
            return g.reshape(given, to).into();
        }
        // With the batch axis, operands without axes count fully in promotion, so this one must,
        // too.
        if rank == 0 { g.reshape(given, in_front(&[1], shape)).into() } else { given.into() }
    });
    let aligned: SmallVec<[Operand<Var>; 3]> = aligned.collect();
    g.emit(batch.operation, &aligned, batch.attributes.clone())
}

fn leading(g: &mut dyn Graph, batch: &BatchedCall) -> Var {
    let operands = (0..batch.operands.len()).map(|index| {
        if batch.operands[index].tensor().is_none() {
            return batch.operands[index];
        }
        let whole = batch.expanded(g, index);
        if batch.shape(index).rank() > 0 {
            return whole.into();
        }
        // A tensor without axes has one of length 1, for the axes that attributes name.
        g.reshape(whole, in_front(&[batch.size, 1], Shape::SCALAR)).into()
    });
    let operands: SmallVec<[Operand<Var>; 3]> = operands.collect();
    let attributes = shifted(batch);
    g.emit(batch.operation, &operands, attributes)
}

/// The attributes, with axes counted with the batch axis.
fn shifted(batch: &BatchedCall) -> Attributes {
    let mut attributes = batch.attributes.clone();
    let rank = batch.shape(0).rank();
    let declared = batch.operation.attributes().map(|(parameter, _)| parameter.kind);
    for (kind, attribute) in declared.zip(attributes.iter_mut()) {
        match (kind, &mut *attribute) {
            (ParameterKind::Dim, Attribute::Int(dim)) => *dim = along(*dim, rank, batch.operation),
            (ParameterKind::Dims, Attribute::Ints(dims)) => {
                let named = axes(dims, rank, batch.operation.name).expect("checked by infer");
                // A tensor without axes has one here.
                let named = if rank == 0 { vec![0] } else { named };
                *attribute =
                    Attribute::dims(&named.iter().map(|axis| axis + 1).collect::<Vec<_>>());
            }
            _ => {}
        }
    }
    attributes
}

/// Computes one call per element of the batch, and stacks the results.
fn each(g: &mut dyn Graph, batch: &BatchedCall) -> SmallVec<[Var; 2]> {
    let mut results: SmallVec<[Vec<Operand<Var>>; 2]> = smallvec![vec![]; batch.results.len()];
    for at in 0..batch.size {
        let operands = (0..batch.operands.len()).map(|index| {
            if !batch.batched[index] {
                return batch.operands[index];
            }
            let shape = batch.shape(index);
            let rank = shape.rank() + 1;
            let (mut starts, steps) = (vec![0; rank], vec![1; rank]);
            starts[0] = at as i64;
            let sizes: Vec<i64> = in_front(&[1], shape).iter().map(|&dim| dim as i64).collect();
            let part = g.slice(batch.tensor(index), &starts, &sizes, &steps);
            g.reshape(part, shape).into()
        });
        let operands: SmallVec<[Operand<Var>; 3]> = operands.collect();
        let first = g.emit(batch.operation, &operands, batch.attributes.clone());
        for (index, result) in results.iter_mut().enumerate() {
            let part = first.result(index as u32);
            let row = in_front(&[1], g.shape(part));
            result.push(g.reshape(part, row).into());
        }
    }
    let stacked = results.iter().zip(batch.results).map(|(parts, meta)| match parts.len() {
        0 => g.full(batch.whole(meta.shape), meta.dtype, 0i64),
        _ => g.emit(&crate::ops::shape::CAT, parts, smallvec![Attribute::Int(0)]),
    });
    stacked.collect()
}
