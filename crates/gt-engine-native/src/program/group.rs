//! A group: operations that go over the same elements together.

use gt_ir::{DType, Meta, Shape};
use gt_worker::plan::Source;

use super::fold::Folding;
use super::tile_kernel::TileKernel;

/// Operations that are run tile by tile. Its elements are those of `shape`, seen as rows: the axes
/// before `split` number the rows, those from it on the elements of a row.
pub struct Group {
    pub shape: Shape,
    /// The steps of the plan that it does.
    pub steps: Vec<u32>,
    /// Where rows end; `None` as long as nothing depends on it.
    pub split: Option<usize>,
    pub inputs: Vec<GroupInput>,
    pub nodes: Vec<GroupNode>,
    pub epilogues: Vec<Epilogue>,
    /// What is written to memory: the node and the value that it is.
    pub outputs: Vec<Output>,
    /// How much work an element is, in additions.
    pub cost: usize,
}

/// What a group is given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GroupInput {
    /// A value of the plan, or a constant.
    pub source: Source,
    /// The dtype it has; of a number, the one that is wanted.
    pub dtype: DType,
    pub granularity: Granularity,
}

/// Where a value has its elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granularity {
    /// At every element.
    PerElement,
    /// One for each row.
    PerRow,
}

/// Where a node finds what it reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeSource {
    Input(u16),
    Node(u16),
}

/// What is done to a tile.
#[derive(Clone, Copy)]
pub struct GroupNode {
    pub kind: GroupNodeKind,
    pub inputs: [NodeSource; 3],
    pub arity: usize,
    pub granularity: Granularity,
    pub dtype: DType,
}

#[derive(Clone, Copy)]
pub enum GroupNodeKind {
    /// Element by element.
    Map(TileKernel),
    /// A power whose exponent is the group's input of this number.
    Power(u16),
    /// Rows are folded into one element each.
    Fold(Folding),
    /// Each row is filled with its element.
    BroadcastRows,
}

/// A reduction that needs all tiles: its result is ready only after the group.
pub struct Epilogue {
    pub folding: Folding,
    pub from: NodeSource,
    /// Over everything, or over the rows.
    pub kind: EpilogueKind,
    pub value: u32,
    pub meta: Meta,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EpilogueKind {
    Total,
    Columns,
}

/// A node whose result is kept.
pub struct Output {
    pub node: u16,
    pub value: u32,
    pub meta: Meta,
    /// The inputs whose memory it may take, if it has no other reference.
    pub replaces: Vec<u16>,
}

impl Group {
    /// The number of rows, and of elements in each, where rows end at axis `split`.
    pub fn extent(&self, split: usize) -> (usize, usize) {
        let dims = self.shape.dims();
        (dims[..split].iter().product(), dims[split..].iter().product())
    }

    /// The inputs that are folded as they come.
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

    /// Whether it may take in another group.
    pub fn can_merge(&self, other: &Group) -> bool {
        let fits = self.split.is_none() || other.split.is_none() || self.split == other.split;
        fits && self.shape == other.shape && other.epilogues.is_empty()
    }

    /// Takes in the nodes of a group that reads none of its own; gives the number from which theirs
    /// go on.
    pub fn merge(&mut self, other: Group) -> u16 {
        let offset = self.nodes.len() as u16;
        let inputs: Vec<u16> = other.inputs.into_iter().map(|input| self.input(input)).collect();
        let moved = |from: NodeSource| match from {
            NodeSource::Input(input) => NodeSource::Input(inputs[input as usize]),
            NodeSource::Node(node) => NodeSource::Node(node + offset),
        };
        for mut node in other.nodes {
            // Those beyond its arity, too: a kernel is given all three.
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

    /// The number of an input, which is added if there is none like it.
    pub fn input(&mut self, input: GroupInput) -> u16 {
        let known = self.inputs.iter().position(|other| *other == input);
        known.unwrap_or_else(|| {
            self.inputs.push(input);
            self.inputs.len() - 1
        }) as u16
    }
}
