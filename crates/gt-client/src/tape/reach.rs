//! Which tensors the history of another one leads to.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::Node;
use crate::tensor::Tensor;

/// For each of `on`, whether it, or what made it, is part of how `result` came to be.
pub fn depends(result: &Tensor, on: &[Tensor]) -> Vec<bool> {
    let wanted: Vec<Option<Arc<Node>>> = on.iter().map(Tensor::node).collect();
    // Nodes that are older than all that are looked for lead to none of them.
    let Some(oldest) = wanted.iter().flatten().map(|node| node.number).min() else {
        return vec![false; on.len()];
    };
    let mut seen = FxHashSet::default();
    let mut pending: Vec<Arc<Node>> = result.node().into_iter().collect();
    while let Some(node) = pending.pop() {
        if node.number >= oldest && seen.insert(node.number) {
            pending.extend(node.parents().map(Arc::clone));
        }
    }
    let is_seen =
        |node: &Option<Arc<Node>>| node.as_ref().is_some_and(|node| seen.contains(&node.number));
    wanted.iter().map(is_seen).collect()
}
