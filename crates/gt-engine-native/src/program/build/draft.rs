//! Units while they are built: where each value is made, and how a group reads it.

use gt_ir::{DType, Operand};
use gt_worker::plan::{Input, Plan, Source};
use rustc_hash::FxHashMap;

use crate::program::group::{Granularity, Group, GroupInput, GroupNode, GroupNodeKind, NodeSource};
use crate::program::tile_kernel::TileKernel;

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ValueOrigin {
    Input,
    /// Made by a step of its own, or at the end of a group.
    Unit(usize),
    /// In a group, tile by tile.
    Node {
        unit: usize,
        node: u16,
    },
}

impl ValueOrigin {
    /// The unit that makes the value, if any does.
    pub(super) fn unit(self) -> Option<usize> {
        match self {
            ValueOrigin::Input => None,
            ValueOrigin::Unit(unit) | ValueOrigin::Node { unit, .. } => Some(unit),
        }
    }
}

/// A unit while the plan is cut.
pub(super) enum Draft {
    /// A later group took it in.
    Gone,
    Single(u32),
    Group(Box<GroupDraft>),
}

/// A group while it grows.
pub(super) struct GroupDraft {
    pub(super) group: Group,
    /// The nodes that are values of the plan.
    pub(super) values: FxHashMap<u32, u16>,
    /// Whether another unit reads one of them.
    pub(super) is_read: bool,
}

impl GroupDraft {
    /// Adds a node; gives its number.
    pub(super) fn push(&mut self, node: GroupNode) -> u16 {
        self.group.nodes.push(node);
        self.group.nodes.len() as u16 - 1
    }

    /// A value in the dtype and space in which it is read.
    pub(super) fn read(
        &mut self,
        plan: &Plan,
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
        let number = is_number(plan, source);
        let given = match source {
            Operand::Tensor(value) if !number => {
                plan.meta(value).tensor().expect("not a number").dtype
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

    /// The node that casts from one dtype to another, which is added if there is none yet.
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

    /// The node that fills rows with their elements, which is added if there is none yet.
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

/// Whether a source is a number rather than a tensor.
pub(super) fn is_number(plan: &Plan, source: Source) -> bool {
    match source {
        Operand::Scalar(_) => true,
        Operand::Tensor(value) => {
            matches!(plan.inputs.get(value as usize), Some(Input::Number(_)))
        }
    }
}
