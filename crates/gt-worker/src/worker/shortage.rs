//! Lanes whose next command does not fit in memory:
//!
//! 1. Tensors that no queued command uses before their free are freed.
//! 2. If the worker's memory is exhausted, tensors are spilled, and unspilled when they are used.
//! 3. The lane waits for other lanes to free memory. If none will, the command fails.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use gt_ir::entitlement::{MemoryWait, Other};
use gt_ir::message::WorkerToServer;
use gt_ir::{Incarnation, LaneId, TensorId};

use super::Worker;
use crate::engine::Engine;
use crate::lane::holdings::{NAMED, largest};
use crate::memory::{ExceededLimit, Grant, Need, NoRoom};
use crate::snapshot_store::Medium;
use crate::work::Out;

/// A lane that waits for memory.
pub(super) struct Shortage {
    lane: LaneId,
    number: u64,
    need: Need,
    /// The tensors that its next command reads.
    pinned: Vec<TensorId>,
    /// Whether all commands that its session has sent have arrived.
    has_all: bool,
    /// The situation when tensors were last spilled for it.
    tried: Situation,
}

/// What determines which tensors can be spilled: the bytes in memory, the number of releases, and
/// the number of lanes with tensors there.
type Situation = (u64, u64, usize);

/// The lanes of a worker that wait for memory, in the order in which they started to, and the
/// writes to disk.
#[derive(Default)]
pub(super) struct Shortages {
    lanes: Vec<Shortage>,
    /// The number of waits so far.
    count: u64,
    /// The number of releases of memory when the lanes were last checked.
    seen: u64,
    /// The number of files so far.
    pub files: u64,
    /// Whether the disk was full, until a file is removed.
    pub is_disk_full: bool,
    /// Whether more tensors may be spilled since the lanes were last checked.
    pub retries: bool,
    /// Whether all lanes were idle for a moment since then.
    pub has_rested: bool,
}

impl Shortages {
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub fn has(&self, lane: LaneId) -> bool {
        self.lanes.iter().any(|shortage| shortage.lane == lane)
    }

    pub fn retire(&mut self, incarnation: Incarnation) {
        self.lanes.retain(|shortage| shortage.lane.incarnation != incarnation);
    }
}

impl<E: Engine> Worker<E> {
    /// Finds memory for a lane's next command, which does not fit, or has the lane wait. `pinned`
    /// are the tensors that the command reads.
    pub(super) fn find_room(
        &mut self,
        id: LaneId,
        need: Need,
        pinned: Vec<TensorId>,
        out: &mut Vec<Out>,
    ) {
        self.free_for_room(id);
        if self.skips_next(id) {
            return self.ready.again(id);
        }
        let Some(exceeded) = self.make_room(id, need, &pinned, out) else {
            self.grant(id, need.new + need.back, pinned);
            return self.ready.again(id);
        };
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        // Commands that were queued when an earlier one failed have waited with it.
        if !exceeded.holder.is_empty()
            && lane.queue.front().is_some_and(|batch| batch.has_waited)
            && let Some(before) = &lane.memory.last_failure
            && before.is_of(&exceeded.holder)
        {
            lane.memory.failure_if_short = Some(Box::new(before.with(exceeded)));
            return self.ready.again(id);
        }
        self.shortages.count += 1;
        let number = self.shortages.count;
        lane.memory.waits = true;
        // A waiting lane keeps no grant: another waiting lane may need it.
        lane.memory.end_grant(&mut self.device.held);
        let tried = self.situation();
        self.shortages.lanes.push(Shortage {
            lane: id,
            number,
            need,
            pinned,
            has_all: false,
            tried,
        });
        let bytes = need.new + need.back + exceeded.more;
        let wait = MemoryWait { number, bytes, holder: exceeded.holder };
        out.push(Out::Server(WorkerToServer::MemoryWait { lane: id, wait: Some(wait) }));
    }

