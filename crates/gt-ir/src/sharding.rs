//! Sharding rules: along which axes an operation may be divided into parts.
//!
//! A rule names *factors*, such as `m`, `k` and `n` in `m k, k n -> m n`. Sharded along a factor,
//! each worker has its part of every axis that runs over the factor, and all of the other axes. A
//! factor in the output yields a shard of it; a factor that is missing there (a reduced factor)
//! yields partial results.

use smallvec::{SmallVec, smallvec};

use crate::call::{Call, Meta};
use crate::instruction::{Attribute, Attributes};
use crate::shape::{MAX_RANK, Shape, axes, axis};

/// How partial results are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    Sum,
    Prod,
    Max,
    Min,
}

crate::record!(enum Reduction { 1 => Sum, 2 => Prod, 3 => Max, 4 => Min });

impl Reduction {
    pub const fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Prod => "prod",
            Reduction::Max => "max",
            Reduction::Min => "min",
        }
    }
}

/// The factor that an axis runs over, with `inner` consecutive elements for each of its values. A
/// reshape of (4, 3) to 12 has a factor of 4 with `inner` 3 on its output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FactorRun {
    pub factor: u8,
    pub inner: usize,
}

/// The runs of one tensor's axes; `None` for an axis that cannot be sharded.
pub type Runs = SmallVec<[Option<FactorRun>; 4]>;

/// The sharding rule of one use of an operation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rule {
    pub operands: SmallVec<[Runs; 3]>,
    pub output: Runs,
    /// Factors that are not in the output, and how partial results are combined.
    pub reduced: SmallVec<[(u8, Reduction); 4]>,
    /// Each part's result is an average, to be weighted by the part's share.
    pub averaged: bool,
    /// When sharded along a reduced factor, the first operand is a summand that is added once, not
    /// once for each part.
    pub adds_first: bool,
    /// The sets of operands (as bits) in which the operation is linear: partial sums of them yield
    /// partial sums of the result.
    pub linear: SmallVec<[u64; 2]>,
}

/// Derives the rule from operands, attributes and result.
pub type Sharding = fn(&Call, &Meta) -> Rule;

/// A worker's part of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub starts: [usize; MAX_RANK],
    pub shape: Shape,
}

impl Block {
    /// Returns the block of a whole tensor.
    pub fn whole(shape: Shape) -> Block {
        Block { starts: [0; MAX_RANK], shape }
    }

    /// The intersection of two parts of one tensor.
    pub fn intersect(&self, other: &Block) -> Option<Block> {
        let mut block = *self;
        for axis in 0..self.shape.rank() {
            let start = self.starts[axis].max(other.starts[axis]);
            let ends =
                (self.starts[axis] + self.shape[axis], other.starts[axis] + other.shape[axis]);
            let end = ends.0.min(ends.1);
            if end <= start {
                return None;
            }
            block.starts[axis] = start;
            block.shape = block.shape.with(axis, end - start);
        }
        Some(block)
    }

    /// Returns this block in coordinates of `outer`, which contains it.
    pub fn within(&self, outer: &Block) -> Block {
        let mut block = *self;
        for axis in 0..self.shape.rank() {
            block.starts[axis] -= outer.starts[axis];
        }
        block
    }

    /// The attributes (starts, sizes, steps) of the slice that takes it.
    pub fn region(&self) -> Attributes {
        let rank = self.shape.rank();
        smallvec![
            Attribute::dims(&self.starts[..rank]),
            Attribute::dims(&self.shape),
            Attribute::ints(&vec![1i64; rank]),
        ]
    }

    /// The axis along which the blocks, in order, concatenate to the whole; `None` if they do not.
    pub fn stacked_axis(blocks: &[Block], whole: Shape) -> Option<usize> {
        let rank = whole.rank();
        let first = blocks.first()?;
        let axis = (0..rank).find(|&axis| first.shape[axis] != whole[axis])?;
        let mut end = 0;
        for block in blocks {
            let fits = (0..rank).all(|other| {
                other == axis || (block.starts[other], block.shape[other]) == (0, whole[other])
            });
            if !fits || block.starts[axis] != end {
                return None;
            }
            end += block.shape[axis];
        }
        (end == whole[axis]).then_some(axis)
    }
}

/// The part of an instruction that one worker computes.
pub struct LocalPart<'a> {
    /// The worker's parts of the operands; `None` for numbers.
    pub operands: &'a [Option<Block>],
    pub output: Block,
    /// The shape of the whole output.
    pub whole: Shape,
}

/// Converts attributes of the whole tensor to those of a part.
pub type Localize = fn(&Attributes, &LocalPart) -> Attributes;

impl Rule {
    /// Returns the rule without factors: nothing can be sharded.
    pub fn whole(call: &Call, output: &Meta) -> Rule {
        let runs = |rank: usize| smallvec::smallvec![None; rank];
        Rule {
            operands: call
                .operands
                .iter()
                .map(|operand| runs(operand.tensor().map_or(0, |meta| meta.shape.rank())))
                .collect(),
            output: runs(output.shape.rank()),
            ..Rule::default()
        }
    }

