//! Rates and uses of time, smoothed, from one status to the next.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use gt_ir::event::Activity;
use gt_ir::status::cluster_event::ClusterEvent;
use gt_ir::status::{SessionStatus, Status, WorkerStatus};
use gt_ir::{SessionId, WorkerId};

const KINDS: usize = Activity::ALL.len();
/// The most cluster events that are kept, as each status shows all of them.
const EVENTS: usize = 100;

/// The displayed state of a dispatcher.
pub struct Model {
    alpha: f64,
    pub status: Option<Status>,
    /// The newest cluster events, in their order.
    pub events: VecDeque<ClusterEvent>,
    workers: BTreeMap<WorkerId, Shares>,
    sessions: BTreeMap<SessionId, Rates>,
}

/// A worker's time by activity: fractions of 1; the rest is idle.
#[derive(Clone, Copy, Default)]
pub struct Shares {
    pub of: [f64; KINDS],
    /// Busy with an activity that is not reported yet.
    pub untold: f64,
}

impl Shares {
    pub fn busy(&self) -> f64 {
        (self.of.iter().sum::<f64>() + self.untold).min(1.0)
    }
}

/// A session's rates.
#[derive(Clone, Copy, Default)]
pub struct Rates {
    /// Instructions a second.
    pub instructions: f64,
    /// The fraction of the time of all workers that it uses.
    pub used: f64,
}

impl Model {
    /// Creates a model; `alpha` is the weight of the newest measurement.
    pub fn new(alpha: f64) -> Model {
        let (workers, sessions) = (BTreeMap::new(), BTreeMap::new());
        Model { alpha, status: None, events: VecDeque::new(), workers, sessions }
    }

    /// Updates the model by the newest status.
    pub fn take(&mut self, mut status: Status) {
        self.events.extend(status.cluster_events.drain(..));
        self.events.drain(..self.events.len().saturating_sub(EVENTS));
        if let Some(before) = &self.status {
            let seconds = status.now.saturating_sub(before.now).as_secs_f64();
            if seconds <= 0.0 {
                return;
            }
            let alpha = self.alpha;
            let smooth = |old: f64, new: f64| old + alpha * (new - old);
            let old_workers = std::mem::take(&mut self.workers);
            // Of the time of all workers: busy, and busy for sessions that are not reported yet.
            let (mut busy, mut missing) = (0.0, 0.0);
            for worker in &status.workers {
                let earlier = before.workers.iter().find(|earlier| earlier.id == worker.id);
                let now = earlier.map(|earlier| shares(earlier, worker, before.now, status.now));
                let (now, untold) = now.unwrap_or_default();
                busy += now.busy() / status.workers.len() as f64;
                missing += untold;
                let smoothed = match old_workers.get(&worker.id) {
                    Some(old) => Shares {
                        of: std::array::from_fn(|kind| smooth(old.of[kind], now.of[kind])),
                        untold: smooth(old.untold, now.untold),
                    },
                    None => now,
                };
                self.workers.insert(worker.id, smoothed);
            }
            let old_sessions = std::mem::take(&mut self.sessions);
            let earlier = |session: &SessionStatus| {
                before.sessions.iter().find(|earlier| earlier.number == session.number)
            };
            let times = times(&status.sessions, earlier, &old_sessions, missing);
            let all: f64 = times.iter().sum();
            for (session, time) in status.sessions.iter().zip(times) {
                let instructions = earlier(session)
                    .map_or(0, |earlier| session.instructions.saturating_sub(earlier.instructions));
                let now = Rates {
                    instructions: instructions as f64 / seconds,
                    used: if all > 0.0 { busy * time / all } else { 0.0 },
                };
                let smoothed = match old_sessions.get(&session.number) {
                    Some(old) => Rates {
                        instructions: smooth(old.instructions, now.instructions),
                        used: smooth(old.used, now.used),
                    },
                    None => now,
                };
                self.sessions.insert(session.number, smoothed);
            }
        }
        self.status = Some(status);
    }

    pub fn shares(&self, worker: &WorkerStatus) -> Shares {
        self.workers.get(&worker.id).copied().unwrap_or_default()
    }

    pub fn rates(&self, session: &SessionStatus) -> Rates {
        self.sessions.get(&session.number).copied().unwrap_or_default()
    }

