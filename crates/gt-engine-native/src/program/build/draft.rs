//! Units under construction: where each value is computed, and how a group reads it.

use gt_ir::trace::{Input, Source, Trace};
use gt_ir::{DType, Operand};
use rustc_hash::FxHashMap;

use crate::program::group::{Granularity, Group, GroupInput, GroupNode, GroupNodeKind, NodeSource};
use crate::program::tile_kernel::TileKernel;

/// Where a value is computed.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ValueOrigin {
    Input,
    /// By a step of its own, or by the epilogue of a group.
    Unit(usize),
    /// By a node of a group, tile by tile.
    Node {
        unit: usize,
        node: u16,
    },
}

impl ValueOrigin {
    /// Returns the unit that computes the value, if any does.
    pub(super) fn unit(self) -> Option<usize> {
        match self {
            ValueOrigin::Input => None,
            ValueOrigin::Unit(unit) | ValueOrigin::Node { unit, .. } => Some(unit),
        }
    }
}

/// A unit under construction.
pub(super) enum Draft {
    /// Merged into a later group.
    Gone,
    Single(u32),
    Group(Box<GroupDraft>),
}

/// A group under construction.
pub(super) struct GroupDraft {
    pub(super) group: Group,
    /// The nodes that compute values of the trace, by value.
    pub(super) values: FxHashMap<u32, u16>,
    /// Whether another unit reads one of these values.
    pub(super) is_read: bool,
}

impl GroupDraft {
    /// Adds a node and returns its number.
    pub(super) fn push(&mut self, node: GroupNode) -> u16 {
        self.group.nodes.push(node);
        self.group.nodes.len() as u16 - 1
    }

    /// Returns the source of a value in the dtype and granularity in which it is read; adds nodes
    /// that cast and broadcast it as needed.
    pub(super) fn read(
        &mut self,
        trace: &Trace,
        origins: &[ValueOrigin],
        unit: usize,
        source: Source,
        wanted: DType,
        granularity: Granularity,
    ) -> NodeSource {
        if let Operand::Tensor(value) = source
            && let ValueOrigin::Node { unit: origin, node } = origins[value as usize]
            && origin == unit
        {
            let GroupNode { dtype, granularity: there, .. } = self.group.nodes[node as usize];
            let mut from = NodeSource::Node(node);
            if dtype != wanted {
                from = NodeSource::Node(self.cast(from, dtype, wanted, there));
            }
            if (there, granularity) == (Granularity::PerRow, Granularity::PerElement) {
                from = NodeSource::Node(self.broadcast_rows(from, wanted));
            }
            return from;
        }
        let number = is_number(trace, source);
        let given = match source {
            Operand::Tensor(value) if !number => {
                trace.meta(value).tensor().expect("the value is a tensor").dtype
            }
            _ => wanted,
        };
        let input = GroupInput { source, dtype: given, granularity };
        let from = NodeSource::Input(self.group.input(input));
        if given == wanted {
            from
        } else {
            NodeSource::Node(self.cast(from, given, wanted, granularity))
        }
    }

    /// Returns the node that casts from one dtype to another, and adds it if it does not exist.
    pub(super) fn cast(
        &mut self,
        from: NodeSource,
        given: DType,
        wanted: DType,
        granularity: Granularity,
    ) -> u16 {
        let cast = TileKernel::cast(given, wanted);
        let kind = GroupNodeKind::Map(cast);
        let same = |node: &GroupNode| {
            matches!(node.kind, GroupNodeKind::Map(tile_kernel) if tile_kernel.kernel.is(&cast.kernel))
                && node.inputs[0] == from
                && node.granularity == granularity
        };
        if let Some(known) = self.group.nodes.iter().position(same) {
            return known as u16;
        }
        self.push(GroupNode { kind, inputs: [from; 3], arity: 1, granularity, dtype: wanted })
    }

    /// Returns the node that fills rows with their element, and adds it if it does not exist.
    fn broadcast_rows(&mut self, from: NodeSource, dtype: DType) -> u16 {
        let same = |node: &GroupNode| {
            matches!(node.kind, GroupNodeKind::BroadcastRows) && node.inputs[0] == from
        };
        if let Some(known) = self.group.nodes.iter().position(same) {
            return known as u16;
        }
        let (kind, granularity) = (GroupNodeKind::BroadcastRows, Granularity::PerElement);
        self.push(GroupNode { kind, inputs: [from; 3], arity: 1, granularity, dtype })
    }
}

/// Returns whether a source is a number rather than a tensor.
pub(super) fn is_number(trace: &Trace, source: Source) -> bool {
    match source {
        Operand::Scalar(_) => true,
        Operand::Tensor(value) => {
            matches!(trace.inputs.get(value as usize), Some(Input::Number(_)))
        }
    }
}