    /// Frees the tensors that neither the running iteration nor a queued command uses before their
    /// free.
    pub(super) fn free_for_room(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let free = lane.queue.look_through();
        // A call may stand for queued commands, whose tensors it needs.
        if lane.call.is_some() {
            return;
        }
        let free = match &lane.running {
            None => free,
            Some(running) => match lane.templates.part(running.generation, running.part) {
                Some(part) => running.rest(&part.steps).free_at_once(free),
                None => return,
            },
        };
        lane.store.free_all(&mut self.device.held, &free);
    }

    /// Spills tensors if the worker has no room for `need` of a lane; returns the limit that it
    /// still exceeds.
    fn make_room(
        &mut self,
        id: LaneId,
        need: Need,
        pinned: &[TensorId],
        out: &mut Vec<Out>,
    ) -> Option<ExceededLimit> {
        let exceeded = self.exceeded(id, need)?;
        if exceeded.holder.is_empty() {
            let others = self.device.held.granted;
            let excess =
                (exceeded.held + others + need.new + need.back).saturating_sub(exceeded.allowed);
            self.spill_snapshots(excess.saturating_sub(self.device.held.spilling_snapshots), out);
            let free = self.spill(id, excess, pinned, out);
            self.give_way(Medium::Memory, excess.saturating_sub(free), out);
        }
        self.exceeded(id, need)
    }

