//! Units while they are built: where each value is made, and how a group reads it.

use gt_ir::{DType, Operand};
use gt_worker::plan::{Input, Plan, Source};
use rustc_hash::FxHashMap;

use crate::program::group::{From, Group, GroupInput, GroupNode, GroupNodeKind, Space};
use crate::program::micro::Micro;

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Home {
    Input,
    /// Made by a step of its own, or at the end of a group.
    Unit(usize),
    /// In a group, tile by tile.
    Node {
        unit: usize,
        node: u16,
    },
}

impl Home {
    /// The unit that makes the value, if any does.
    pub(super) fn unit(self) -> Option<usize> {
        match self {
            Home::Input => None,
            Home::Unit(unit) | Home::Node { unit, .. } => Some(unit),
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
        homes: &[Home],
        unit: usize,
        source: Source,
        wanted: DType,
        space: Space,
    ) -> From {
        if let Operand::Tensor(value) = source
            && let Home::Node { unit: home, node } = homes[value as usize]
            && home == unit
        {
            let GroupNode { dtype, space: there, .. } = self.group.nodes[node as usize];
            let mut from = From::GroupNode(node);
            if dtype != wanted {
                from = From::GroupNode(self.cast(from, dtype, wanted, there));
            }
            if (there, space) == (Space::Rows, Space::Full) {
                from = From::GroupNode(self.spread(from, wanted));
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
        let input = GroupInput { source, dtype: given, space };
        let from = From::Input(self.group.input(input));
        if given == wanted { from } else { From::GroupNode(self.cast(from, given, wanted, space)) }
    }

    /// The node that casts from one dtype to another, which is added if there is none yet.
    pub(super) fn cast(&mut self, from: From, given: DType, wanted: DType, space: Space) -> u16 {
        let cast = Micro::cast(given, wanted);
        let kind = GroupNodeKind::Map(cast);
        let same = |node: &GroupNode| {
            matches!(node.kind, GroupNodeKind::Map(micro) if micro.kernel.is(&cast.kernel))
                && node.inputs[0] == from
                && node.space == space
        };
        if let Some(known) = self.group.nodes.iter().position(same) {
            return known as u16;
        }
        self.push(GroupNode { kind, inputs: [from; 3], arity: 1, space, dtype: wanted })
    }

    /// The node that fills rows with their elements, which is added if there is none yet.
    fn spread(&mut self, from: From, dtype: DType) -> u16 {
        let same =
            |node: &GroupNode| matches!(node.kind, GroupNodeKind::Spread) && node.inputs[0] == from;
        if let Some(known) = self.group.nodes.iter().position(same) {
            return known as u16;
        }
        let (kind, space) = (GroupNodeKind::Spread, Space::Full);
        self.push(GroupNode { kind, inputs: [from; 3], arity: 1, space, dtype })
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
