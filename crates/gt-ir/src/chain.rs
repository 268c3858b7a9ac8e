//! Chains: exchanges among many slots in which blocks go from neighbour to neighbour.
//!
//! An exchange of all with all needs a link for each pair of slots. In a chain, a slot talks with the
//! one before and the one after it. A sum is folded on the way from the first slot to the last, in
//! the slots' order, so that it has the bits of a sum that one slot folds; then it goes back.

use crate::exchange::{Hop, KeptBlock, OwnBlock, Sender};
use crate::ids::SlotId;
use crate::layout::balanced_cuts;
use crate::shape::Shape;
use crate::sharding::Block;

/// Exchanges among up to this many slots go directly from each to each.
const DIRECT: usize = 4;

/// Up to this many slots, values of up to this many bytes do, too: a chain sends fewer messages, but
/// one after the other.
const DIRECT_IF_SMALL: (usize, u64) = (8, 64 << 10);

/// The bytes of a block that goes through a chain by itself: while a slot adds to one, the next slot
/// has the one before.
const PIECE: usize = 128 << 10;

/// The largest number of blocks into which values are cut.
const PIECES: usize = 32;

/// Returns whether an exchange of `bytes` of each slot among this many slots is a chain.
pub fn is_chain(slots: usize, bytes: u64) -> bool {
    let (few, small) = DIRECT_IF_SMALL;
    slots > DIRECT && (slots > few || bytes > small)
}

/// Returns the blocks of values that go through a chain one after the other.
pub fn pieces(shape: Shape, element: usize) -> Vec<Block> {
    let whole = Block::whole(shape);
    let wanted = (shape.numel() * element / PIECE).clamp(1, PIECES);
    let Some(axis) = (0..shape.rank()).find(|&axis| shape[axis] >= wanted) else {
        return vec![whole];
    };
    let part = |cut: &[usize]| {
        let mut block = whole;
        block.starts[axis] = cut[0];
        block.shape = shape.with(axis, cut[1] - cut[0]);
        block
    };
    balanced_cuts(shape[axis], wanted).windows(2).map(part).collect()
}

/// Values of up to this many bytes are gathered in one message from slot to slot, which grows, instead of
/// a message for each block.
const JOINED: u64 = 512 << 10;

/// Returns whether values of this size are gathered in one message.
pub fn is_joined(bytes: u64) -> bool {
    bytes <= JOINED
}

/// Returns whether the parts of a sum that each slot needs are sent back by themselves, and not as
/// pieces of the whole.
pub fn is_returned_by_parts(slots: usize, bytes: u64) -> bool {
    bytes > (slots * PIECE) as u64
}

/// A block of each slot's input, which a chain combines.
pub struct Combined {
    pub block: Block,
    /// What each slot keeps of the result.
    pub kept: Vec<Option<KeptBlock>>,
}

impl Combined {
    /// Returns a block that all slots need, at the same position.
    pub fn for_all(block: Block, slots: usize) -> Combined {
        Combined { block, kept: vec![Some(KeptBlock { part: None, at: block }); slots] }
    }
}

/// Returns the hops of each slot of a chain that reduces blocks of their inputs.
pub fn combine(slots: &[SlotId], blocks: &[Combined]) -> Vec<Vec<Hop>> {
    let through = |of: &Combined| vec![Some(OwnBlock { block: of.block, axis: None }); slots.len()];
    let blocks: Vec<Passed> =
        blocks.iter().map(|of| Passed { with: through(of), kept: of.kept.clone() }).collect();
    pass(slots, &blocks)
}

/// Returns the hops of each slot of a chain that joins the blocks that the slots have along an axis,
/// after which all have all of it.
pub fn join(
    slots: &[SlotId],
    blocks: &[Option<Block>],
    axis: usize,
    whole: Block,
) -> Vec<Vec<Hop>> {
    let axis = Some(axis as u32);
    let with = blocks.iter().map(|block| block.map(|block| OwnBlock { block, axis })).collect();
    let kept = vec![Some(KeptBlock { part: None, at: whole }); slots.len()];
    pass(slots, &[Passed { with, kept }])
}

/// A value that goes from the first slot to the last, and back.
struct Passed {
    /// What it is combined with on each slot; the first that has something begins.
    with: Vec<Option<OwnBlock>>,
    kept: Vec<Option<KeptBlock>>,
}

