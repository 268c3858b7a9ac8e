//! The worker slots of a session: the indirection between plans and workers.
//!
//! Plans name slots, not workers. Until something is first cut over the slots, each new worker adds
//! one; from then on their number is fixed, and workers carry them: several after a loss, fewer
//! after a worker has joined. All that results depend on follows from the slots alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use gt_ir::wire::{Decoded, Record, Sink, Source};
use gt_ir::{SlotId, WorkerId, record};

use crate::planner::fabrics::Fabrics;

/// A worker's id, and the number that configurations name it by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Host {
    pub worker: WorkerId,
    pub number: u32,
    /// What its results depend on, as a number: equal for workers that compute the same.
    pub arithmetic: u64,
}

#[derive(Clone)]
struct Slot {
    /// `None` while there is no worker at all.
    host: Option<WorkerId>,
    /// The number that configurations name it by: its worker's, until the slots are fixed.
    number: u32,
    /// Whether its own worker is gone and another stands in.
    is_lent: bool,
    /// How its worker computes; while there is none, how the last one did.
    arithmetic: u64,
}

record!(struct Slot { host, number, is_lent, arithmetic });

impl Slot {
    /// Puts it on a worker.
    fn put_on(&mut self, host: Host, is_lent: bool) {
        (self.host, self.is_lent) = (Some(host.worker), is_lent);
        self.arithmetic = host.arithmetic;
    }
}

/// What decides on the results of a session beside its commands. It changes where a program asks
/// for it, or once, when it is first needed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Terms {
    /// How many slots plans may use, once that is fixed.
    pub count: Option<u32>,
    /// Whether each worker that joins adds a slot all the same.
    pub is_elastic: bool,
    /// The work per second by which templates are cut, once one was.
    pub rate: Option<u64>,
}

record!(struct Terms { count, is_elastic, rate });

/// The slots of a session, by number.
#[derive(Clone, Default)]
pub struct Slots {
    slots: Vec<Slot>,
    terms: Terms,
    /// While a session's commands are planned anew: how many there were when they were first
    /// planned.
    shown: Option<usize>,
    home: Option<SlotId>,
    fabrics: Arc<Fabrics>,
    version: u64,
    moves: u64,
}

/// Without what follows from the workers that are there.
impl Record for Slots {
    fn write<S: Sink>(&self, to: &mut S) {
        self.slots.write(to);
        self.terms.write(to);
        self.home.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Slots> {
        let (slots, terms) = (Record::read(from)?, Record::read(from)?);
        Ok(Slots { slots, terms, home: Record::read(from)?, ..Slots::default() })
    }
}

impl Slots {
    /// The slot of tensors that nothing places elsewhere.
    pub fn home(&self) -> Option<SlotId> {
        self.home
    }

    /// The worker of the home slot.
    pub fn home_worker(&self) -> Option<WorkerId> {
        self.host(self.home?)
    }

    pub fn set_home(&mut self, home: Option<SlotId>) {
        self.home = home;
    }

    /// How many slots plans may use.
    pub fn count(&self) -> usize {
        let fixed = self.terms.count.map(|count| count as usize);
        self.shown.or(fixed).map_or(self.slots.len(), |count| count.min(self.slots.len()))
    }

    /// What decides on results.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Whether their number is fixed.
    pub fn is_fixed(&self) -> bool {
        self.terms.count.is_some()
    }

    /// Sets whether workers that join add slots though the number is fixed.
    pub fn set_elastic(&mut self, is_elastic: bool) {
        self.terms.is_elastic = is_elastic;
    }

    /// The work per second by which templates are cut: `now`, the first time.
    pub fn rate(&mut self, now: u64) -> u64 {
        *self.terms.rate.get_or_insert(now)
    }

    /// Fixes the number of slots, where something is first cut over them, and numbers them from 0 on,
    /// in the order of their workers' numbers.
    pub fn fix(&mut self) {
        if self.terms.count.is_some() {
            return;
        }
        let count = self.count();
        let used = self.numbers().into_iter().map(|(_, slot)| slot);
        // While commands are planned anew, slots beyond those have come later.
        for (number, slot) in used.chain(self.every().skip(count)).enumerate() {
            self.slots[slot.0 as usize].number = number as u32;
        }
        self.terms.count = Some(count as u32);
        self.version += 1;
    }

