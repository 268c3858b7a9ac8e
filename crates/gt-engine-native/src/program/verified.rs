//! Groups that are fit to be run over raw memory.

use std::ops::Deref;

use gt_ir::DType;

use super::group::{EpilogueKind, Granularity, Group, GroupNodeKind, NodeSource, Output};

/// A group whose parts fit together, and stay as they are:
///
/// - A node reads only inputs and nodes before it, of the dtypes that its kernel was made for. A
///   map reads elements where it writes them: at every element, or one for each row.
/// - A kept node has a result of its own, of its dtype and of as many elements.
/// - A result that takes over an input's memory is written by the last node that reads the input,
///   if any does, and element by element: where it reads one, by a kernel that works in place.
pub struct VerifiedGroup(Group);

impl Deref for VerifiedGroup {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.0
    }
}

impl VerifiedGroup {
    /// # Panics
    /// The group does not fit together.
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

/// The dtype and space of what is read at a place by a node; `None` if it is not there by then.
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
    // Kernels are given three inputs, whatever they read of them.
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

/// Whether a result may be written where an input is read.
fn may_replace(group: &Group, output: &Output, input: u16) -> bool {
    let here = NodeSource::Input(input);
    let (writer, later) = group.nodes[output.node as usize..].split_first().expect("it is a node");
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

/// If an input is described by rows, the ends of the rows are known.
fn split_fits(group: &Group) -> bool {
    let by_rows = group.nodes.iter().any(|node| node.granularity == Granularity::PerRow)
        || group.inputs.iter().any(|input| input.granularity == Granularity::PerRow)
        || group.epilogues.iter().any(|epilogue| epilogue.kind == EpilogueKind::Columns);
    group.split.map_or(!by_rows, |split| split <= group.shape.rank())
}