    /// Returns the instructions per second of all sessions.
    pub fn rate(&self) -> f64 {
        // An empty sum would be -0.
        self.sessions.values().fold(0.0, |sum, rates| sum + rates.instructions)
    }
}

/// Returns how long workers were busy for each session. Unreported time is divided among the
/// sessions with work, by what they used before.
fn times<'a>(
    sessions: &[SessionStatus],
    earlier: impl Fn(&SessionStatus) -> Option<&'a SessionStatus>,
    before: &BTreeMap<SessionId, Rates>,
    missing: f64,
) -> Vec<f64> {
    let weight = |session: &SessionStatus| {
        let used = before.get(&session.number).map_or(0.0, |rates| rates.used);
        if session.open > 0 { used + 0.01 } else { 0.0 }
    };
    let weights: f64 = sessions.iter().map(weight).sum();
    let time = |session: &SessionStatus| {
        let told = earlier(session).map(|earlier| session.busy.saturating_sub(earlier.busy));
        let part = if weights > 0.0 { missing * weight(session) / weights } else { 0.0 };
        told.unwrap_or_default().as_secs_f64() + part
    };
    sessions.iter().map(time).collect()
}

/// Returns a worker's time by activity between two statuses, and the seconds of unreported work.
/// Time that is not reported yet, during a long operation or before the worker emits events, counts
/// as its last activity, as far as the worker had work.
fn shares(
    earlier: &WorkerStatus,
    later: &WorkerStatus,
    from: Duration,
    until: Duration,
) -> (Shares, f64) {
    let window = until.saturating_sub(from);
    let seconds = window.as_secs_f64();
    let grown = |kind: usize| {
        let (old, new) = (earlier.report.busy[kind], later.report.busy[kind]);
        // A worker that has restarted emitting starts at zero.
        if new < old { new } else { new - old }.as_secs_f64()
    };
    let mut times: [f64; KINDS] = std::array::from_fn(grown);
    // Reports arrive in steps, so one may cover more time than has passed.
    let all: f64 = times.iter().sum();
    let told = later.report.at.saturating_sub(later.report.since.max(earlier.report.at));
    let missing = window.saturating_sub(told).as_secs_f64();
    let had_work = later.busy.saturating_sub(earlier.busy).as_secs_f64();
    let time = missing.min(had_work - all).max(0.0);
    let most = (0..KINDS).max_by(|a, b| times[*a].total_cmp(&times[*b])).unwrap_or(0);
    let busy = &later.report.busy;
    let ever = (0..KINDS).max_by_key(|kind| busy[*kind]).unwrap_or(0);
    let mut untold = 0.0;
    if all > 0.0 {
        times[most] += time;
    } else if !busy[ever].is_zero() {
        times[ever] += time;
    } else {
        untold = time;
    }
    let all: f64 = times.iter().sum::<f64>() + untold;
    let scale = if all > seconds { 1.0 / all } else { 1.0 / seconds };
    (Shares { of: times.map(|time| time * scale), untold: untold * scale }, time)
}

#[cfg(test)]
mod tests {
    use gt_ir::entitlement::Entitlement;
    use gt_ir::status::{Report, Waits};

    use super::*;

    /// A report at a time, with this long in products, and this long with work.
    fn worker(at: u64, matmul: u64, busy: u64) -> WorkerStatus {
        let mut report = Report { at: Duration::from_millis(at), ..Report::default() };
        report.busy[Activity::Matmul as usize] = Duration::from_millis(matmul);
        WorkerStatus {
            id: WorkerId(0),
            number: 0,
            name: "w0".into(),
            host: String::new(),
            rack: String::new(),
            is_draining: false,
            homes: 1,
            in_flight: 0,
            batches: 0,
            busy_since: None,
            busy: Duration::from_millis(busy),
            report,
        }
    }

    fn status(now: u64, worker: WorkerStatus) -> Status {
        Status { now: Duration::from_millis(now), workers: vec![worker], ..Status::default() }
    }

    fn matmul(model: &Model) -> f64 {
        let status = model.status.as_ref().unwrap();
        model.shares(&status.workers[0]).of[Activity::Matmul as usize]
    }