    /// Returns the rule with these sets of operands, as bits, in which the operation is linear.
    pub fn linear_in(mut self, sets: &[u64]) -> Rule {
        self.linear = SmallVec::from_slice(sets);
        self
    }

    /// Adds a factor that axes of operands and of the output run over, and returns it.
    pub fn share(&mut self, operands: &[(usize, usize)], output: Option<usize>) -> u8 {
        let factor = self.factors();
        let run = Some(FactorRun { factor, inner: 1 });
        for &(operand, axis) in operands {
            self.operands[operand][axis] = run;
        }
        if let Some(axis) = output {
            self.output[axis] = run;
        }
        factor
    }

    /// Adds a reduced factor that axes of operands run over.
    pub fn reduce(&mut self, operands: &[(usize, usize)], reduction: Reduction) {
        let factor = self.share(operands, None);
        self.reduced.push((factor, reduction));
    }

    /// The number of factors.
    pub fn factors(&self) -> u8 {
        let runs = self.operands.iter().chain([&self.output]).flatten().flatten();
        runs.map(|run| run.factor + 1).max().unwrap_or(0)
    }
}

/// Returns the rule of an operation that cannot be sharded.
pub fn whole(call: &Call, output: &Meta) -> Rule {
    Rule::whole(call, output)
}

/// Returns the rule that shards any axis of the output, with the operands' axes that are not
/// broadcast.
pub fn elementwise(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output);
    let rank = output.shape.rank();
    for along in 0..rank {
        if output.shape[along] <= 1 {
            continue;
        }
        let mut shared: SmallVec<[(usize, usize); 3]> = SmallVec::new();
        for (index, operand) in call.operands.iter().enumerate() {
            let Some(meta) = operand.tensor() else { continue };
            let missing = rank - meta.shape.rank();
            if along >= missing && meta.shape[along - missing] == output.shape[along] {
                shared.push((index, along - missing));
            }
        }
        rule.share(&shared, Some(along));
    }
    rule
}

/// Returns the rule that shards any axis of the first operand; the axes in attribute 0 are reduced.
pub fn reduction(call: &Call, output: &Meta, reduction: Reduction) -> Rule {
    let mut rule = along_kept_axes(call, output);
    for gone in reduced_axes(call) {
        if shape_of(call, 0)[gone] > 1 {
            rule.reduce(&[(0, gone)], reduction);
        }
    }
    rule
}

/// Returns the rule that shards any axis of the first operand but those in attribute 0.
pub fn along_kept_axes(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output);
    let (shape, gone) = (shape_of(call, 0), reduced_axes(call));
    let keeps = shape.rank() == output.shape.rank();
    let mut out = 0;
    for along in 0..shape.rank() {
        if !gone.contains(&along) {
            if shape[along] > 1 {
                rule.share(&[(0, along)], Some(out));
            }
            out += 1;
        } else if keeps {
            out += 1;
        }
    }
    rule
}

fn reduced_axes(call: &Call) -> Vec<usize> {
    axes(call.ints(0), shape_of(call, 0).rank(), call.operation).expect("checked by infer")
}

/// Returns the rule that shards any axis but the one in attribute 0; the output has the operand's
/// shape.
pub fn along_other_axes(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output);
    let shape = shape_of(call, 0);
    let gone = axis(call.int(0), shape.rank(), call.operation).expect("checked by infer");
    for along in 0..shape.rank() {
        if along != gone && shape[along] > 1 {
            rule.share(&[(0, along)], Some(along));
        }
    }
    rule
}

/// Returns the rule that shards any axis of the output, without tensor operands.
pub fn created(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output);
    for along in 0..output.shape.rank() {
        if output.shape[along] > 1 {
            rule.share(&[], Some(along));
        }
    }
    rule
}

/// The shape of an operand that is a tensor.
pub fn shape_of(call: &Call, operand: usize) -> Shape {
    call.operands[operand].tensor().map_or(Shape::SCALAR, |meta| meta.shape)
}

/// Returns the attributes with attribute 0, the output's shape, set to that of the part.
pub fn localize_shape(attributes: &Attributes, part: &LocalPart) -> Attributes {
    let mut attributes = attributes.clone();
    attributes[0] = crate::Attribute::dims(&part.output.shape);
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_intersect() {
        let block = |start: usize, length: usize| {
            let mut starts = [0; MAX_RANK];
            starts[0] = start;
            Block { starts, shape: Shape::new(&[length, 3]).unwrap() }
        };
        let both = block(2, 4).intersect(&block(4, 9)).unwrap();
        assert_eq!(both, block(4, 2));
        assert_eq!(both.within(&block(2, 4)), block(2, 2));
        assert_eq!(block(0, 2).intersect(&block(2, 2)), None);
    }
}
