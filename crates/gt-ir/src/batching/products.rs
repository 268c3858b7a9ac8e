//! Batching rules of matrix products and convolutions: the batch axis is merged into an existing
//! axis.

use super::structure::{folded, moved};
use super::{BatchedCall, broadcast, in_front};
use crate::instruction::Attribute;
use crate::operation::{Graph, Var, int};
use crate::shape::Shape;

/// With one right matrix for the whole batch, the batch axis is merged into the rows of the left
/// one.
pub fn matmul(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    if batch.batched[1] || batch.shape(1).rank() != 2 {
        return Some(broadcast(g, batch));
    }
    let left = batch.tensor(0);
    let rows = folded(g.shape(left), batch.shape(0).rank());
    let left = g.reshape(left, rows);
    Some(g.matmul(left, batch.tensor(1)))
}

/// The rows of each element of the batch are folded into one axis, for a batched product.
pub fn weight_backward(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let rows = |g: &mut dyn Graph, operand: usize| {
        let shape = batch.shape(operand);
        let (width, rest) = shape.dims().split_last().expect("two axes or more");
        let count = rest.iter().product();
        let given = batch.expanded(g, operand);
        g.reshape(given, Shape::new(&[batch.size, count, *width]).expect("three axes"))
    };
    let (input, grad) = (rows(g, 0), rows(g, 1));
    let turned = g.transpose(input);
    Some(g.matmul(turned, grad))
}

/// Batched inputs are merged into the convolution's own batch axis, and batched kernels into its
/// output channels. Where both are batched, each element of the batch has groups of its own.
pub fn convolution(g: &mut dyn Graph, batch: &BatchedCall) -> Option<Var> {
    let size = batch.size;
    let (input, weight) = (batch.shape(0), batch.shape(1));
    if !batch.batched[1] {
        let input = g.reshape(batch.tensor(0), folded(batch.whole(input), 2));
        return Some(g.emit(
            batch.operation,
            &[input.into(), batch.operands[1]],
            batch.attributes.clone(),
        ));
    }
    let place = batch.attributes.len() - 1;
    let groups = int(batch.attributes, place) as usize;
    let (count, outputs) = (input[0], weight[0]);
    let spatial = Shape::new(&batch.results[0].shape[2..]).expect("part of a shape");
    let kernels = Shape::new(&weight[1..]).expect("part of a shape");
    if batch.batched[0] {
        // (B, N, C) to (N, B * C), so that the groups of each element of the batch are consecutive.
        let channels = Shape::new(&input[2..]).expect("part of a shape");
        let input_channels = size * input[1];
        let turned = moved(g, batch.tensor(0), 0, 1);
        let wide = g.reshape(turned, in_front(&[count, input_channels], channels));
        let kernels = g.reshape(batch.tensor(1), in_front(&[size * outputs], kernels));
        let mut attributes = batch.attributes.clone();
        attributes[place] = Attribute::Int((groups * size) as i64);
        let result = g.emit(batch.operation, &[wide.into(), kernels.into()], attributes);
        let split = g.reshape(result, in_front(&[count, size, outputs], spatial));
        return Some(moved(g, split, 1, 0));
    }
    // Outputs are in the order of their groups: the batch axis is placed after the groups.
    let each = outputs / groups;
    let split = g.reshape(batch.tensor(1), in_front(&[size, groups, each], kernels));
    let turned = moved(g, split, 0, 1);
    let kernels = g.reshape(turned, in_front(&[size * outputs], kernels));
    let operands = [batch.operands[0], kernels.into()];
    let result = g.emit(batch.operation, &operands, batch.attributes.clone());
    let split = g.reshape(result, in_front(&[count, groups, size, each], spatial));
    Some(moved(g, split, 2, 0))
}
