//! The worker slots of a session: the indirection between plans and workers.
//!
//! Plans name slots, not workers. Until a tensor is first sharded over the slots, each new worker
//! adds one; from then on their number is fixed, and workers host them: several after a loss, fewer
//! after a worker has joined. Results depend on the slots alone.
//!
//! - [`hosts`]: which workers host the slots.

mod hosts;

use std::sync::Arc;

use gt_ir::wire::{Decoded, Record, Sink, Source};
use gt_ir::{SlotId, WorkerId, record};

use crate::planner::fabrics::Fabrics;
use crate::planner::topology::Topology;

/// A worker's id, and the number that configurations name it by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Host {
    pub worker: WorkerId,
    pub number: u32,
    /// A hash of what its results depend on: equal for workers that compute the same bits.
    pub arithmetic: u64,
}

#[derive(Clone)]
struct WorkerSlot {
    /// `None` while no worker is connected.
    host: Option<WorkerId>,
    /// The number that configurations name the slot by: its worker's, until the slots are fixed.
    number: u32,
    /// Whether its own worker is gone and another hosts it as a substitute.
    is_displaced: bool,
    /// The arithmetic of its worker, or of the last one.
    arithmetic: u64,
}

record!(struct WorkerSlot { host, number, is_displaced, arithmetic });

impl WorkerSlot {
    /// Puts the slot on a worker.
    fn put_on(&mut self, host: Host, is_displaced: bool) {
        (self.host, self.is_displaced) = (Some(host.worker), is_displaced);
        self.arithmetic = host.arithmetic;
    }
}

/// The parameters that a session's results depend on beside its commands. They change where a
/// program asks for it, and once each when they are first needed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PlanningParameters {
    /// How many slots plans may use, once that is fixed.
    pub count: Option<u32>,
    /// Whether each worker that joins adds a slot even though the number is fixed.
    pub is_elastic: bool,
    /// The work per second by which templates are divided, once one was.
    pub rate: Option<u64>,
}

record!(struct PlanningParameters { count, is_elastic, rate });

/// How workers are connected.
#[derive(Clone, Default)]
pub struct Network {
    pub fabrics: Arc<Fabrics>,
    pub topology: Arc<Topology>,
}

/// The slots of a session, by number.
#[derive(Clone, Default)]
pub struct Slots {
    slots: Vec<WorkerSlot>,
    parameters: PlanningParameters,
    /// While a session's batches are replayed: the number of slots when they were first planned.
    plan_limit: Option<usize>,
    home: Option<SlotId>,
    network: Network,
    version: u64,
    hosts_version: u64,
}

/// Encoded without the fields that follow from the connected workers.
impl Record for Slots {
    fn write<S: Sink>(&self, to: &mut S) {
        self.slots.write(to);
        self.parameters.write(to);
        self.home.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Slots> {
        let (slots, parameters) = (Record::read(from)?, Record::read(from)?);
        Ok(Slots { slots, parameters, home: Record::read(from)?, ..Slots::default() })
    }
}

impl Slots {
    /// Returns the slot of tensors that nothing places elsewhere.
    pub fn home(&self) -> Option<SlotId> {
        self.home
    }

    /// Returns the worker of the home slot.
    pub fn home_worker(&self) -> Option<WorkerId> {
        self.host(self.home?)
    }

    /// Sets the slot of tensors that nothing places elsewhere.
    pub fn set_home(&mut self, home: Option<SlotId>) {
        self.home = home;
    }

    /// Returns how many slots plans may use.
    pub fn count(&self) -> usize {
        let fixed = self.parameters.count.map(|count| count as usize);
        self.plan_limit.or(fixed).map_or(self.slots.len(), |count| count.min(self.slots.len()))
    }

    /// Returns the parameters that results depend on.
    pub fn parameters(&self) -> PlanningParameters {
        self.parameters
    }

    /// Returns whether their number is fixed.
    pub fn is_fixed(&self) -> bool {
        self.parameters.count.is_some()
    }