fn pass(slots: &[SlotId], values: &[Passed]) -> Vec<Vec<Hop>> {
    let last = slots.len() - 1;
    let hops = |index: usize| {
        let back = |of: &Passed| {
            let first = of.kept.iter().position(Option::is_some).unwrap_or(last);
            (index > first).then(|| slots[index - 1])
        };
        let mut hops = Vec::new();
        for of in values {
            let begins = of.with[..index].iter().all(Option::is_none);
            let (from, with) = match (&of.with[index], begins) {
                (Some(own), true) => (Sender::Own(own.block), None),
                // It has not begun.
                (None, true) => continue,
                (with, false) => (Sender::Slot(slots[index - 1]), with.clone()),
            };
            hops.push(match index == last {
                true => {
                    let kept = of.kept[index].clone();
                    Hop { from, with, to: back(of).into_iter().collect(), kept }
                }
                false => Hop { from, with, to: vec![slots[index + 1]], kept: None },
            });
        }
        if index < last {
            let is_here = |of: &&Passed| {
                let has_begun = of.with.iter().any(Option::is_some);
                has_begun && of.kept[..=index].iter().any(Option::is_some)
            };
            hops.extend(values.iter().filter(is_here).map(|of| Hop {
                from: Sender::Slot(slots[index + 1]),
                with: None,
                to: back(of).into_iter().collect(),
                kept: of.kept[index].clone(),
            }));
        }
        hops
    };
    (0..slots.len()).map(hops).collect()
}

/// Returns the hops of each slot of a chain after which each has the blocks of all, which pass one by
/// one. Each slot gives its block, in its input and in the output, unless it has none.
pub fn gather(slots: &[SlotId], blocks: &[Option<(Block, Block)>]) -> Vec<Vec<Hop>> {
    let hops = |index: usize| {
        let before = index.checked_sub(1).map(|before| slots[before]);
        let after = slots.get(index + 1).copied();
        let own = blocks[index].map(|(block, at)| Hop {
            from: Sender::Own(block),
            with: None,
            to: before.into_iter().chain(after).collect(),
            kept: Some(KeptBlock { part: None, at }),
        });
        // In the order in which a neighbour passes them on: its own first.
        let through = |from: Option<SlotId>, to: Option<SlotId>, at: Block| {
            let (to, kept) = (to.into_iter().collect(), Some(KeptBlock { part: None, at }));
            from.map(|from| Hop { from: Sender::Slot(from), with: None, to, kept })
        };
        let ahead = blocks[..index].iter().rev().flatten();
        let ahead = ahead.filter_map(|(_, at)| through(before, after, *at));
        let behind = blocks[index + 1..].iter().flatten();
        let behind = behind.filter_map(|(_, at)| through(after, before, *at));
        own.into_iter().chain(ahead).chain(behind).collect()
    };
    (0..slots.len()).map(hops).collect()
}

