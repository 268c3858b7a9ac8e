//! The worker's state machine: lanes take turns on one device, by a policy.
//!
//! - [`inputs`]: routes messages; [`ending`]: the end of sessions.
//! - [`run_queue`]: the ready lanes; [`preemption`]: long calls that are paused; [`anticipation`]:
//!   sessions that are about to ask; [`coscheduling`]: sessions that run on several workers at the
//!   same time; [`in_flight`]: turns that the device has not completed yet.
//! - [`limits`]: what lanes may hold; [`shortage`]: lanes that wait for memory; [`spill`]: tensors out
//!   of the device's memory; [`snapshots`]: messages about snapshots, and their memory.
//! - [`publications`]: what lanes read of others; [`collectives`]: starts collectives.

mod anticipation;
mod collectives;
mod coscheduling;
mod ending;
mod in_flight;
mod inputs;
mod limits;
mod preemption;
mod publications;
mod run_queue;
mod shortage;
mod snapshots;
mod spill;

use std::collections::BTreeMap;
use std::time::Duration;

use gt_ir::event::EmitLevel;
use gt_ir::statistics::WorkerStats;
use gt_ir::{EngineCollective, Incarnation, LaneId, TensorData, TensorId};

use self::anticipation::Anticipated;
use self::coscheduling::Reservation;
use self::ending::EndedSessions;
use self::in_flight::Ahead;
use self::limits::LaneLimits;
use self::preemption::InteractiveSessions;
use self::run_queue::RunQueue;
use self::shortage::Shortages;
use crate::collective::Collectives;
use crate::device::Device;
use crate::device::measure::Measure;
use crate::engine::{Engine, Notifier};
use crate::lane::Lane;
use crate::lost_workers::LostWorkers;
use crate::memory::Need;
use crate::snapshot_store::{SnapshotRecord, SnapshotStore};
use crate::turn::Turn;
use crate::work::{FileJob, Options, Out, Work, WorkerInput};

/// The most commands in a turn.
const TURN: usize = 128;
/// Runs the commands of many lanes on an engine. An operation that fails, or panics, fails its
/// output and everything computed from it; the worker continues.
pub struct Worker<E: Engine> {
    device: Device<E>,
    lanes: BTreeMap<LaneId, Lane<E::Tensor>>,
    collectives: Collectives<E::Tensor>,
    lost: LostWorkers,
    snapshots: SnapshotStore,
    /// The lanes that may have work.
    ready: RunQueue,
    limits: LaneLimits,
    shortages: Shortages,
    ahead: Ahead,
    reservation: Option<Reservation>,
    anticipated: Option<Anticipated>,
    /// When the last turn began and ended.
    last_turn: (Duration, Duration),
    /// The lane whose long call the device computes between turns.
    computing: Option<LaneId>,
    interactive: InteractiveSessions,
    /// The number of turns so far.
    turns: u64,
    ended: EndedSessions,
}

/// How long a turn waits for a compiler if no other lane is ready.
const PATIENCE: Duration = Duration::from_millis(1);

/// Why a lane's turn ends.
enum TurnEnd {
    /// The queue is empty, or the lane waits.
    Idle,
    /// The lane waits for an exchange.
    Exchanging,
    /// The lane waits for a compiler: it has another turn after the other lanes'.
    Compiling,
    /// The turn's limits are reached: it has another turn.
    Over,
    /// There is no memory for what its next command needs, except these tensors.
    Short(Need, Vec<TensorId>),
}

impl<E: Engine> Worker<E> {
    /// A worker whose failures and statistics carry `name`.
    pub fn new(name: String, engine: E) -> Worker<E> {
        Worker {
            device: Device::new(name, engine),
            lanes: BTreeMap::new(),
            collectives: Collectives::default(),
            lost: LostWorkers::default(),
            snapshots: SnapshotStore::default(),
            ready: RunQueue::default(),
            limits: LaneLimits::default(),
            shortages: Shortages::default(),
            ahead: Ahead::default(),
            reservation: None,
            anticipated: None,
            last_turn: Default::default(),
            computing: None,
            interactive: InteractiveSessions::default(),
            turns: 0,
            ended: EndedSessions::default(),
        }
    }

    /// Sets the options.
    pub fn with_options(mut self, options: Options) -> Worker<E> {
        self.device.options = options;
        self.limits.capacity = options.memory;
        self
    }

    /// Returns a lane, creating it on first use.
    fn lane(&mut self, id: LaneId) -> &mut Lane<E::Tensor> {
        self.lanes.entry(id).or_insert_with(|| Lane::new(id))
    }

