//! Which tensors another one depends on.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::tensor::Tensor;
use crate::tensor::node::TapeNode;

/// Returns for each of `on` whether `result` depends on it.
pub fn depends(result: &Tensor, on: &[Tensor]) -> Vec<bool> {
    let wanted: Vec<Option<Arc<TapeNode>>> = on.iter().map(Tensor::node).collect();
    // Nodes that are older than all requested ones lead to none of them.
    let Some(oldest) = wanted.iter().flatten().map(|node| node.number).min() else {
        return vec![false; on.len()];
    };
    let mut seen = FxHashSet::default();
    let mut pending: Vec<Arc<TapeNode>> = result.node().into_iter().collect();
    while let Some(node) = pending.pop() {
        if node.number >= oldest && seen.insert(node.number) {
            pending.extend(node.parents().map(Arc::clone));
        }
    }
    let is_seen = |node: &Option<Arc<TapeNode>>| {
        node.as_ref().is_some_and(|node| seen.contains(&node.number))
    };
    wanted.iter().map(is_seen).collect()
}
