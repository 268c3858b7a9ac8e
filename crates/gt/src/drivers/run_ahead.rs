//! Run-ahead: the commands that a session has in flight, and when it has to wait.
//!
//! The bound is a time, because that is the latency that a later fetch or interrupt sees. The
//! dispatcher returns the weight of completed commands; here weight is converted to estimated work,
//! and completed work to a rate. At that rate, the commands in flight may take [`LONGEST`].

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gt_client::environment;

/// How long the commands in flight may take, unless `GT_RUN_AHEAD` is set.
const LONGEST: Duration = Duration::from_millis(400);
/// The overhead of a command, in the unit of work: bytes read and written.
const OF_COMMAND: u64 = 4 << 10;
/// The initial rate, in bytes of work a second: that of a small machine.
const FIRST_RATE: f64 = 8e9;
/// With less work than this in flight, a session neither waits nor measures: it takes less time
/// than a check.
const SHORT: u64 = 16 << 20;
/// The shortest time that a rate is measured over.
const MEASURED: Duration = Duration::from_millis(20);

/// The interval at which the dispatcher is notified of a long wait for room.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// A client's wait for room. The dispatcher is notified of a long wait, as it may itself wait for
/// the client's next commands.
pub struct LongWait(Instant);

impl LongWait {
    /// Starts a wait.
    pub fn new() -> LongWait {
        LongWait(Instant::now())
    }

    /// Returns whether it is time to notify the dispatcher.
    pub fn is_to_be_told(&mut self) -> bool {
        let is_long = self.0.elapsed() >= TOLD_EVERY;
        if is_long {
            self.0 = Instant::now();
        }
        is_long
    }
}

/// The commands of a session that are in flight.
pub struct RunAhead {
    /// The most weight that the dispatcher takes.
    window: u64,
    /// The time that the commands in flight may take, in seconds.
    longest: f64,
    weight: AtomicU64,
    work: AtomicU64,
    is_full: AtomicBool,
    batches: Mutex<BatchesInFlight>,
}

/// Batches in flight, oldest first.
struct BatchesInFlight {
    /// The remaining weight and work of each batch.
    left: VecDeque<(u64, u64)>,
    /// Bytes of work a second.
    rate: f64,
    /// Since when a rate is being measured, and the work that was done since.
    measured: Option<(Instant, u64)>,
}

impl RunAhead {
    /// Nothing is in flight.
    pub fn new(window: u64) -> RunAhead {
        let longest = environment::seconds("GT_RUN_AHEAD").unwrap_or(LONGEST);
        RunAhead {
            window,
            longest: longest.as_secs_f64(),
            weight: AtomicU64::new(0),
            work: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            batches: Mutex::new(BatchesInFlight {
                left: VecDeque::new(),
                rate: FIRST_RATE,
                measured: None,
            }),
        }
    }

    /// Accounts for submitted commands of this weight and estimated work.
    pub fn submitted(&self, weight: u64, work: u64) {
        if weight == 0 {
            return;
        }
        let mut batches = self.batches();
        batches.left.push_back((weight, work));
        self.set(&batches, self.weight() + weight, self.work().saturating_add(work));
        if self.cost() > SHORT && batches.measured.is_none() {
            batches.measured = Some((Instant::now(), 0));
        }
    }

    /// Accounts for completed commands of this weight. Returns whether there is room now, after
    /// there was none.
    pub fn done(&self, weight: u64) -> bool {
        let mut batches = self.batches();
        let work = batches.take(weight);
        let before = self.cost();
        // More weight may be returned than is known to be in flight, as after a server's restart:
        // this must not block the session forever.
        let left = (self.weight().saturating_sub(weight), self.work().saturating_sub(work));
        let was_full = self.is_full();
        if let Some((since, _)) = batches.measured {
            let cost = cost(left.0, left.1);
            batches.measure(before.saturating_sub(cost), cost, since.elapsed());
        }
        self.set(&batches, left.0, left.1);
        was_full && !self.is_full()
    }

    /// Resets the commands in flight to this weight, of unknown work.
    pub fn renew(&self, weight: u64) {
        let mut batches = self.batches();
        batches.left.clear();
        batches.measured = None;
        batches.left.push_back((weight, 0));
        self.set(&batches, weight, 0);
    }

    /// Whether anything is in flight.
    pub fn is_at_work(&self) -> bool {
        self.weight() > 0
    }

