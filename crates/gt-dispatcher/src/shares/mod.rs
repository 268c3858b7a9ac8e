//! Device time over windows: what sessions are entitled to, and what they use.
//!
//! - [`ring`]: the last ten minutes of one session, in buckets of a second.
//! - [`fluid`]: the entitlement on one worker.
//!
//! A session is active on a worker while it has commands in flight to it. While it is active, it is
//! entitled to its share, by the policy, of the worker's time beside the other active sessions; so
//! all entitlements together are the time during which workers had commands. An ended session
//! remains part of its user's windows. What is kept is bounded: a ring for each session and for each
//! user with sessions that ended in the last ten minutes.

mod fluid;
mod ring;

use std::collections::BTreeMap;
use std::time::Duration;

use gt_ir::entitlement::{Entitlement, PolicyKind};
use gt_ir::status::{WINDOWS, WindowUse};
use gt_ir::{SessionId, WorkerId};

use fluid::FluidShares;
use ring::{BUCKET, BUCKETS, Ring};

/// The device time of all sessions over windows.
#[derive(Default)]
pub(crate) struct DeviceShares {
    policy_kind: PolicyKind,
    workers: BTreeMap<WorkerId, FluidShares>,
    sessions: BTreeMap<SessionId, Ring>,
    /// Of ended sessions, by team and user.
    past: BTreeMap<(String, String), Ring>,
    /// The bucket of the present; entitlements of earlier ones are collected.
    bucket: u64,
    /// How often a session has become active.
    arrivals: u64,
}

impl DeviceShares {
    /// Adds device time that a session has used until `now`, in nanoseconds.
    pub fn add_used(&mut self, now: Duration, session: SessionId, time: u64) {
        if time > 0 {
            self.sessions.entry(session).or_default().add_used(nanoseconds(now), time);
        }
    }

    /// Returns the number of sessions that are counted.
    pub fn len(&self) -> usize {
        let members = self.workers.values().map(FluidShares::len).max().unwrap_or(0);
        self.sessions.len().max(members)
    }

    /// Returns whether a session has commands in flight to a worker.
    pub fn is_active(&self, worker: WorkerId, session: SessionId) -> bool {
        self.workers.get(&worker).is_some_and(|fluid| fluid.is_active(session))
    }

    /// Sets whether a session has commands in flight to a worker.
    pub fn set_active(
        &mut self,
        now: Duration,
        worker: WorkerId,
        (session, entitlement): (SessionId, &Entitlement),
        is_active: bool,
    ) {
        let now = nanoseconds(now);
        self.close_buckets(now);
        let rank = self.rank(entitlement);
        let fluid = self.workers.entry(worker).or_default();
        if fluid.is_active(session) == is_active {
            return;
        }
        if is_active {
            self.arrivals += 1;
            if self.policy_kind == PolicyKind::Fifo || !fluid.knows(session) {
                fluid.admit(session, rank, entitlement);
            }
            fluid.begin(now, session);
        } else {
            let time = fluid.end(now, session);
            self.sessions.entry(session).or_default().add_entitled(self.bucket, time);
        }
    }

    /// Returns the rank of a session that becomes active: only the first rank is served.
    fn rank(&self, entitlement: &Entitlement) -> u64 {
        match self.policy_kind {
            PolicyKind::Fair => 0,
            PolicyKind::Fifo => self.arrivals,
            PolicyKind::Priority => u64::from(u32::MAX - entitlement.priority),
        }
    }

    /// Makes a session inactive on all workers: its commands in flight are void.
    pub fn pause(&mut self, now: Duration, session: SessionId) {
        self.collect(now);
        for fluid in self.workers.values_mut() {
            fluid.end(nanoseconds(now), session);
        }
    }

    /// Removes a worker.
    pub fn lose_worker(&mut self, now: Duration, worker: WorkerId) {
        self.collect(now);
        self.workers.remove(&worker);
    }

