//! Spills tensors out of the device's memory, and unspills them when they are used.
//!
//! Tensors of disconnected clients' sessions are spilled first, then those of the session that is
//! furthest over its share, the least recently used first: to the host's memory if the device has its
//! own, and otherwise to disk. A tensor that is being written stays in memory until the write is done.

use std::cmp::Reverse;

use gt_ir::message::Failure;
use gt_ir::stored::OnDisk;
use gt_ir::{Incarnation, LaneId, TensorId};

use super::Worker;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::snapshot_store::Medium;
use crate::store::{Away, Listed, SpillPlace};
use crate::work::{FileJob, Out};

impl<E: Engine> Worker<E> {
    /// Spills tensors until `excess` bytes are free, or will be after the writes. `pinned` are
    /// tensors of lane `id` that stay. Returns the bytes that are or will be free.
    pub(super) fn spill(
        &mut self,
        id: LaneId,
        excess: u64,
        pinned: &[TensorId],
        out: &mut Vec<Out>,
    ) -> u64 {
        let held = &self.device.held;
        let mut free = held.writing.values().sum::<u64>() + held.spilling_snapshots;
        if free >= excess || !self.may_spill() {
            return free;
        }
        for (lane, listed) in self.victims(id, pinned) {
            if free >= excess {
                break;
            }
            if self.move_away(lane, listed, out) {
                free += listed.meta.bytes() as u64;
            }
        }
        free
    }

    fn may_spill(&self) -> bool {
        let options = &self.device.options;
        (options.spill > 0 && !self.shortages.is_disk_full)
            || (options.host_memory > 0 && !self.device.engine.is_on_host())
    }

    /// Returns the tensors that may be spilled, in order.
    fn victims(&self, id: LaneId, pinned: &[TensorId]) -> Vec<(LaneId, Listed)> {
        let (held, smallest) = (&self.device.held, self.device.options.spill_from);
        let mut sessions: Vec<(u64, Incarnation)> = Vec::new();
        for lane in self.lanes.values() {
            let session = lane.id.incarnation;
            match sessions.iter_mut().find(|(_, other)| *other == session) {
                Some((bytes, _)) => *bytes += lane.store.bytes(),
                None => sessions.push((lane.store.bytes(), session)),
            }
        }
        for (bytes, session) in &mut sessions {
            // By how much it exceeds its share.
            *bytes = (*bytes as f64 / self.ready.share(*session).max(1e-9)) as u64;
        }
        let order = |&(over, session): &(u64, Incarnation)| {
            (Reverse(self.ready.is_away(session)), Reverse(over), session)
        };
        sessions.sort_unstable_by_key(order);
        let mut victims = Vec::new();
        for (_, session) in sessions {
            let mut of_session: Vec<(LaneId, Listed)> = Vec::new();
            // A call keeps its operands in memory.
            let may_spill =
                |lane: &&Lane<E::Tensor>| lane.id.incarnation == session && lane.call.is_none();
            for lane in self.lanes.values().filter(may_spill) {
                let is_free = |listed: &Listed| {
                    let is_pinned = lane.id == id && pinned.contains(&listed.id);
                    let grant = lane.memory.grant.as_ref();
                    let is_kept = grant.is_some_and(|grant| grant.pinned.contains(&listed.id));
                    // A tensor that repeats elements would take more bytes when spilled.
                    let is_whole = listed.bytes >= listed.meta.bytes() as u64;
                    // Publications keep the memory of theirs.
                    let published = lane.store.shared.published(listed.id);
                    let is_published = published.is_some_and(|of| held.is_published(of));
                    let is_movable = is_whole && !is_published;
                    listed.bytes >= smallest && is_movable && !is_pinned && !is_kept
                };
                let list = lane.store.list().into_iter().filter(is_free);
                of_session.extend(list.map(|listed| (lane.id, listed)));
            }
            of_session.sort_by_key(|(_, listed)| (listed.used, Reverse(listed.bytes)));
            victims.extend(of_session);
        }
        // A buffer is freed only with all of its tensors.
        victims.sort_by_key(|(_, listed)| listed.is_shared);
        victims
    }

    /// Moves a tensor to the host's memory, or starts to write it to disk; returns whether it does.
    fn move_away(&mut self, id: LaneId, listed: Listed, out: &mut Vec<Out>) -> bool {
        let Listed { id: tensor, meta, line, .. } = listed;
        let bytes = meta.bytes() as u64;
        let device = &self.device;
        let host = if device.engine.is_on_host() { 0 } else { device.options.host_memory };
        let fits_host = device.held.spilled_bytes - device.held.disk_bytes + bytes <= host;
        if !fits_host && !self.has_disk(bytes, out) {
            return false;
        }
        let Worker { device, lanes, shortages, .. } = self;
        let Some(lane) = lanes.get_mut(&id) else { return false };
        let Some(value) = lane.store.ready(tensor).cloned() else { return false };
        // A tensor that cannot be read stays.
        let Ok(data) = device.guarded(|engine| engine.read(&value)) else { return false };
        drop(value);
        if fits_host {
            let away = Away { meta, line, place: SpillPlace::Host(data) };
            lane.store.put_away(&mut device.held, tensor, away);
            return true;
        }
        shortages.files += 1;
        let number = shortages.files;
        let place = SpillPlace::Writing { number, data: data.clone() };
        lane.store.put_away(&mut device.held, tensor, Away { meta, line, place });
        out.push(Out::Files(FileJob::Spill { lane: id, tensor, number, data }));
        true
    }

    /// Returns whether `bytes` bytes of a tensor fit on disk, evicting snapshots if needed.
    fn has_disk(&mut self, bytes: u64, out: &mut Vec<Out>) -> bool {
        let (held, most) = (&self.device.held, self.device.options.spill);
        let tensors = held.disk_bytes + held.writing.values().sum::<u64>() + bytes;
        if self.shortages.is_disk_full || tensors > most {
            return false;
        }
        let excess = |worker: &Worker<E>| {
            (tensors + worker.snapshots.amounts().on(Medium::Disk)).saturating_sub(most)
        };
        self.give_way(Medium::Disk, excess(self), out);
        excess(self) == 0
    }

    /// Handles a tensor that was written to disk, or could not be.
    pub(super) fn spilled(
        &mut self,
        id: LaneId,
        tensor: TensorId,
        number: u64,
        result: Result<OnDisk, Failure>,
        out: &mut Vec<Out>,
    ) {
        // If the disk is full, tensors have priority over snapshots.
        let is_full = result.is_err() && !self.give_way(Medium::Disk, 1, out);
        let Worker { device, lanes, shortages, .. } = self;
        shortages.retries = true;
        shortages.is_disk_full |= is_full;
        let lane = lanes.get_mut(&id);
        let is_it = |away: &&Away| matches!(away.place, SpillPlace::Writing { number: own, .. } if own == number);
        let found = lane.filter(|lane| lane.store.away(tensor).filter(is_it).is_some());
        // It was freed or used meanwhile.
        let Some(lane) = found else {
            if result.is_ok() {
                device.held.discarded.push(number);
            }
            return;
        };
        let Some(away) = lane.store.take_away(&mut device.held, tensor) else { return };
        match (result, away.place) {
            (Ok(file), _) => {
                let place = SpillPlace::Disk { number, file };
                lane.store.put_away(&mut device.held, tensor, Away { place, ..away });
            }
            (Err(_), SpillPlace::Writing { data, .. }) => {
                device.put_back_data(lane, tensor, data, away.line);
            }
            (Err(_), _) => {}
        }
    }
}
