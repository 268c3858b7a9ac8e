//! Decides which exchanges the engines run themselves, as collectives of a library such as NCCL.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gt_ir::exchange::Sender;
use gt_ir::fabric::{CollectiveCall, EngineCollective, Fabric, Member};
use gt_ir::sharding::Block;
use gt_ir::{Exchange, SlotId, WorkerId};

/// The workers whose engines have a fabric.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fabrics(BTreeMap<WorkerId, FabricEndpoint>);

/// A slot's part of an exchange.
pub type SlotExchange = (SlotId, Exchange);

/// A worker's engine on its fabric.
#[derive(Clone, PartialEq, Eq)]
struct FabricEndpoint {
    name: String,
    machine: String,
    fabric: Fabric,
}

impl Fabrics {
    /// Adds a worker's engine.
    pub fn add(&mut self, worker: WorkerId, name: &str, machine: &str, fabric: &Fabric) {
        let (name, machine) = (name.to_string(), machine.to_string());
        self.0.insert(worker, FabricEndpoint { name, machine, fabric: fabric.clone() });
    }

    /// Returns whether the engines of workers can take part in a collective together, each once.
    pub fn fit(&self, workers: &[WorkerId]) -> bool {
        !self.0.is_empty() && self.fitting(workers).is_some()
    }

    /// Returns the engines of workers that can take part in a collective together.
    fn fitting(&self, workers: &[WorkerId]) -> Option<Vec<&FabricEndpoint>> {
        let places: Vec<&FabricEndpoint> =
            workers.iter().map(|worker| self.0.get(worker)).collect::<Option<_>>()?;
        let first = *places.first()?;
        // An engine can take part in a collective call only once.
        let mut members = BTreeSet::new();
        let mut devices = BTreeSet::new();
        let fits = places.iter().zip(workers).all(|(place, worker)| {
            let (ours, theirs) = (&first.fabric, &place.fabric);
            let near = !first.machine.is_empty() && first.machine == place.machine;
            let reaches = if ours.local { theirs.local && near } else { !theirs.local };
            let has_own_device =
                theirs.device.is_empty() || devices.insert((&place.machine, &theirs.device));
            ours.kind == theirs.kind && reaches && has_own_device && members.insert(*worker)
        });
        fits.then_some(places)
    }

    /// Marks the parts of an exchange as collective where engines can run it. Slots that exchange
    /// nothing form separate groups; a group with a member that cannot take part sends pieces.
    pub fn mark_collectives(
        &self,
        parts: &mut [SlotExchange],
        host: impl Fn(SlotId) -> Option<WorkerId>,
    ) {
        if self.0.is_empty() {
            return;
        }
        for group in groups(parts) {
            let members: Vec<&SlotExchange> = group.iter().map(|&index| &parts[index]).collect();
            if let Some(collective) = self.collective(&members, &host) {
                let collective = Arc::new(collective);
                for index in group {
                    parts[index].1.engine_collective = Some(Arc::clone(&collective));
                }
            }
        }
    }

    /// Returns the collective of a group; `None` if its engines cannot reach each other.
    fn collective(
        &self,
        parts: &[&SlotExchange],
        host: &impl Fn(SlotId) -> Option<WorkerId>,
    ) -> Option<EngineCollective> {
        let workers: Vec<WorkerId> =
            parts.iter().map(|(slot, _)| host(*slot)).collect::<Option<_>>()?;
        let places = self.fitting(&workers)?;
        let first = places[0];
        let member = |((part, worker), place): ((&&SlotExchange, &WorkerId), &&FabricEndpoint)| {
            Member { slot: part.0, worker: *worker, name: place.name.clone() }
        };
        Some(EngineCollective {
            kind: first.fabric.kind.clone(),
            store: first.fabric.store.clone(),
            members: parts.iter().zip(&workers).zip(&places).map(member).collect(),
            call: call(parts),
        })
    }
}