    /// Removes an ended session, whose device time remains its user's.
    pub fn end(&mut self, now: Duration, session: SessionId, entitlement: &Entitlement) {
        self.pause(now, session);
        self.workers.values_mut().for_each(|fluid| fluid.retire(session));
        let now = nanoseconds(now);
        self.past.retain(|_, ring| !ring.is_expired(now));
        let Some(ring) = self.sessions.remove(&session).filter(|ring| !ring.is_expired(now)) else {
            return;
        };
        let Entitlement { team, user, .. } = entitlement;
        self.past.entry((team.clone(), user.clone())).or_default().merge(&ring);
    }

    /// Sets the policy, and the weights that sessions have by it.
    pub fn set_policy<'a>(
        &mut self,
        now: Duration,
        policy_kind: PolicyKind,
        sessions: impl Iterator<Item = (SessionId, &'a Entitlement)>,
    ) {
        self.collect(now);
        self.policy_kind = policy_kind;
        let sessions: Vec<_> = sessions.collect();
        for (worker, fluid) in std::mem::take(&mut self.workers) {
            for (session, entitlement) in &sessions {
                if fluid.is_active(*session) {
                    self.set_active(now, worker, (*session, entitlement), true);
                }
            }
        }
    }

    /// Adds what sessions are entitled to up to `now` to their rings.
    pub fn collect(&mut self, now: Duration) {
        let now = nanoseconds(now);
        self.close_buckets(now);
        self.collect_until(now);
    }

    /// Collects the entitlements of all buckets before that of `now`, each in its own.
    fn close_buckets(&mut self, now: u64) {
        let present = now / BUCKET;
        if self.bucket >= present {
            return;
        }
        // Buckets that are in no window any more are one.
        let first = (present + 1).saturating_sub(BUCKETS as u64);
        while self.bucket < present {
            let next = (self.bucket + 1).max(first);
            self.collect_until(next * BUCKET);
            self.bucket = next;
        }
    }

    fn collect_until(&mut self, time: u64) {
        for fluid in self.workers.values_mut() {
            for (session, time) in fluid.collect(time) {
                self.sessions.entry(session).or_default().add_entitled(self.bucket, time);
            }
        }
    }

    /// Returns the windows of a session, as of the last [`DeviceShares::collect`].
    pub fn windows(&self, now: Duration, session: SessionId) -> [WindowUse; WINDOWS.len()] {
        let ring = self.sessions.get(&session);
        ring.map(|ring| ring.windows(nanoseconds(now))).unwrap_or_default()
    }