    /// Grants memory to a lane's next command.
    fn grant(&mut self, id: LaneId, bytes: u64, pinned: Vec<TensorId>) {
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.memory.end_grant(&mut self.device.held);
            self.device.held.granted += bytes;
            lane.memory.grant = Some(Box::new(Grant { bytes, pinned }));
        }
    }

    fn exceeded(&self, id: LaneId, need: Need) -> Option<ExceededLimit> {
        self.limits.exceeded(&self.lanes, &self.device.held, id, need)
    }

    /// Checks whether memory is available now for the waiting lanes, or no lane is left that could
    /// free any.
    pub(super) fn resolve_shortages(&mut self, out: &mut Vec<Out>) {
        if self.shortages.is_empty() {
            return;
        }
        let has_released = self.shortages.seen != self.device.held.releases;
        self.shortages.seen = self.device.held.releases;
        // Tensors to spill were chosen when the lane started to wait; more follow when these are
        // written, or once no runnable lane may need them at once.
        let retries = std::mem::take(&mut self.shortages.retries);
        let has_rested = std::mem::take(&mut self.shortages.has_rested);
        for mut shortage in std::mem::take(&mut self.shortages.lanes) {
            let lane = shortage.lane;
            if self.skips_next(lane) {
                self.end_wait(lane, None, out);
                continue;
            }
            if !has_released && !retries && !has_rested && !shortage.has_all {
                self.shortages.lanes.push(shortage);
                continue;
            }
            // Tensors that it reads may have been spilled for other lanes.
            shortage.need.back = self.elsewhere(lane, &shortage.pinned);
            let need = shortage.need;
            let mut exceeded = self.exceeded(lane, need);
            let is_final = |exceeded: &ExceededLimit| {
                shortage.has_all && !self.may_free(lane, &exceeded.holder)
            };
            let is_new = shortage.tried != self.situation();
            if exceeded.as_ref().is_some_and(|it| retries || is_new && (has_rested || is_final(it)))
            {
                exceeded = self.make_room(lane, need, &shortage.pinned, out);
                shortage.tried = self.situation();
            }
            match exceeded {
                Some(exceeded) if shortage.has_all && !self.may_free(lane, &exceeded.holder) => {
                    self.end_wait(lane, Some(&exceeded), out);
                }
                Some(_) => self.shortages.lanes.push(shortage),
                None => {
                    self.grant(lane, need.new + need.back, shortage.pinned);
                    self.end_wait(lane, None, out);
                }
            }
        }
    }

    /// Returns whether a lane's next command is skipped, as its results are freed unread.
    fn skips_next(&mut self, id: LaneId) -> bool {
        let Some(lane) = self.lanes.get_mut(&id) else { return true };
        lane.running.is_none()
            && lane.queue.front().is_none_or(|batch| batch.is_skipped(batch.next))
    }

    /// Handles `MemoryTimeout`: all commands of the session have arrived. The waiting command fails
    /// if no lane will free memory, or at once if it `has_waited` long enough.
    pub(super) fn memory_timeout(
        &mut self,
        id: LaneId,
        number: u64,
        has_waited: bool,
        out: &mut Vec<Out>,
    ) {
        let mut all = self.shortages.lanes.iter_mut();
        let is_it = |shortage: &&mut Shortage| shortage.lane == id && shortage.number == number;
        let Some(shortage) = all.find(is_it) else { return };
        shortage.has_all = true;
        let (mut need, pinned) = (shortage.need, shortage.pinned.clone());
        self.shortages.retries = true;
        // Frees may have arrived since it started to wait.
        self.free_for_room(id);
        if has_waited {
            self.shortages.lanes.retain(|shortage| shortage.lane != id);
            need.back = self.elsewhere(id, &pinned);
            let exceeded = self.make_room(id, need, &pinned, out);
            self.end_wait(id, exceeded.as_ref(), out);
        }
    }

    /// Returns the bytes of a lane's spilled tensors among these.
    fn elsewhere(&self, id: LaneId, tensors: &[TensorId]) -> u64 {
        let Some(lane) = self.lanes.get(&id) else { return 0 };
        lane.store.elsewhere(tensors)
    }

    fn situation(&self) -> Situation {
        let keeps = self.lanes.values().filter(|lane| lane.memory.grant.is_some());
        (self.device.held.bytes, self.device.held.releases, keeps.count())
    }

    /// Returns whether running work may free memory of a holder, or of the worker if that is empty.
    fn may_free(&self, id: LaneId, holder: &str) -> bool {
        let held = &self.device.held;
        if holder.is_empty() && (!held.writing.is_empty() || held.spilling_snapshots > 0) {
            return true;
        }
        let is_of =
            |other: &LaneId| holder.is_empty() || self.limits.is_of(other.incarnation, holder);
        self.lanes.iter().any(|(other, lane)| {
            let works = lane.running.is_some() || !lane.queue.is_empty();
            *other != id && !lane.memory.waits && works && is_of(other)
        })
    }

    /// Resumes a lane; its next command fails if it still exceeds a limit.
    fn end_wait(&mut self, id: LaneId, exceeded: Option<&ExceededLimit>, out: &mut Vec<Out>) {
        let no_room = exceeded.map(|exceeded| Box::new(self.no_room(id, exceeded)));
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.memory.waits = false;
            if no_room.is_some() {
                lane.memory.last_failure.clone_from(&no_room);
                lane.queue.note_wait();
            }
            lane.memory.failure_if_short = no_room;
        }
        out.push(Out::Server(WorkerToServer::MemoryWait { lane: id, wait: None }));
        self.ready.wake(id);
    }

    /// Returns why a lane cannot exceed a limit.
    fn no_room(&self, id: LaneId, exceeded: &ExceededLimit) -> NoRoom {
        let holder = exceeded.holder.as_str();
        let counts =
            |incarnation: Incarnation| holder.is_empty() || self.limits.is_of(incarnation, holder);
        let mut sessions: BTreeMap<Incarnation, u64> = BTreeMap::new();
        for lane in self.lanes.values().filter(|lane| counts(lane.id.incarnation)) {
            let bytes = if holder.is_empty() { lane.store.bytes() } else { lane.counted() };
            *sessions.entry(lane.id.incarnation).or_default() += bytes;
        }
        sessions.remove(&id.incarnation);
        let sessions = sessions.into_iter().filter(|(_, held)| *held > 0);
        let other = |(incarnation, bytes)| Other { incarnation, label: String::new(), bytes };
        let mut others: Vec<Other> = sessions.map(other).collect();
        others.sort_by_key(|other| (Reverse(other.bytes), other.incarnation));
        others.truncate(NAMED);
        let own = self.lanes.values().filter(|lane| lane.id.incarnation == id.incarnation);
        NoRoom::new(exceeded.clone(), largest(own), others)
    }
}