    /// Sets whether workers that join add slots though the number is fixed.
    pub fn set_elastic(&mut self, is_elastic: bool) {
        self.parameters.is_elastic = is_elastic;
    }

    /// Returns the work per second by which templates are divided: `now`, the first time.
    pub fn rate(&mut self, now: u64) -> u64 {
        *self.parameters.rate.get_or_insert(now)
    }

    /// Fixes the number of slots, when a tensor is first sharded over them, and numbers them from 0
    /// on, in the order of their workers' numbers, machine by machine ([`Topology::order`]).
    pub fn fix(&mut self) {
        if self.parameters.count.is_some() {
            return;
        }
        let count = self.count();
        let hosted = |(_, slot)| (slot, self.host(slot));
        let used: Vec<_> = self.numbers().into_iter().map(hosted).collect();
        // Which kind of worker computes which part must not depend on measured rates.
        let arithmetic = used.first().map(|(slot, _)| self.arithmetic(*slot));
        let is_uniform = used.iter().all(|(slot, _)| Some(self.arithmetic(*slot)) == arithmetic);
        let used = match is_uniform {
            true => self.network.topology.order(&used),
            false => used.into_iter().map(|(slot, _)| slot).collect(),
        };
        // While batches are replayed, slots beyond the limit were added later.
        for (number, slot) in used.into_iter().chain(self.all().skip(count)).enumerate() {
            self.slots[slot.0 as usize].number = number as u32;
        }
        self.parameters.count = Some(count as u32);
        self.version += 1;
    }

    /// Sets the number of slots. New ones are on no worker yet ([`Slots::assign_hosts`]). Slots
    /// beyond the number stay while they hold tensors, but nothing new is placed there.
    pub fn rescale(&mut self, count: usize) {
        self.fix();
        for number in self.slots.len()..count {
            let arithmetic = self.home().map_or(0, |home| self.arithmetic(home));
            self.slots.push(WorkerSlot {
                host: None,
                number: number as u32,
                is_displaced: false,
                arithmetic,
            });
        }
        self.parameters.count = Some(count as u32);
        self.plan_limit = self.plan_limit.map(|_| count);
        (self.version, self.hosts_version) = (self.version + 1, self.hosts_version + 1);
    }

    /// Moves a slot to a worker.
    pub fn move_to(&mut self, slot: SlotId, host: Host) {
        self.slots[slot.0 as usize].put_on(host, false);
        self.hosts_version += 1;
    }

    /// Updates the arithmetic of a worker that has reconnected.
    pub fn update_arithmetic(&mut self, host: Host) {
        for slot in self.slots.iter_mut().filter(|slot| slot.host == Some(host.worker)) {
            slot.arithmetic = host.arithmetic;
        }
    }

    /// Returns the arithmetic of a slot's worker, or of the last one that it had.
    pub fn arithmetic(&self, slot: SlotId) -> u64 {
        self.slots.get(slot.0 as usize).map_or(0, |slot| slot.arithmetic)
    }

    /// Returns the arithmetic of each slot's worker.
    pub fn arithmetics(&self) -> Vec<u64> {
        self.slots.iter().map(|slot| slot.arithmetic).collect()
    }

    /// Returns the slots that plans may use: before their number is fixed, the first ones.
    pub fn usable(&self) -> impl Iterator<Item = SlotId> {
        let count = self.count() as u32;
        let is_fixed = self.parameters.count.is_some();
        let place = move |slot: &SlotId| match is_fixed {
            true => self.slots[slot.0 as usize].number,
            false => slot.0,
        };
        self.all().filter(move |slot| place(slot) < count)
    }

    /// Returns all slots, including those that plans may not use.
    pub fn all(&self) -> impl Iterator<Item = SlotId> + use<> {
        (0..self.slots.len() as u32).map(SlotId)
    }

    /// Returns the same slots, of which plans use `count`.
    pub fn of(&self, count: usize) -> Slots {
        let mut slots = self.clone();
        match &mut slots.parameters.count {
            Some(fixed) => *fixed = count as u32,
            None => slots.slots.truncate(count),
        }
        slots
    }