    /// Returns the windows of sessions that have ended, by team and user.
    pub fn past(
        &self,
        now: Duration,
    ) -> impl Iterator<Item = (&(String, String), [WindowUse; WINDOWS.len()])> {
        self.past.iter().map(move |(user, ring)| (user, ring.windows(nanoseconds(now))))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_secs().saturating_mul(BUCKET).saturating_add(u64::from(time.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WORKER: WorkerId = WorkerId(3);

    fn entitlement(user: &str, weight: u32, priority: u32) -> Entitlement {
        Entitlement { user: user.into(), weight, priority, ..Entitlement::default() }
    }

    fn entitled(shares: &mut DeviceShares, now: u64, session: SessionId) -> [u64; 3] {
        let now = Duration::from_millis(now);
        shares.collect(now);
        shares.windows(now, session).map(|window| window.entitled.as_millis() as u64)
    }

    #[test]
    fn an_entitlement_is_the_share_of_the_time_with_work() {
        let (one, three) = (SessionId(1), SessionId(2));
        let (of_one, of_three) = (entitlement("ada", 1, 0), entitlement("ada", 3, 0));
        let mut shares = DeviceShares::default();
        let at = Duration::from_secs;
        shares.set_active(at(0), WORKER, (one, &of_one), true);
        shares.set_active(at(20), WORKER, (three, &of_three), true);
        shares.set_active(at(60), WORKER, (three, &of_three), false);
        assert_eq!(entitled(&mut shares, 60_000, one), [2_250, 30_000 - 1_000, 30_000]);
        assert_eq!(entitled(&mut shares, 60_000, three), [6_750, 30_000, 30_000]);
        // The user keeps what an ended session had.
        shares.end(at(61), one, &of_one);
        shares.end(at(61), three, &of_three);
        let past: Vec<_> = shares.past(at(61)).collect();
        assert_eq!(past.len(), 1);
        assert_eq!(past[0].1[2].entitled, at(61));
        // Others push it out once it is in no window.
        shares.end(at(1000), SessionId(9), &of_one);
        assert_eq!(shares.past(at(1000)).count(), 0);
    }

    #[test]
    fn a_policy_decides_who_is_entitled() {
        let (low, high) = (SessionId(1), SessionId(2));
        let of = [entitlement("ada", 1, 0), entitlement("eve", 1, 5)];
        for (kind, expected) in [
            (PolicyKind::Fair, [3000, 2000]),
            (PolicyKind::Priority, [1000, 4000]),
            (PolicyKind::Fifo, [5000, 0]),
        ] {
            let mut shares = DeviceShares::default();
            shares.set_policy(Duration::ZERO, kind, [].into_iter());
            shares.set_active(Duration::ZERO, WORKER, (low, &of[0]), true);
            shares.set_active(Duration::from_secs(1), WORKER, (high, &of[1]), true);
            let told = [low, high].map(|session| entitled(&mut shares, 5000, session)[0]);
            assert_eq!(told, expected, "{kind:?}");
        }
        // A new policy applies from then on.
        let mut shares = DeviceShares::default();
        shares.set_active(Duration::ZERO, WORKER, (low, &of[0]), true);
        shares.set_active(Duration::ZERO, WORKER, (high, &of[1]), true);
        let sessions = [(low, &of[0]), (high, &of[1])];
        shares.set_policy(Duration::from_secs(2), PolicyKind::Priority, sessions.into_iter());
        assert_eq!(entitled(&mut shares, 5000, low)[0], 1000);
        assert_eq!(entitled(&mut shares, 5000, high)[0], 4000);
    }

    proptest! {
        /// All entitlements together are the time in which workers had work; what remains of
        /// sessions that come and go is bounded.
        #[test]
        fn entitlements_add_up(
            steps in prop::collection::vec(
                (0u32..6, 0u32..2, 0u8..8, 0u64..1_500_000_000), 1..120
            ),
        ) {
            let mut shares = DeviceShares::default();
            let mut active = std::collections::BTreeSet::new();
            let (mut now, mut busy, mut used) = (0u64, 0u64, 0u64);
            let of = |session: u32| entitlement(&format!("user {}", session % 3), 1 + session, 0);
            for (session, worker, what, passed) in steps {
                let (number, at) = (SessionId(session), Duration::from_nanos(now));
                let entitlement = of(session);
                match what {
                    0..5 => {
                        let is_active = what < 3;
                        shares.set_active(at, WorkerId(worker), (number, &entitlement), is_active);
                        match is_active {
                            true => active.insert((worker, session)),
                            false => active.remove(&(worker, session)),
                        };
                    }
                    5 => {
                        shares.add_used(at, number, passed);
                        used += passed;
                    }
                    6 => {
                        shares.end(at, number, &entitlement);
                        active.retain(|(_, other)| *other != session);
                    }
                    _ => {
                        shares.lose_worker(at, WorkerId(worker));
                        active.retain(|(other, _)| *other != worker);
                    }
                }
                now += passed;
                let is_busy = |worker| active.iter().any(|(other, _)| *other == worker);
                busy += [0, 1].map(|worker| if is_busy(worker) { passed } else { 0 }).iter().sum::<u64>();
            }
            let at = Duration::from_nanos(now);
            shares.collect(at);
            let own = (0..6).map(|session| shares.windows(at, SessionId(session))[2]);
            let all: Vec<WindowUse> =
                own.chain(shares.past(at).map(|(_, windows)| windows[2])).collect();
            let entitled: Duration = all.iter().map(|window| window.entitled).sum();
            let told: Duration = all.iter().map(|window| window.used).sum();
            let missing = busy as i64 - entitled.as_nanos() as i64;
            // Each session loses less than a nanosecond whenever it is collected.
            prop_assert!((0..=400).contains(&missing) || (-400..0).contains(&missing), "{missing}");
            prop_assert_eq!(told.as_nanos() as u64, used);
            prop_assert!(shares.past.len() <= 3 && shares.sessions.len() <= 6);
        }
    }
}
