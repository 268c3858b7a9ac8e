//! Batching rules of operations whose attributes are a shape, a permutation of axes or a region.

use smallvec::{SmallVec, smallvec};

use super::{BatchedCall, in_front, leading};
use crate::instruction::Attribute;
use crate::operation::{Graph, Var, ints};
use crate::shape::{Shape, axes};

fn list(values: impl Iterator<Item = i64>) -> SmallVec<[i64; 8]> {
    values.collect()
}

/// The shape in attribute 0 receives the batch axis in front.
pub fn reshape(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    Some(g.reshape(batch.tensor(0), batch.whole(batch.results[0].shape)))
}

/// New leading axes are inserted between the batch axis and the others.
pub fn expand(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let (from, to) = (batch.shape(0), batch.results[0].shape);
    let new: SmallVec<[usize; 8]> = smallvec![1; to.rank() - from.rank()];
    let aligned = g.reshape(batch.tensor(0), batch.whole(in_front(&new, from)));
    Some(g.expand(aligned, batch.whole(to)))
}

/// The batch axis stays in front.
pub fn permute(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let order = axes_in_order(batch);
    Some(g.permute(batch.tensor(0), &list(std::iter::once(0).chain(order))))
}

pub fn flip(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let axes: SmallVec<[i64; 8]> = axes_in_order(batch).collect();
    Some(g.emit(batch.operation, &[batch.tensor(0).into()], smallvec![Attribute::ints(&axes)]))
}

/// Returns the axes in attribute 0, counted with the batch axis.
fn axes_in_order<'a>(batch: &BatchedCall<'a>) -> impl Iterator<Item = i64> + use<'a> {
    let rank = batch.shape(0).rank() as i64;
    let given = ints(batch.attributes, 0);
    axes(given, rank as usize, batch.operation.name).expect("checked by infer");
    given.iter().map(move |&axis| if axis < 0 { axis + rank + 1 } else { axis + 1 })
}

/// Batches argmax and argmin: without an axis, the index is into the flattened tensor.
pub fn place(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    if !ints(batch.attributes, 0).is_empty() {
        return Some(leading(g, batch));
    }
    let flat = g.reshape(batch.tensor(0), in_front(&[batch.size], flattened(batch.shape(0))));
    let along = smallvec![Attribute::ints(&[1i64]), Attribute::Bool(false)];
    Some(g.emit(batch.operation, &[flat.into()], along))
}

fn flattened(shape: Shape) -> Shape {
    folded(shape, shape.rank())
}

/// The region includes all of the batch axis.
pub fn slice(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let [starts, sizes, steps] = region(batch);
    Some(g.slice(batch.tensor(0), &starts, &sizes, &steps))
}

pub fn slice_assign(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let [starts, sizes, steps] = region(batch);
    let whole = batch.expanded(g, 0);
    let value = if batch.batched[1] {
        let missing = batch.shape(0).rank() - batch.shape(1).rank();
        let ones: SmallVec<[usize; 8]> = smallvec![1; missing];
        let to = batch.whole(in_front(&ones, batch.shape(1)));
        g.reshape(batch.tensor(1), to).into()
    } else {
        batch.operands[1]
    };
    let attributes =
        smallvec![Attribute::ints(&starts), Attribute::ints(&sizes), Attribute::ints(&steps)];
    Some(g.emit(batch.operation, &[whole.into(), value], attributes))
}

/// Returns starts, sizes and steps, with those of the batch axis first.
fn region(batch: &BatchedCall) -> [SmallVec<[i64; 8]>; 3] {
    let firsts = [0, batch.size as i64, 1];
    [0, 1, 2].map(|index| {
        let given = ints(batch.attributes, index).iter().copied();
        list(std::iter::once(firsts[index]).chain(given))
    })
}

/// Moves an axis, keeping the order of all others.
pub(super) fn moved(g: &mut dyn Graph, x: Var, from: usize, to: usize) -> Var {
    let mut order: SmallVec<[i64; 8]> = (0..g.shape(x).rank() as i64).collect();
    let axis = order.remove(from);
    order.insert(to, axis);
    g.permute(x, &order)
}

/// Returns a shape with its axes before `end` merged into one.
pub(super) fn folded(shape: Shape, end: usize) -> Shape {
    in_front(&[shape[..end].iter().product()], Shape::new(&shape[end..]).expect("part of a shape"))
}