    /// Sets the number of slots. New ones are on no worker yet ([`Slots::house`]). Those beyond the
    /// number stay as long as they hold tensors, and nothing new is placed there.
    pub fn rescale(&mut self, count: usize) {
        self.fix();
        for number in self.slots.len()..count {
            let arithmetic = self.home().map_or(0, |home| self.arithmetic(home));
            self.slots.push(Slot { host: None, number: number as u32, is_lent: false, arithmetic });
        }
        self.terms.count = Some(count as u32);
        self.shown = self.shown.map(|_| count);
        (self.version, self.moves) = (self.version + 1, self.moves + 1);
    }

    /// Puts the slots that are on no worker on those that carry the fewest, one with the slot's number
    /// first among equals.
    pub fn house(&mut self, hosts: &[Host]) {
        for slot in self.every() {
            if self.host(slot).is_some() {
                continue;
            }
            let Slot { number, arithmetic, .. } = self.slots[slot.0 as usize];
            let load = |host: &&Host| {
                let is_other = host.arithmetic != arithmetic;
                (is_other, self.on(host.worker).len(), host.number != number)
            };
            if let Some(host) = hosts.iter().min_by_key(load) {
                self.settle(slot, *host);
            }
        }
    }

    /// The moves that even out how many slots workers carry, from those with the most to those with
    /// the fewest that compute the same.
    pub fn evened(&self, hosts: &[Host]) -> Vec<(SlotId, Host)> {
        let kinds: BTreeSet<u64> = hosts.iter().map(|host| host.arithmetic).collect();
        let among = kinds.into_iter().map(|kind| {
            hosts.iter().filter(|host| host.arithmetic == kind).copied().collect::<Vec<Host>>()
        });
        among.flat_map(|hosts| self.evened_among(&hosts)).collect()
    }

    fn evened_among(&self, hosts: &[Host]) -> Vec<(SlotId, Host)> {
        let mut after = self.clone();
        let mut moves = Vec::new();
        loop {
            let load = |host: &&Host| after.on(host.worker).len();
            let (Some(most), Some(least)) =
                (hosts.iter().max_by_key(load), hosts.iter().min_by_key(load))
            else {
                return moves;
            };
            let carried = after.on(most.worker);
            if carried.len() < load(&least) + 2 {
                return moves;
            }
            // What stands there for a lost worker goes first, the home slot last.
            let order = |slot: &SlotId| {
                (after.slots[slot.0 as usize].is_lent, Some(*slot) != after.home, slot.0)
            };
            let Some(slot) = carried.into_iter().max_by_key(order) else { return moves };
            after.settle(slot, *least);
            moves.push((slot, *least));
        }
    }

    /// Moves a slot to a worker.
    pub fn settle(&mut self, slot: SlotId, host: Host) {
        self.slots[slot.0 as usize].put_on(host, false);
        self.moves += 1;
    }

    /// A worker is back, and computes so.
    pub fn know(&mut self, host: Host) {
        for slot in self.slots.iter_mut().filter(|slot| slot.host == Some(host.worker)) {
            slot.arithmetic = host.arithmetic;
        }
    }

    /// How a slot's worker computes, or the last one that it had.
    pub fn arithmetic(&self, slot: SlotId) -> u64 {
        self.slots.get(slot.0 as usize).map_or(0, |slot| slot.arithmetic)
    }

    /// How the worker of each slot computes.
    pub fn arithmetics(&self) -> Vec<u64> {
        self.slots.iter().map(|slot| slot.arithmetic).collect()
    }

    /// The slots that plans may use: before their number is fixed, those that came first.
    pub fn all(&self) -> impl Iterator<Item = SlotId> {
        let count = self.count() as u32;
        let is_fixed = self.terms.count.is_some();
        let place = move |slot: &SlotId| match is_fixed {
            true => self.slots[slot.0 as usize].number,
            false => slot.0,
        };
        self.every().filter(move |slot| place(slot) < count)
    }

    /// All slots, also those that plans may not use yet.
    pub fn every(&self) -> impl Iterator<Item = SlotId> + use<> {
        (0..self.slots.len() as u32).map(SlotId)
    }

    /// The same slots, of which plans use `count`.
    pub fn of(&self, count: usize) -> Slots {
        let mut slots = self.clone();
        match &mut slots.terms.count {
            Some(fixed) => *fixed = count as u32,
            None => slots.slots.truncate(count),
        }
        slots
    }

    /// Lets plans use the first `count` slots only; all without.
    pub fn show(&mut self, count: Option<usize>) {
        let before = self.count();
        self.shown = count;
        self.version += u64::from(self.count() != before);
    }

