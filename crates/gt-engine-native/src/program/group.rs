//! A group: operations that are computed together, tile by tile.

use gt_ir::trace::Source;
use gt_ir::{DType, Meta, Shape};

use super::fold::Folding;
use super::tile_kernel::TileKernel;

/// Operations that are computed together, tile by tile. The elements are those of `shape`, viewed
/// as rows: the axes before `split` index the rows, the others the elements of a row.
pub struct Group {
    pub shape: Shape,
    /// The steps of the trace that the group computes.
    pub steps: Vec<u32>,
    /// The first axis within a row; `None` if nothing depends on it.
    pub split: Option<usize>,
    pub inputs: Vec<GroupInput>,
    pub nodes: Vec<GroupNode>,
    pub epilogues: Vec<Epilogue>,
    /// The nodes whose values are written to memory.
    pub outputs: Vec<Output>,
    /// The work for each element, in additions.
    pub cost: usize,
}

/// An input of a group.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GroupInput {
    /// A value of the trace, or a constant.
    pub source: Source,
    /// The input's dtype; for a number, the dtype that it is read in.
    pub dtype: DType,
    pub granularity: Granularity,
}

/// How many elements a value has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granularity {
    /// One for each element of the group.
    PerElement,
    /// One for each row.
    PerRow,
}

/// The source of a node's operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeSource {
    Input(u16),
    Node(u16),
}

/// An operation on a tile.
#[derive(Clone, Copy)]
pub struct GroupNode {
    pub kind: GroupNodeKind,
    pub inputs: [NodeSource; 3],
    pub arity: usize,
    pub granularity: Granularity,
    pub dtype: DType,
}

/// What a node computes.
#[derive(Clone, Copy)]
pub enum GroupNodeKind {
    /// An elementwise kernel.
    Map(TileKernel),
    /// A power whose exponent is this input of the group.
    Power(u16),
    /// Reduces each row to one element.
    Fold(Folding),
    /// Fills each row with its element.
    BroadcastRows,
}

/// A reduction over all tiles, whose result is ready only after the group.
pub struct Epilogue {
    pub folding: Folding,
    pub from: NodeSource,
    pub kind: EpilogueKind,
    pub value: u32,
    pub meta: Meta,
}

/// What an epilogue reduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpilogueKind {
    /// All elements.
    Total,
    /// The rows: one result for each column.
    Columns,
}

/// A node whose value is written to memory.
pub struct Output {
    pub node: u16,
    pub value: u32,
    pub meta: Meta,
    /// The inputs whose memory the result may take, if nothing else refers to it.
    pub replaces: Vec<u16>,
}

impl Group {
    /// Returns the number of rows, and of elements in each, for a split at this axis.
    pub fn extent(&self, split: usize) -> (usize, usize) {
        let dims = self.shape.dims();
        (dims[..split].iter().product(), dims[split..].iter().product())
    }

    /// Iterates over the inputs that are reduced directly.
    pub fn folded_inputs(&self) -> impl Iterator<Item = &Source> {
        let folds = self.nodes.iter().filter(|node| matches!(node.kind, GroupNodeKind::Fold(_)));
        let folded = folds
            .map(|node| node.inputs[0])
            .chain(self.epilogues.iter().map(|epilogue| epilogue.from));
        folded.filter_map(|from| match from {
            NodeSource::Input(input) => Some(&self.inputs[input as usize].source),
            NodeSource::Node(_) => None,
        })
    }

    /// Returns whether another group can be merged into this one.
    pub fn can_merge(&self, other: &Group) -> bool {
        let fits = self.split.is_none() || other.split.is_none() || self.split == other.split;
        fits && self.shape == other.shape && other.epilogues.is_empty()
    }

    /// Merges a group that reads none of this group's nodes; returns the number that its first node
    /// gets.
    pub fn merge(&mut self, other: Group) -> u16 {
        let offset = self.nodes.len() as u16;
        let inputs: Vec<u16> = other.inputs.into_iter().map(|input| self.input(input)).collect();
        let moved = |from: NodeSource| match from {
            NodeSource::Input(input) => NodeSource::Input(inputs[input as usize]),
            NodeSource::Node(node) => NodeSource::Node(node + offset),
        };
        for mut node in other.nodes {
            // Operands beyond the arity as well: a kernel receives all three.
            node.inputs = node.inputs.map(moved);
            if let GroupNodeKind::Power(exponent) = &mut node.kind {
                *exponent = inputs[*exponent as usize];
            }
            self.nodes.push(node);
        }
        self.steps.extend(other.steps);
        self.split = self.split.or(other.split);
        self.cost += other.cost;
        offset
    }

    /// Returns the number of an input, which is added if it does not exist.
    pub fn input(&mut self, input: GroupInput) -> u16 {
        let known = self.inputs.iter().position(|other| *other == input);
        known.unwrap_or_else(|| {
            self.inputs.push(input);
            self.inputs.len() - 1
        }) as u16
    }
}
