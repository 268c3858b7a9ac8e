//! Gang scheduling: sessions on several devices take turns on all of their devices at the same time
//! (Ousterhout, Scheduling Techniques for Concurrent Systems, ICDCS 1982).

use crate::SessionKey;

/// The time slice of a gang: the nanoseconds of each of its devices' time that it uses before another
/// gang is first. Long beside the exchanges between its devices, and the messages that begin it.
pub const GANG_SLICE: u64 = 50_000_000;
/// How far, in nanoseconds of device time, a gang may get ahead of the others in its slice: reports
/// of what it has used, by which slices end, are late by about a turn.
pub(super) const GANG_LEAD: u64 = 2 * GANG_SLICE;

/// The order of gangs on a device, the same on all devices of the first of them.
#[derive(Debug)]
pub(super) struct GangOrder<K>(Vec<K>);

impl<K> Default for GangOrder<K> {
    fn default() -> GangOrder<K> {
        GangOrder(Vec::new())
    }
}

impl<K: SessionKey> GangOrder<K> {
    pub fn set(&mut self, order: &[K]) {
        self.0.clear();
        self.0.extend_from_slice(order);
    }

    pub fn remove(&mut self, session: K) {
        self.0.retain(|gang| *gang != session);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the place of a session in the order, if it is a gang.
    pub fn place(&self, session: K) -> Option<usize> {
        self.0.iter().position(|gang| *gang == session)
    }

    /// Returns the gangs after a place that are among the `ready` sessions.
    pub fn after<'a>(&'a self, place: usize, ready: &'a [K]) -> impl Iterator<Item = K> + 'a {
        self.0[place + 1..].iter().copied().filter(|gang| ready.contains(gang))
    }

    /// Returns the gangs that are among the `ready` sessions, in order, each with its place.
    pub fn ready<'a>(&'a self, ready: &'a [K]) -> impl Iterator<Item = (usize, K)> + 'a {
        self.0.iter().copied().enumerate().filter(|(_, gang)| ready.contains(gang))
    }
}
