//! Batching rules of operations with indices and masks.

use smallvec::{SmallVec, smallvec};

use super::structure::{folded, moved};
use super::{BatchedCall, in_front, leading};
use crate::instruction::Attribute;
use crate::operation::{Graph, Operation, Var};
use crate::ops::index::{INDEX_ADD, SCATTER_ADD};
use crate::ops::scatter::SCATTER;
use crate::shape::Shape;

/// With one index for the whole batch, the batch axis is a further axis of the tensor. With an
/// index per element of the batch, rows are selected from a shared tensor, or gathered from a
/// batched one.
pub fn index_select(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let along = batch.axis(0);
    if !batch.batched[1] {
        return Some(g.index_select(batch.tensor(0), batch.tensor(1), along));
    }
    if batch.batched[0] {
        let index = beside_rows(g, batch, batch.results[0].shape);
        return Some(g.gather(batch.tensor(0), index, along));
    }
    let index = batch.tensor(1);
    let flat = g.reshape(index, folded(g.shape(index), 2));
    let along = along as usize - 1;
    let rows = g.index_select(batch.tensor(0), flat, along as i64);
    let shape = batch.shape(0);
    let before = Shape::new(&shape[..along]).expect("part of a shape");
    let after = Shape::new(&shape[along + 1..]).expect("part of a shape");
    let lengths = [batch.size, batch.shape(1)[0]];
    let split = in_front(&before, in_front(&lengths, after));
    let rows = g.reshape(rows, split);
    Some(moved(g, rows, along, 0))
}

/// Batches index_add and index_copy. A batched index is expanded to one for each element of the
/// source.
pub fn index_write(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let (input, source) = (batch.expanded(g, 0), batch.expanded(g, 2));
    let along = smallvec![Attribute::Int(batch.axis(0))];
    if !batch.batched[1] {
        let operands = [input.into(), batch.operands[1], source.into()];
        return Some(g.emit(batch.operation, &operands, along));
    }
    let index = beside_rows(g, batch, batch.shape(2));
    let pointwise: &'static Operation =
        if batch.operation == &INDEX_ADD { &SCATTER_ADD } else { &SCATTER };
    Some(g.emit(pointwise, &[input.into(), index.into(), source.into()], along))
}

/// Returns the batched index, repeated for all elements of `rows`.
fn beside_rows(g: &mut dyn Graph, batch: &BatchedCall, rows: Shape) -> Var {
    let along = batch.axis(0) as usize;
    let mut lengths: SmallVec<[usize; 8]> = smallvec![1; rows.rank() + 1];
    lengths[0] = batch.size;
    lengths[along] = rows[along - 1];
    let index = g.reshape(batch.tensor(1), in_front(&lengths, Shape::SCALAR));
    g.expand(index, batch.whole(rows))
}

/// From a one-axis tensor that the whole batch shares, values are gathered by one longer index.
pub fn gather(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    if batch.batched[0] || batch.shape(0).rank() != 1 {
        return Some(leading(g, batch));
    }
    let index = batch.tensor(1);
    let flat = g.reshape(index, folded(g.shape(index), 2));
    Some(g.gather(batch.tensor(0), flat, 0))
}

/// With one mask for the whole batch, the batch axis is placed after the masked axes.
pub fn masked_rows(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    if batch.batched[1] {
        return None;
    }
    let masked = batch.shape(1).rank();
    let rows = moved(g, batch.tensor(0), 0, masked);
    let picked =
        g.emit(batch.operation, &[rows.into(), batch.operands[1]], batch.attributes.clone());
    Some(moved(g, picked, 1, 0))
}

pub fn masked_rows_scatter(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    if batch.batched[1] {
        return None;
    }
    let masked = batch.shape(1).rank();
    let (input, source) = (batch.expanded(g, 0), batch.expanded(g, 2));
    let (input, source) = (moved(g, input, 0, masked), moved(g, source, 0, 1));
    let operands = [input.into(), batch.operands[1], source.into()];
    let written = g.emit(batch.operation, &operands, smallvec![]);
    Some(moved(g, written, masked, 0))
}