    /// Makes a lane ready.
    fn wake(&mut self, id: LaneId) {
        if self.reservation.as_ref().is_some_and(|reservation| reservation.is_for(id.incarnation)) {
            self.end_reservation();
        }
        self.begin_question(id.incarnation);
        // A lane that waits for memory is woken when memory is freed.
        if self.lanes.get(&id).is_some_and(|lane| !lane.memory.waits) {
            self.ready.wake(id);
        }
    }

    /// Searches a lane's queue for unwanted work.
    fn look_through(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let free = lane.queue.look_through();
        // A call may stand for queued commands, whose tensors it needs.
        if lane.running.is_none() && lane.call.is_none() {
            lane.store.free_all(&mut self.device.held, &free);
        }
    }

    /// Runs a lane's turn.
    fn turn(&mut self, id: LaneId, out: &mut Vec<Out>) -> TurnEnd {
        let (quota, capacity) = self.limits.of_lane(&self.lanes, &self.device.held, id);
        self.turns += 1;
        self.device.pausable_from = self.pausable_from(id.incarnation);
        let Worker { device, lanes, collectives, lost, snapshots, ready, turns, .. } = self;
        let Some(lane) = lanes.get_mut(&id) else { return TurnEnd::Idle };
        (lane.memory.quota, lane.memory.capacity) = (quota, capacity);
        lane.store.turn = *turns;
        device.events.turn_to(id.incarnation);
        let (others_wait, is_shared) = (ready.has_next(), ready.is_shared());
        let patience = if others_wait { Duration::ZERO } else { PATIENCE };
        let work = device.turn_work();
        // Work that is issued to a device cannot be preempted when another lane becomes ready.
        let is_short = others_wait || is_shared && device.engine.runs_ahead();
        let sent = out.len();
        let mut turn = Turn {
            device,
            lane,
            collectives,
            lost,
            snapshots,
            out,
            spent: 0,
            measure: Measure::Estimate,
            told: 0,
            sent,
            patience,
            compiles: false,
            is_pending: false,
            short: None,
        };
        let (mut end, mut is_told_later, mut began) = (TurnEnd::Over, false, Measure::Estimate);
        turn.device.begin_budget(turn.lane.room(0).unwrap_or(0));
        E::hold(&mut || {
            began = turn.device.begin_measure();
            turn.measure = turn.since_charged(began);
            for _ in 0..TURN {
                if !turn.next() {
                    end = if turn.compiles { TurnEnd::Compiling } else { TurnEnd::Idle };
                    break;
                }
                if turn.is_awaited() {
                    break;
                }
                if turn.spent > work && (is_short || turn.is_long()) {
                    break;
                }
            }
            is_told_later = turn.device.end_turn(turn.measure);
        });
        turn.device.engine.set_budget(None);
        if let Some(need) = turn.short {
            end = TurnEnd::Short(need, turn.needs_next());
        }
        if turn.is_pending && (turn.lane.exchanges.are_open() || turn.collectives.has(id)) {
            end = TurnEnd::Exchanging;
        }
        let call = turn.lane.call.as_ref().map(|call| call.taken);
        let computes = call.is_some();
        if computes {
            end = TurnEnd::Over;
        }
        self.computing = computes.then_some(id);
        let measure = turn.measure;
        let cost = turn.end();
        if let (Measure::Clock(began), Measure::Clock(charged)) = (began, measure) {
            let ended = charged + Duration::from_nanos(cost);
            self.last_turn = (began, ended);
            if let Some(call) = self.lanes.get_mut(&id).and_then(|lane| lane.call.as_mut()) {
                // The turn's own time is charged with the turn.
                call.charged = ended;
            }
        }
        if is_told_later {
            self.await_cost(id);
        } else if is_shared {
            ready.charge_turn(id.incarnation, cost.max(1), call);
            if matches!(end, TurnEnd::Idle | TurnEnd::Exchanging) {
                self.begin_wait(id);
            }
        }
        if is_shared && matches!(end, TurnEnd::Idle) {
            self.end_question(id);
        }
        end
    }

    /// Ends the open event, if events are on.
    fn pause(&mut self, out: &mut Vec<Out>) {
        self.spill_excess_snapshots(out);
        if self.device.events.is_on() {
            self.device.pause(self.computing.is_none(), out);
        }
        if !self.device.held.discarded.is_empty() {
            self.shortages.is_disk_full = false;
            let discarded = std::mem::take(&mut self.device.held.discarded).into_iter();
            out.extend(discarded.map(|number| Out::Files(FileJob::Discard { number })));
        }
    }
}

