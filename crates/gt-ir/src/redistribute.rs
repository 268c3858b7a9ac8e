//! Redistribution: the blocks that each slot sends and receives when a tensor changes its layout.

use crate::exchange::{Hop, Parts, Receive, Sender};
use crate::ids::SlotId;
use crate::layout::{Layout, Placement};
use crate::shape::Shape;
use crate::sharding::Block;

/// A slot's part of an exchange.
pub struct SlotParts {
    pub slot: SlotId,
    /// Whether it has a block of the source.
    pub has_input: bool,
    /// Its rank in the target's mesh, if it has one.
    pub rank: Option<usize>,
    pub parts: Parts,
    /// What goes through it in a chain, which has no parts.
    pub hops: Vec<Hop>,
}

/// A change of layout.
pub struct Redistribution<'a> {
    pub from: &'a Layout,
    pub to: &'a Layout,
    /// The shape of the tensor with layout `from`.
    pub whole: Shape,
}

impl Redistribution<'_> {
    /// Returns the parts of all slots involved. A rank of the target needs the block `need(rank)`
    /// and receives the blocks `sources(rank)`, each from a rank of the source, all in coordinates
    /// of the whole tensor.
    pub fn parts(
        &self,
        need: impl Fn(usize) -> Block,
        sources: impl Fn(usize) -> Vec<(usize, Block)>,
    ) -> Vec<SlotParts> {
        let (from, to) = (&self.from.mesh, &self.to.mesh);
        let mut sends: Vec<Vec<(SlotId, Block)>> = vec![Vec::new(); from.size()];
        let mut receives: Vec<Vec<Receive>> = Vec::with_capacity(to.size());
        for (rank, &slot) in to.slots.iter().enumerate() {
            let need = need(rank);
            let sources = sources(rank);
            let mut taken = Vec::with_capacity(sources.len());
            for (source, block) in sources {
                let holder = from.slots[source];
                let there = block.within(&self.from.block(self.whole, source));
                let at = block.within(&need);
                if holder == slot {
                    taken.push(Receive { from: Sender::Own(there), at });
                } else {
                    sends[source].push((slot, there));
                    taken.push(Receive { from: Sender::Slot(holder), at });
                }
            }
            receives.push(taken);
        }
        let mut made = Vec::with_capacity(from.size().max(to.size()));
        let mut received =
            |rank: Option<usize>| rank.map(|rank| std::mem::take(&mut receives[rank]));
        for (source, &slot) in from.slots.iter().enumerate() {
            let rank = to.rank_of(slot);
            let sends = std::mem::take(&mut sends[source]);
            if rank.is_some() || !sends.is_empty() {
                let parts = Parts { sends, receives: received(rank).unwrap_or_default() };
                made.push(SlotParts { slot, has_input: true, rank, parts, hops: Vec::new() });
            }
        }
        for (rank, &slot) in to.slots.iter().enumerate() {
            if from.rank_of(slot).is_none() {
                let receives = received(Some(rank)).unwrap_or_default();
                let parts = Parts { sends: Vec::new(), receives };
                let hops = Vec::new();
                made.push(SlotParts { slot, has_input: false, rank: Some(rank), parts, hops });
            }
        }
        made
    }

    /// Returns the source ranks, and their blocks, that cover `need` for a rank of the target. A
    /// slot's own block is preferred; replicas are used in turn. Values that stay partial along a
    /// mesh axis are received from ranks with the same coordinate on it, as others hold different
    /// summands.
    pub fn sources(&self, rank: usize, need: Block) -> Vec<(usize, Block)> {
        let Redistribution { from, to, whole } = *self;
        if need.shape.numel() == 0 {
            return Vec::new();
        }
        let own = from.mesh.rank_of(to.mesh.slots[rank]);
        if let Some(own) = own
            && from.block(whole, own).intersect(&need) == Some(need)
        {
            return vec![(own, need)];
        }
        let copies: usize = from
            .placements
            .iter()
            .zip(&from.mesh.dims)
            .filter(|(placement, _)| **placement == Placement::Replicate)
            .map(|(_, &length)| length)
            .product();
        let parts = (0..from.mesh.size())
            .filter(|&source| from.same_summand(source, rank))
            .filter_map(|source| Some((source, from.block(whole, source).intersect(&need)?)));
        let mut found: Vec<(usize, Block)> = Vec::with_capacity(from.mesh.size() / copies);
        if copies == 1 {
            found.extend(parts);
            return found;
        }
        // The blocks found so far, and the number of replicas of each; the rank decides which is
        // used.
        let mut seen: Vec<(Block, usize)> = Vec::new();
        for (source, block) in parts {
            let times = match seen.iter_mut().find(|(known, _)| *known == block) {
                Some((_, times)) => {
                    *times += 1;
                    *times - 1
                }
                None => {
                    seen.push((block, 1));
                    0
                }
            };
            match found.iter_mut().find(|(_, known)| *known == block) {
                None => found.push((source, block)),
                Some(entry) => {
                    if own != Some(entry.0) && (own == Some(source) || times == rank % copies) {
                        entry.0 = source;
                    }
                }
            }
        }
        found
    }

    /// Returns the parts of an exchange after which each rank of the target has its block.
    pub fn of_blocks(&self) -> Vec<SlotParts> {
        let need = |rank| self.to.block(self.whole, rank);
        self.parts(need, |rank| self.sources(rank, need(rank)))
    }

    /// Returns the parts of an exchange after which each rank of the target has its block of a
    /// slice, of `size` elements from `starts`.
    pub fn of_slice(&self, starts: &[i64], size: Shape) -> Vec<SlotParts> {
        let need = |rank| {
            let mut block = self.to.block(size, rank);
            for (axis, start) in starts.iter().enumerate() {
                block.starts[axis] += *start as usize;
            }
            block
        };
        self.parts(need, |rank| self.sources(rank, need(rank)))
    }
}