/// Returns the connected components of the parts under sends, each in the order of its slots.
fn groups(parts: &[SlotExchange]) -> Vec<Vec<usize>> {
    let places = parts.iter().enumerate().map(|(index, part)| (part.0, index));
    let places: BTreeMap<SlotId, usize> = places.collect();
    // Each part begins as its own group, and merges with the groups that it sends to.
    let mut group_of: Vec<usize> = (0..parts.len()).collect();
    for (index, (_, part)) in parts.iter().enumerate() {
        for (to, _) in &part.parts.sends {
            let Some(&to) = places.get(to) else { continue };
            let (old, new) = (group_of[index], group_of[to]);
            if old != new {
                group_of.iter_mut().filter(|group| **group == old).for_each(|group| *group = new);
            }
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &index in places.values() {
        groups.entry(group_of[index]).or_default().push(index);
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

/// Returns the collective call that a group's parts amount to.
fn call(parts: &[&SlotExchange]) -> CollectiveCall {
    let parts: Vec<&Exchange> = parts.iter().map(|(_, exchange)| exchange).collect();
    let reaches_all = |part: &&Exchange| {
        let to: BTreeSet<SlotId> = part.parts.sends.iter().map(|(to, _)| *to).collect();
        part.parts.sends.len() == parts.len() - 1 && to.len() == part.parts.sends.len()
    };
    let is_same = |part: &&Exchange| part.parts.sends.windows(2).all(|two| two[0].1 == two[1].1);
    let mut senders = parts.iter().enumerate().filter(|(_, part)| !part.parts.sends.is_empty());
    if let (Some((root, part)), None) = (senders.next(), senders.next()) {
        let all_get_it = reaches_all(part) && is_same(part);
        return if all_get_it {
            CollectiveCall::Broadcast { root: root as u32 }
        } else {
            CollectiveCall::AllToAll
        };
    }
    let length = parts[0].parts.sends.first().map_or(0, |(_, block)| block.shape.numel());
    let is_even =
        |part: &&Exchange| part.parts.sends.iter().all(|(_, block)| block.shape.numel() == length);
    if !parts.iter().all(|part| reaches_all(part) && is_even(part)) {
        return CollectiveCall::AllToAll;
    }
    let is_combined = |part: &&Exchange| {
        let own = own_blocks(part);
        part.reduction.is_some()
            && part.output.is_some()
            && part.parts.receives.len() == parts.len()
            && own.len() == 1
            && own[0].shape.numel() == length
    };
    let is_one_block =
        |part: &&Exchange| is_same(part) && own_blocks(part)[0] == part.parts.sends[0].1;
    match parts.iter().all(is_combined) {
        true if parts.iter().all(is_one_block) => CollectiveCall::AllReduce,
        true => CollectiveCall::ReduceScatter,
        false if parts.iter().all(is_same) => CollectiveCall::AllGather,
        false => CollectiveCall::AllToAll,
    }
}

/// Returns the blocks that a slot takes from its own input.
fn own_blocks(part: &Exchange) -> Vec<Block> {
    let own = part.parts.receives.iter().filter_map(|received| match &received.from {
        Sender::Own(block) => Some(*block),
        Sender::Slot(_) => None,
    });
    own.collect()
}

#[cfg(test)]
mod tests {
    use gt_ir::exchange::{Collective, Parts, Receive};
    use gt_ir::sharding::Reduction;
    use gt_ir::{DType, Meta, Shape, SourceId, TensorId, TransferId};

    use super::*;

    fn fabrics(workers: u32, change: impl Fn(u32, &mut FabricEndpoint)) -> Fabrics {
        let mut fabrics = Fabrics::default();
        for worker in 0..workers {
            let (kind, device) = ("gloo/1".to_string(), format!("device {worker}"));
            let fabric = Fabric { kind, local: true, store: format!("host:{worker}"), device };
            fabrics.add(WorkerId(worker), &format!("w{worker}"), "machine", &fabric);
            change(worker, fabrics.0.get_mut(&WorkerId(worker)).expect("added above"));
        }
        fabrics
    }

    fn rows(first: usize, count: usize) -> Block {
        let mut block = Block::whole(Shape::new(&[count, 3]).unwrap());
        block.starts[0] = first;
        block
    }

    /// Returns the part of a slot that sends these rows to each of `to`, and keeps `own`.
    fn part(slot: u32, to: &[(u32, Block)], own: Option<Block>, from: &[u32]) -> SlotExchange {
        let at = own.unwrap_or_else(|| rows(0, 1));
        let others = from.iter().map(|&worker| Sender::Slot(SlotId(worker)));
        let receives = own.map(Sender::Own).into_iter().chain(others);
        let exchange = Exchange {
            transfer: TransferId(1),
            collective: Collective::Send,
            input: Some(TensorId(1)),
            output: Some((TensorId(2), Meta::new(DType::F32, at.shape))),
            parts: Parts {
                sends: to.iter().map(|&(to, block)| (SlotId(to), block)).collect(),
                receives: receives.map(|from| Receive { from, at }).collect(),
            },
            hops: Vec::new(),
            reduction: None,
            engine_collective: None,
            line: SourceId::default(),
        };
        (SlotId(slot), exchange)
    }

    /// Returns the worker of a slot: the one of the same number.
    fn host(slot: SlotId) -> Option<WorkerId> {
        Some(WorkerId(slot.0))
    }

    fn calls(fabrics: &Fabrics, mut parts: Vec<SlotExchange>) -> Vec<Option<CollectiveCall>> {
        fabrics.mark_collectives(&mut parts, host);
        parts.iter().map(|(_, part)| part.engine_collective.as_ref().map(|it| it.call)).collect()
    }

    fn sums(mut parts: Vec<SlotExchange>) -> Vec<SlotExchange> {
        parts.iter_mut().for_each(|(_, part)| part.reduction = Some(Reduction::Sum));
        parts
    }

    #[test]
    fn even_exchanges_are_collectives() {
        let fabrics = fabrics(3, |_, _| {});
        let whole = rows(0, 6);
        let everyone = |worker: u32, block: &dyn Fn(u32) -> Block| {
            let others: Vec<u32> = (0..3).filter(|&other| other != worker).collect();
            let to: Vec<(u32, Block)> = others.iter().map(|&other| (other, block(other))).collect();
            part(worker, &to, Some(block(worker)), &others)
        };
        let all = |block: &dyn Fn(u32, u32) -> Block| {
            (0..3).map(|worker| everyone(worker, &|other| block(worker, other))).collect()
        };
        let thirds = |_, other| rows(2 * other as usize, 2);
        assert_eq!(calls(&fabrics, sums(all(&|_, _| whole))), [Some(CollectiveCall::AllReduce); 3]);
        assert_eq!(calls(&fabrics, sums(all(&thirds))), [Some(CollectiveCall::ReduceScatter); 3]);
        assert_eq!(calls(&fabrics, all(&|_, _| rows(0, 2))), [Some(CollectiveCall::AllGather); 3]);
        assert_eq!(calls(&fabrics, all(&thirds)), [Some(CollectiveCall::AllToAll); 3]);
        // Uneven blocks need an all-to-all.
        let uneven = |_, other| rows(2 * other as usize, 1 + usize::from(other == 0));
        assert_eq!(calls(&fabrics, sums(all(&uneven))), [Some(CollectiveCall::AllToAll); 3]);
        let uneven = |worker, _| rows(0, 1 + usize::from(worker == 0));
        assert_eq!(calls(&fabrics, all(&uneven)), [Some(CollectiveCall::AllToAll); 3]);
    }

    #[test]
    fn one_slot_sending_a_block_to_all_others_is_a_broadcast() {
        let fabrics = fabrics(3, |_, _| {});
        let whole = rows(0, 6);
        let parts = |second: Block| {
            let giver = part(2, &[(0, whole), (1, second)], None, &[]);
            vec![giver, part(0, &[], None, &[2]), part(1, &[], None, &[2])]
        };
        // Ranks follow the slots' numbers, whichever slot sends.
        assert_eq!(calls(&fabrics, parts(whole)), [Some(CollectiveCall::Broadcast { root: 2 }); 3]);
        assert_eq!(calls(&fabrics, parts(rows(0, 1))), [Some(CollectiveCall::AllToAll); 3]);
    }

    /// Rows of a grid of workers are separate groups; a slot that only keeps its own block is in
    /// none.
    #[test]
    fn slots_that_exchange_nothing_are_in_separate_groups() {
        let fabrics = fabrics(5, |_, _| {});
        let whole = rows(0, 6);
        let pair = |worker, other| part(worker, &[(other, whole)], Some(whole), &[other]);
        let alone = part(4, &[], Some(whole), &[]);
        let mut parts = vec![pair(0, 2), pair(1, 3), pair(2, 0), pair(3, 1), alone];
        fabrics.mark_collectives(&mut parts, host);
        let members = |(_, part): &SlotExchange| {
            let collective = part.engine_collective.as_ref()?;
            Some(collective.members.iter().map(|member| member.worker.0).collect::<Vec<_>>())
        };
        let groups: Vec<_> = parts.iter().map(members).collect();
        let (even, odd) = (Some(vec![0, 2]), Some(vec![1, 3]));
        assert_eq!(groups, [even.clone(), odd.clone(), even, odd, None]);
        assert_eq!(parts[1].1.engine_collective.as_ref().unwrap().store, "host:1");
    }

    #[test]
    fn engines_without_a_common_fabric_send_pieces() {
        let whole = rows(0, 6);
        let pair = || {
            let half = |worker, other| part(worker, &[(other, whole)], Some(whole), &[other]);
            vec![half(0, 1), half(1, 0)]
        };
        let joins = |change: &dyn Fn(u32, &mut FabricEndpoint)| {
            calls(&fabrics(2, change), pair()) == [Some(CollectiveCall::AllGather); 2]
        };
        assert!(joins(&|_, _| {}));
        assert!(!joins(&|worker, place| place.fabric.kind = format!("gloo/{worker}")));
        assert!(!joins(&|worker, place| place.machine = format!("machine {worker}")));
        assert!(!joins(&|_, place| place.machine = String::new()));
        assert!(!joins(&|worker, place| place.fabric.local = worker == 0));
        assert!(!joins(&|_, place| place.fabric.device = "the same".into()));
        assert_eq!(calls(&fabrics(1, |_, _| {}), pair()), [None; 2]);
        // Two slots on one worker.
        let mut lent = pair();
        fabrics(2, |_, _| {}).mark_collectives(&mut lent, |_| Some(WorkerId(0)));
        assert!(lent.iter().all(|(_, part)| part.engine_collective.is_none()));
        // A fabric across machines: device names may repeat.
        assert!(joins(&|worker, place| {
            place.machine = format!("machine {worker}");
            place.fabric.local = false;
            place.fabric.device = "0".into();
        }));
    }
}