impl<E: Engine> Work for Worker<E> {
    fn handle(&mut self, input: WorkerInput, out: &mut Vec<Out>) {
        self.route(input, out);
        self.resolve_shortages(out);
        self.pause(out);
    }

    fn step(&mut self, out: &mut Vec<Out>) -> bool {
        self.catch_up(out);
        if self.is_reserved() || self.anticipates() {
            return true;
        }
        let Some(id) = self.ready.next() else { return false };
        let id = self.preempts(id);
        if !self.pause_others(id) {
            self.ready.again(id);
            return true;
        }
        let before = out.len();
        match self.turn(id, out) {
            TurnEnd::Compiling => self.ready.set_aside(id),
            TurnEnd::Over => {
                self.ready.take_back();
                self.ready.again(id);
            }
            TurnEnd::Idle => self.ready.take_back(),
            TurnEnd::Exchanging => {
                self.ready.take_back();
                self.reserve(id);
            }
            TurnEnd::Short(need, pinned) => {
                self.ready.take_back();
                self.find_room(id, need, pinned, out);
            }
        }
        self.shortages.has_rested |= !self.ready.has_next();
        self.resolve_shortages(out);
        self.tell_others(before, out);
        self.pause(out);
        true
    }

    fn held_for(&self) -> Option<Duration> {
        if self.reservation.is_some() {
            return Some(coscheduling::LOOK);
        }
        self.computes_for().or_else(|| self.anticipates_for())
    }

    fn due(&self) -> Option<&EngineCollective> {
        self.collectives.due()
    }

    fn join(&mut self, out: &mut Vec<Out>) {
        self.run_engine_collective();
        self.pause(out);
    }

    fn can_read(&self) -> bool {
        !self.device.engine.runs_ahead()
    }

    fn read(&mut self, lane: LaneId, tensor: TensorId) -> Option<TensorData> {
        let Worker { device, lanes, .. } = self;
        let lane = lanes.get(&lane)?;
        let mut found = None;
        E::hold(&mut || found = device.read(lane, tensor));
        found
    }

    fn stats(&self) -> WorkerStats {
        self.device.stats()
    }

    fn leftovers(&self) -> Option<String> {
        let (tensors, lanes) = (self.device.stats().tensors, self.lanes.len());
        let (collectives, ready) = (self.collectives.len(), self.ready.len());
        debug_assert!(lanes > 0 || self.device.held.granted == 0, "grants go with their lanes");
        let kept = !self.snapshots.is_empty();
        (tensors > 0 || lanes + collectives + ready > 0 || kept).then(|| {
            format!(
                "{tensors} tensors, {lanes} lanes, {collectives} collectives, {ready} turns, snapshots: {kept}"
            )
        })
    }

    fn rate(&self) -> u64 {
        self.device.engine.rate()
    }

    fn observe(&mut self, level: EmitLevel, now: Duration) {
        let here = self.device.engine.now();
        self.device.events.observe(level, here, now);
    }

    fn allow_pauses(&mut self, notify: Notifier) {
        self.device.options.pauses = true;
        self.device.slice = Duration::ZERO;
        self.device.engine.notify_by(notify);
    }

    fn report(&mut self, is_asked: bool, out: &mut Vec<Out>) -> Option<Duration> {
        self.tell_usage(out);
        self.device.report(is_asked, out)
    }

    fn renew(&mut self, keeps_snapshots: bool, out: &mut Vec<Out>) {
        self.end_sessions_before(Incarnation(u32::MAX));
        self.ready.forget();
        self.ahead.forget();
        (self.reservation, self.anticipated, self.computing) = (None, None, None);
        self.snapshots.renew();
        // Ids may be assigned again.
        self.lost = LostWorkers::default();
        self.renew_publications(keeps_snapshots);
        if !keeps_snapshots {
            self.snapshots.clear();
            self.device.note_snapshots(self.snapshots.amounts());
            self.ended = EndedSessions::default();
        }
        self.device.events.observe(EmitLevel::Nothing, self.device.engine.now(), Duration::ZERO);
        self.resolve_shortages(out);
        self.pause(out);
    }

    fn adopt(&mut self, records: Vec<SnapshotRecord>) -> usize {
        let count = self.snapshots.adopt(records);
        self.device.note_snapshots(self.snapshots.amounts());
        count
    }

    fn keep_records(&mut self) -> Vec<SnapshotRecord> {
        self.snapshots.keep_records()
    }

    fn leave_records(&mut self) {
        self.snapshots.leave_records();
    }

    fn take_records(&mut self) -> Vec<SnapshotRecord> {
        self.snapshots.take_records()
    }

    fn after_fork(&mut self) {
        self.device.engine.after_fork();
    }
}