/// Returns the hops of each slot of a chain after which all have the values of the first.
pub fn broadcast(slots: &[SlotId], blocks: &[Block]) -> Vec<Vec<Hop>> {
    let hops = |index: usize| {
        let hop = |block: &Block| Hop {
            from: match index {
                0 => Sender::Own(*block),
                _ => Sender::Slot(slots[index - 1]),
            },
            with: None,
            to: slots.get(index + 1).copied().into_iter().collect(),
            kept: Some(KeptBlock { part: None, at: *block }),
        };
        blocks.iter().map(hop).collect()
    };
    (0..slots.len()).map(hops).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;

    /// Carries out the hops of all slots, whose inputs are numbers for each block; returns what each
    /// slot places where. Fails if a hop does not end.
    fn run(
        slots: &[SlotId],
        hops: &[Vec<Hop>],
        input: impl Fn(usize, Block) -> Vec<u32>,
    ) -> Vec<BTreeMap<usize, Vec<u32>>> {
        let mut links: BTreeMap<(SlotId, SlotId), VecDeque<Vec<u32>>> = BTreeMap::new();
        let mut left: Vec<Vec<Hop>> = hops.to_vec();
        let mut placed = vec![BTreeMap::new(); slots.len()];
        let mut moves = true;
        while moves {
            moves = false;
            for (index, hops) in left.iter_mut().enumerate() {
                let own = slots[index];
                let mut at = 0;
                while at < hops.len() {
                    let mut value = match &hops[at].from {
                        Sender::Own(block) => input(index, *block),
                        Sender::Slot(from) => {
                            let is_next = hops[..at].iter().all(|hop| hop.from != hops[at].from);
                            let arrived = links.get_mut(&(*from, own));
                            match arrived.filter(|_| is_next).and_then(VecDeque::pop_front) {
                                Some(value) => value,
                                None => {
                                    at += 1;
                                    continue;
                                }
                            }
                        }
                    };
                    let hop = hops.remove(at);
                    moves = true;
                    value.extend(hop.with.into_iter().flat_map(|with| input(index, with.block)));
                    for to in &hop.to {
                        links.entry((own, *to)).or_default().push_back(value.clone());
                    }
                    if let Some(kept) = hop.kept {
                        placed[index].insert(kept.at.starts[0], value);
                    }
                }
            }
        }
        assert!(left.iter().all(Vec::is_empty), "hops are left: {left:?}");
        assert!(links.values().all(VecDeque::is_empty), "a block is left");
        placed
    }

    fn slots(count: u32) -> Vec<SlotId> {
        (0..count).map(|number| SlotId(10 + number)).collect()
    }

    fn block(start: usize, length: usize) -> Block {
        let mut block = Block::whole(Shape::new(&[length]).unwrap());
        block.starts[0] = start;
        block
    }

    #[test]
    fn sums_are_folded_in_the_order_of_the_slots() {
        for count in [2, 3, 5, 8] {
            let slots = slots(count as u32);
            let blocks = [block(0, 2), block(2, 2), block(4, 1)];
            let folded = |start: usize| (0..count).map(|of| (100 * of + start) as u32).collect();
            let input = |index: usize, of: Block| vec![(100 * index + of.starts[0]) as u32];
            let all: Vec<Combined> = blocks.map(|block| Combined::for_all(block, count)).into();
            let expected: BTreeMap<usize, Vec<u32>> =
                blocks.iter().map(|of| (of.starts[0], folded(of.starts[0]))).collect();
            for found in run(&slots, &combine(&slots, &all), input) {
                assert_eq!(found, expected);
            }
            // Each slot needs one.
            let kept = |wanted: usize| {
                let at = KeptBlock { part: None, at: block(0, 1) };
                (0..count).map(|slot| (slot == wanted).then(|| at.clone())).collect()
            };
            let parts: Vec<Combined> =
                (0..count).map(|of| Combined { block: block(of, 1), kept: kept(of) }).collect();
            for (index, found) in run(&slots, &combine(&slots, &parts), input).iter().enumerate() {
                assert_eq!(found, &BTreeMap::from([(0, folded(index))]));
            }
        }
    }

    #[test]
    fn blocks_reach_all_slots() {
        for count in [2, 3, 7] {
            let slots = slots(count as u32);
            let of = |index: usize| (index != 1).then(|| (block(0, 1), block(index, 1)));
            let blocks: Vec<_> = (0..count).map(of).collect();
            let input = |index: usize, _: Block| vec![index as u32];
            let expected: BTreeMap<usize, Vec<u32>> =
                (0..count).filter(|of| *of != 1).map(|of| (of, vec![of as u32])).collect();
            for found in run(&slots, &gather(&slots, &blocks), input) {
                assert_eq!(found, expected);
            }
            let owns: Vec<_> = blocks.iter().map(|of| of.map(|(own, _)| own)).collect();
            let input = |index: usize, _: Block| vec![index as u32];
            let all = (0..count as u32).filter(|of| *of != 1).collect::<Vec<u32>>();
            for found in run(&slots, &join(&slots, &owns, 0, block(0, count)), input) {
                assert_eq!(found, BTreeMap::from([(0, all.clone())]));
            }
            let input = |_: usize, of: Block| vec![of.starts[0] as u32];
            let pieces = [block(0, 3), block(3, 3)];
            let expected = BTreeMap::from([(0, vec![0]), (3, vec![3])]);
            for found in run(&slots, &broadcast(&slots, &pieces), input) {
                assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn few_slots_and_small_values_need_no_chain() {
        assert!(!is_chain(4, u64::MAX));
        assert!(!is_chain(8, 1000) && is_chain(8, 1 << 20) && is_chain(9, 1));
        let shape = Shape::new(&[3, 1000, 1000]).unwrap();
        let cut = pieces(shape, 4);
        assert_eq!(cut.len(), PIECES);
        assert_eq!(cut.iter().map(|of| of.shape.numel()).sum::<usize>(), shape.numel());
        assert_eq!(pieces(Shape::new(&[5]).unwrap(), 4).len(), 1);
        assert_eq!(pieces(Shape::new(&[]).unwrap(), 8).len(), 1);
    }
}