    /// Returns the estimated work in flight, in bytes read and written.
    pub fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    /// Returns whether the next instruction has to wait.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    fn cost(&self) -> u64 {
        cost(self.weight(), self.work())
    }

    /// Updates the amount in flight, and whether it reaches the limit.
    fn set(&self, batches: &BatchesInFlight, weight: u64, work: u64) {
        self.weight.store(weight, Ordering::Relaxed);
        self.work.store(work, Ordering::Relaxed);
        let cost = cost(weight, work);
        let is_long = cost > SHORT && cost as f64 > batches.rate * self.longest;
        self.is_full.store(is_long || weight > self.window, Ordering::Relaxed);
    }

    fn batches(&self) -> MutexGuard<'_, BatchesInFlight> {
        self.batches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the total cost of commands of this weight and work.
fn cost(weight: u64, work: u64) -> u64 {
    work.saturating_add(weight * OF_COMMAND)
}

impl BatchesInFlight {
    /// Takes commands of this weight from the oldest batches; returns their work.
    fn take(&mut self, mut weight: u64) -> u64 {
        let mut taken = 0;
        while weight > 0
            && let Some((left, work)) = self.left.front_mut()
        {
            if weight < *left {
                let part = (*work as f64 * (weight as f64 / *left as f64)) as u64;
                *left -= weight;
                *work -= part;
                return taken + part;
            }
            weight -= *left;
            taken += *work;
            self.left.pop_front();
        }
        taken
    }

    /// Updates the rate: `done` work was completed since the last call, with `in_flight` left.
    /// `time` has passed since the measurement began, and the workers were busy throughout.
    fn measure(&mut self, done: u64, in_flight: u64, time: Duration) {
        let Some((_, all)) = &mut self.measured else { return };
        *all += done;
        let is_over = self.left.is_empty();
        if time >= MEASURED || is_over && *all > SHORT {
            let rate = *all as f64 / time.as_secs_f64().max(1e-6);
            // The old rate counts half, as operations take more or less time than estimated.
            self.rate = if self.rate == FIRST_RATE { rate } else { (self.rate + rate) / 2.0 };
            self.measured = (in_flight > SHORT).then(|| (Instant::now(), 0));
        } else if is_over {
            self.measured = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a second of work, by the initial rate.
    const HALF: u64 = (FIRST_RATE / 2.0) as u64;

    #[test]
    fn room_is_a_matter_of_time() {
        let ahead = RunAhead::new(1 << 14);
        ahead.submitted(1, HALF);
        assert!(ahead.is_full(), "0.5 s of work, and 0.4 s may be in flight");
        assert!(ahead.done(1));
        assert!(!ahead.is_full());
        assert_eq!((ahead.work(), ahead.is_at_work()), (0, false));
    }

    #[test]
    fn room_is_a_matter_of_weight_as_well() {
        let ahead = RunAhead::new(100);
        ahead.submitted(100, 0);
        assert!(!ahead.is_full());
        ahead.submitted(1, 0);
        assert!(ahead.is_full());
        assert!(!ahead.done(0), "nothing changes");
        assert!(ahead.done(1));
    }

    #[test]
    fn the_rate_follows_what_was_done() {
        let ahead = RunAhead::new(1 << 14);
        let rate = |done: u64, time: Duration| {
            let mut batches = ahead.batches();
            batches.measured = Some((Instant::now(), 0));
            batches.measure(done, 0, time);
            batches.rate
        };
        assert_eq!(rate(HALF, Duration::from_millis(50)), 10.0 * FIRST_RATE);
        ahead.submitted(1, HALF);
        assert!(!ahead.is_full(), "ten times as much may be in flight");
        assert_eq!(rate(HALF, Duration::from_millis(125)), 7.0 * FIRST_RATE, "half of both");
        assert_eq!(rate(HALF, Duration::from_millis(1)), 7.0 * FIRST_RATE, "too short to tell");
    }

    #[test]
    fn work_is_that_of_the_batches_left() {
        let ahead = RunAhead::new(1 << 14);
        ahead.submitted(10, 100);
        ahead.submitted(1, HALF);
        ahead.done(5);
        assert_eq!(ahead.work(), HALF + 50);
        ahead.done(5);
        assert_eq!(ahead.work(), HALF, "the large one is not begun");
        // More than is known to be in flight.
        ahead.done(7);
        assert_eq!((ahead.work(), ahead.is_at_work()), (0, false));
        ahead.renew(3);
        assert_eq!((ahead.work(), ahead.is_at_work()), (0, true));
    }
}