    #[test]
    fn events_of_earlier_statuses_are_kept_up_to_a_limit() {
        use gt_ir::status::cluster_event::ClusterEventKind;

        let mut model = Model::new(1.0);
        let mut number = 0;
        for now in 1..=30 {
            let mut status = status(1000 * now, worker(0, 0, 0));
            for _ in 0..4 {
                number += 1;
                let (worker, is_back) = ("w0".into(), false);
                let kind = ClusterEventKind::WorkerJoined { worker, is_back };
                status.cluster_events.push(ClusterEvent { number, at: status.now, kind });
            }
            model.take(status);
        }
        let numbers: Vec<u64> = model.events.iter().map(|event| event.number).collect();
        assert_eq!(numbers, (21..=120).collect::<Vec<u64>>());
    }

    #[test]
    fn a_share_is_the_time_that_was_told_of_the_time_that_passed() {
        let mut model = Model::new(1.0);
        model.take(status(1000, worker(1000, 100, 100)));
        model.take(status(2000, worker(2000, 350, 350)));
        assert!((matmul(&model) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn shares_are_smoothed() {
        let mut model = Model::new(0.5);
        model.take(status(1000, worker(1000, 0, 0)));
        model.take(status(2000, worker(2000, 1000, 1000)));
        model.take(status(3000, worker(3000, 1000, 1000)));
        assert!((matmul(&model) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_worker_at_a_long_operation_is_busy() {
        let mut model = Model::new(1.0);
        model.take(status(1000, worker(1000, 100, 500)));
        model.take(status(2000, worker(1000, 100, 1500)));
        assert!((matmul(&model) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_was_done_before_it_was_noted_is_not_idle() {
        let mut model = Model::new(1.0);
        model.take(status(1000, WorkerStatus { report: Report::default(), ..worker(0, 0, 1000) }));
        let mut late = worker(2000, 60, 2000);
        late.report.since = Duration::from_millis(1940);
        model.take(status(2000, late));
        assert!((matmul(&model) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_worker_that_waits_for_others_is_as_busy_as_it_says_though_its_reports_are_late() {
        let mut model = Model::new(1.0);
        // It has had work all the time, and has computed half of it.
        model.take(status(1000, worker(600, 300, 1000)));
        model.take(status(2000, worker(1600, 800, 2000)));
        assert!((matmul(&model) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_worker_that_has_told_nothing_is_busy_with_something() {
        let mut model = Model::new(1.0);
        model.take(status(1000, worker(0, 0, 1000)));
        model.take(status(2000, worker(0, 0, 2000)));
        let status = model.status.as_ref().unwrap();
        let shares = model.shares(&status.workers[0]);
        assert!((shares.untold - 1.0).abs() < 1e-9 && (shares.busy() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_session_alone_has_all_that_its_worker_does() {
        let session = |busy| SessionStatus {
            number: SessionId(1),
            name: "anna".into(),
            origin: gt_ir::SessionOrigin::default(),
            slots: vec![(0, "gpu0".into()), (1, "gpu0".into())],
            entitlement: Entitlement::default(),
            share: 0.5,
            since: Duration::ZERO,
            instructions: 7,
            hot_instructions: 0,
            open: 3,
            queued: 0,
            bytes: 0,
            spilled: 0,
            busy: Duration::from_millis(busy),
            anticipated: Duration::ZERO,
            anticipations: 0,
            windows: Default::default(),
            recoveries: 0,
            unkept: String::new(),
            tensors: 0,
            named: None,
            waits: Waits::Work,
            last_error: None,
            behind: Vec::new(),
        };
        let mut model = Model::new(1.0);
        // It reports an operation of two seconds only at its end.
        for (now, told) in [(1000, 0), (1500, 0), (2000, 0), (2500, 2000), (3000, 2000)] {
            let mut status = status(now, worker(if told > 0 { 2400 } else { 0 }, told, now));
            status.sessions.push(session(told));
            model.take(status);
            let status = model.status.as_ref().unwrap();
            let busy = model.shares(&status.workers[0]).busy();
            let used = model.rates(&status.sessions[0]).used;
            assert!((busy - used).abs() < 1e-9, "at {now}: {busy} and {used}");
            assert!(now == 1000 || used > 0.99, "at {now}: {used}");
        }
    }

    #[test]
    fn nothing_is_ever_more_than_all_of_the_time() {
        let mut model = Model::new(1.0);
        model.take(status(1000, worker(500, 0, 1000)));
        model.take(status(1500, worker(1500, 1000, 1500)));
        let status = model.status.as_ref().unwrap();
        assert!(model.shares(&status.workers[0]).busy() <= 1.0 + 1e-9);
    }
}