    /// Lets plans use the first `count` slots only, or all if `None`.
    pub fn limit_plans(&mut self, count: Option<usize>) {
        let before = self.count();
        self.plan_limit = count;
        self.version += u64::from(self.count() != before);
    }

    /// Returns whether plans may use only some slots.
    pub fn is_limited(&self) -> bool {
        self.plan_limit.is_some()
    }

    pub fn invalidate_plans(&mut self) {
        (self.version, self.hosts_version) = (self.version + 1, self.hosts_version + 1);
    }

    /// Returns the worker that a slot is on.
    pub fn host(&self, slot: SlotId) -> Option<WorkerId> {
        self.slots.get(slot.0 as usize)?.host
    }

    /// Returns the workers of all slots that have one.
    pub fn hosts(&self) -> Vec<WorkerId> {
        self.slots.iter().filter_map(|slot| slot.host).collect()
    }

    /// Returns the worker of each slot.
    pub fn hosts_by_slot(&self) -> Vec<Option<WorkerId>> {
        self.slots.iter().map(|slot| slot.host).collect()
    }

    /// Returns the slots that have a worker, each with it.
    pub fn placed(&self) -> Vec<(SlotId, WorkerId)> {
        self.all().filter_map(|slot| Some((slot, self.host(slot)?))).collect()
    }

    /// Returns the slots that are on a worker.
    pub fn on(&self, worker: WorkerId) -> Vec<SlotId> {
        self.all().filter(|slot| self.host(*slot) == Some(worker)).collect()
    }

    /// Returns the number that configurations name a slot by.
    pub fn number(&self, slot: SlotId) -> Option<u32> {
        self.slots.get(slot.0 as usize).map(|slot| slot.number)
    }

    /// Returns the slots that plans may use with their numbers, in the order of the numbers.
    pub fn numbers(&self) -> Vec<(u32, SlotId)> {
        let number = |slot: SlotId| (self.slots[slot.0 as usize].number, slot);
        let mut numbers: Vec<_> = self.usable().map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Returns a version that is incremented by changes that invalidate plans.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns a version that is incremented when slots move between workers, or one is added.
    pub fn hosts_version(&self) -> u64 {
        self.hosts_version
    }

    /// Returns the fabrics of the workers' engines.
    pub fn fabrics(&self) -> &Arc<Fabrics> {
        &self.network.fabrics
    }

    /// Sets how workers are connected; a change of the fabrics invalidates plans.
    pub fn set_network(&mut self, network: &Network) {
        self.version += u64::from(self.network.fabrics != network.fabrics);
        self.network = network.clone();
    }

    /// Adds a worker: it gets the slots without a worker, or else an empty slot from a substitute,
    /// or else a new slot, unless their number is fixed.
    pub fn add(&mut self, new: Host, is_empty: impl Fn(SlotId) -> bool) {
        self.hosts_version += 1;
        let mut is_needed = true;
        for slot in self.slots.iter_mut().filter(|slot| slot.host.is_none()) {
            // The first becomes its own; for the others it is a substitute.
            slot.put_on(new, !std::mem::take(&mut is_needed));
        }
        if !is_needed {
            return;
        }
        let displaced =
            self.all().find(|slot| self.slots[slot.0 as usize].is_displaced && is_empty(*slot));
        if let Some(slot) = displaced {
            self.slots[slot.0 as usize].put_on(new, false);
            return;
        }
        if let Some(count) = self.parameters.count {
            if self.parameters.is_elastic {
                self.rescale(count as usize + 1);
                self.assign_hosts(&[new]);
            }
            return;
        }
        // Existing slots keep their numbers, so the worker's may be taken.
        let is_free = |number: &u32| self.slots.iter().all(|slot| slot.number != *number);
        let number = Some(new.number).filter(is_free).or_else(|| (0..).find(is_free));
        let number = number.unwrap_or(new.number);
        let Host { worker, arithmetic, .. } = new;
        self.slots.push(WorkerSlot { host: Some(worker), number, is_displaced: false, arithmetic });
        self.version += 1;
    }
}

#[cfg(test)]
mod tests;