    /// Whether plans may not use all.
    pub fn is_limited(&self) -> bool {
        self.shown.is_some()
    }

    /// Invalidates plans.
    pub fn renew(&mut self) {
        (self.version, self.moves) = (self.version + 1, self.moves + 1);
    }

    /// The worker that a slot is on.
    pub fn host(&self, slot: SlotId) -> Option<WorkerId> {
        self.slots.get(slot.0 as usize)?.host
    }

    /// The workers of all slots that have one.
    pub fn hosts(&self) -> Vec<WorkerId> {
        self.slots.iter().filter_map(|slot| slot.host).collect()
    }

    /// The worker of each slot.
    pub fn hosts_by_slot(&self) -> Vec<Option<WorkerId>> {
        self.slots.iter().map(|slot| slot.host).collect()
    }

    /// The slots that are on a worker.
    pub fn on(&self, worker: WorkerId) -> Vec<SlotId> {
        self.every().filter(|slot| self.host(*slot) == Some(worker)).collect()
    }

    /// The number that configurations name a slot by.
    pub fn number(&self, slot: SlotId) -> Option<u32> {
        self.slots.get(slot.0 as usize).map(|slot| slot.number)
    }

    /// Slots with their numbers, in the order of the numbers.
    pub fn numbers(&self) -> Vec<(u32, SlotId)> {
        let number = |slot: SlotId| (self.slots[slot.0 as usize].number, slot);
        let mut numbers: Vec<_> = self.all().map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Incremented by changes that invalidate plans.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Incremented when slots move between workers, or one is added.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// The fabrics of the workers' engines.
    pub fn fabrics(&self) -> &Arc<Fabrics> {
        &self.fabrics
    }

    /// Sets the fabrics; a change invalidates plans.
    pub fn set_fabrics(&mut self, fabrics: &Arc<Fabrics>) {
        if self.fabrics != *fabrics {
            self.fabrics = Arc::clone(fabrics);
            self.version += 1;
        }
    }

    /// Adds a worker: it gets the slots without a worker, or else a lent slot that holds nothing,
    /// or else a new slot, unless their number is fixed.
    pub fn add(&mut self, new: Host, holds_nothing: impl Fn(SlotId) -> bool) {
        self.moves += 1;
        let mut is_needed = true;
        for slot in self.slots.iter_mut().filter(|slot| slot.host.is_none()) {
            // The first becomes its own; the others are lent.
            slot.put_on(new, !std::mem::take(&mut is_needed));
        }
        if !is_needed {
            return;
        }
        let lent =
            self.every().find(|slot| self.slots[slot.0 as usize].is_lent && holds_nothing(*slot));
        if let Some(slot) = lent {
            self.slots[slot.0 as usize].put_on(new, false);
            return;
        }
        if let Some(count) = self.terms.count {
            if self.terms.is_elastic {
                self.rescale(count as usize + 1);
                self.house(&[new]);
            }
            return;
        }
        // Existing slots keep their numbers, so the worker's may be taken.
        let is_free = |number: &u32| self.slots.iter().all(|slot| slot.number != *number);
        let number = Some(new.number).filter(is_free).or_else(|| (0..).find(is_free));
        let number = number.unwrap_or(new.number);
        let Host { worker, arithmetic, .. } = new;
        self.slots.push(Slot { host: Some(worker), number, is_lent: false, arithmetic });
        self.version += 1;
    }

    /// Moves a lost worker's slots to others, those that are wanted for each if they are among them and
    /// compute the same; returns the slots.
    pub fn remove(
        &mut self,
        gone: WorkerId,
        others: &[Host],
        wanted: impl Fn(SlotId) -> Option<WorkerId>,
    ) -> Vec<SlotId> {
        let moved = self.on(gone);
        for slot in &moved {
            // One that computes the same; the one that is wanted, or else that with the fewest slots of
            // this session, the first of equals.
            let (wanted, arithmetic) = (wanted(*slot), self.arithmetic(*slot));
            let order = |host: &&Host| {
                let is_other = host.arithmetic != arithmetic;
                (is_other, Some(host.worker) != wanted, self.on(host.worker).len())
            };
            let host = others.iter().min_by_key(order).copied();
            let slot = &mut self.slots[slot.0 as usize];
            match host {
                Some(host) => slot.put_on(host, true),
                None => (slot.host, slot.is_lent) = (None, true),
            }
        }
        self.moves += u64::from(!moved.is_empty());
        moved
    }
}

#[cfg(test)]
mod tests;
