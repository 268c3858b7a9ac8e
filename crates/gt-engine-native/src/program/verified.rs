//! Groups that are safe to execute on raw memory.

use std::ops::Deref;

use gt_ir::DType;

use super::group::{EpilogueKind, Granularity, Group, GroupNodeKind, NodeSource, Output};

/// A group that was verified and does not change any more:
///
/// - A node reads only inputs and earlier nodes, of the dtypes that its kernel was compiled for. An
///   elementwise node reads values of the granularity that it writes.
/// - A node with an output has one output, of its dtype and of as many elements.
/// - An output that replaces an input's memory is written by the last node that reads the input, if
///   any does, and element by element: if that node reads the input, its kernel may run in place.
pub struct VerifiedGroup(Group);

impl Deref for VerifiedGroup {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.0
    }
}

impl VerifiedGroup {
    /// Verifies a group.
    ///
    /// # Panics
    /// The group is inconsistent.
    pub fn new(group: Group) -> VerifiedGroup {
        let nodes = (0..group.nodes.len()).all(|index| node_fits(&group, index));
        let outputs = (0..group.outputs.len()).all(|index| output_fits(&group, index));
        let epilogues = group.epilogues.iter().all(|epilogue| {
            read(&group, epilogue.from, group.nodes.len())
                == Some((epilogue.folding.dtype(), Granularity::PerElement))
        });
        assert!(
            nodes && outputs && epilogues && split_fits(&group),
            "a group that does not fit together"
        );
        VerifiedGroup(group)
    }
}

/// Returns the dtype and granularity of a node's source; `None` if it is not available to the node.
fn read(group: &Group, from: NodeSource, node: usize) -> Option<(DType, Granularity)> {
    match from {
        NodeSource::Input(input) => {
            group.inputs.get(input as usize).map(|it| (it.dtype, it.granularity))
        }
        NodeSource::Node(other) if usize::from(other) < node => {
            group.nodes.get(other as usize).map(|it| (it.dtype, it.granularity))
        }
        NodeSource::Node(_) => None,
    }
}

fn node_fits(group: &Group, index: usize) -> bool {
    let node = &group.nodes[index];
    // Kernels receive three inputs, whatever their arity.
    let [Some(first), Some(second), Some(third)] = node.inputs.map(|from| read(group, from, index))
    else {
        return false;
    };
    let reads = &[first, second, third][..node.arity];
    let (dtype, granularity) = (node.dtype, node.granularity);
    match node.kind {
        GroupNodeKind::Map(tile_kernel) => {
            let wanted = tile_kernel.kernel.inputs().map(|dtype| (dtype, granularity));
            tile_kernel.kernel.arity() == node.arity
                && reads == &wanted[..node.arity]
                && tile_kernel.kernel.result() == dtype
        }
        GroupNodeKind::Power(exponent) => {
            reads == [(dtype, granularity); 2] && usize::from(exponent) < group.inputs.len()
        }
        GroupNodeKind::Fold(folding) => {
            reads == [(folding.dtype(), Granularity::PerElement)]
                && (dtype, granularity) == (folding.dtype(), Granularity::PerRow)
        }
        GroupNodeKind::BroadcastRows => {
            reads == [(dtype, Granularity::PerRow)] && granularity == Granularity::PerElement
        }
    }
}

fn output_fits(group: &Group, index: usize) -> bool {
    let output = &group.outputs[index];
    let Some(node) = group.nodes.get(output.node as usize) else { return false };
    let count = match (node.granularity, group.split) {
        (Granularity::PerElement, _) => group.shape.numel(),
        (Granularity::PerRow, Some(split)) => group.extent(split).0,
        (Granularity::PerRow, None) => return false,
    };
    let is_only = group.outputs[..index].iter().all(|other| other.node != output.node);
    is_only
        && output.meta.dtype == node.dtype
        && output.meta.shape.numel() == count
        && output.replaces.iter().all(|&input| may_replace(group, output, input))
}

/// Returns whether an output may be written to the memory of an input.
fn may_replace(group: &Group, output: &Output, input: u16) -> bool {
    let here = NodeSource::Input(input);
    let (writer, later) = group.nodes[output.node as usize..]
        .split_first()
        .expect("an output is a node of the group");
    let GroupNodeKind::Map(tile_kernel) = writer.kind else { return false };
    let first_is_it =
        writer.inputs[0] == here && tile_kernel.kernel.is_in_place_on(output.meta.dtype);
    let rest_is_not = !writer.inputs[1..writer.arity].contains(&here);
    read(group, here, 0) == Some((output.meta.dtype, Granularity::PerElement))
        && writer.granularity == Granularity::PerElement
        && (first_is_it || writer.inputs[0] != here)
        && rest_is_not
        && !later.iter().any(|node| node.inputs[..node.arity].contains(&here))
        && !group.epilogues.iter().any(|epilogue| epilogue.from == here)
}

/// Returns whether the split is valid, and known if anything depends on rows.
fn split_fits(group: &Group) -> bool {
    let by_rows = group.nodes.iter().any(|node| node.granularity == Granularity::PerRow)
        || group.inputs.iter().any(|input| input.granularity == Granularity::PerRow)
        || group.epilogues.iter().any(|epilogue| epilogue.kind == EpilogueKind::Columns);
    group.split.map_or(!by_rows, |split| split <= group.shape.rank())
}
