//! Think times: how long sessions take from an answer to their next question.
//!
//! A session that waits for each answer leaves its device idle for a moment before it asks again. If
//! another's long operation begins in this moment, the session waits for that each time, and uses less
//! than its share although it wants more (deceptive idleness: Iyer and Druschel, Anticipatory
//! Scheduling, SOSP 2001). A device that is kept idle for the moment serves both.
//!
//! This pays only for sessions that ask again soon for much: their idle time is a small part of the
//! time for which they are served. The others are served while a long operation is paused.

use rustc_hash::FxHashMap;

use crate::SessionKey;

/// The longest think time that is recorded: after a longer one, nothing is to be learnt from it.
const LONGEST: u64 = 10_000_000;
/// The part of the time between two answers for which a session must be served, in percent.
const SERVED: u64 = 85;
/// The idle time that a session may cause, in percent of the device time that it uses.
const IDLE: u64 = 8;
/// The most idle time that a session may have saved up.
const CREDIT: u64 = 10_000_000;
/// How precisely a think time must be known to be recorded, whatever was expected.
const PRECISE: u64 = 500_000;
/// How long a session is waited for at most whose think times are not known.
const GUESS: u64 = 1_000_000;
/// The number of questions after which a session is known.
const KNOWN: u32 = 3;
/// After this many vain waits in succession, the questions that are skipped do not double again.
const VAIN: u32 = 7;
/// A turn this much shorter than usual is no question: frees of tensors arrive between two of them.
const TINY: u64 = 8;

/// The think times of the sessions on a device. All times are in nanoseconds; those of a clock are
/// arguments.
#[derive(Debug)]
pub struct ThinkTimes<K> {
    habits: FxHashMap<K, Habit>,
    /// The sessions that have been answered, in that order, and may ask soon.
    thinking: Vec<K>,
}

/// What is known of a session.
#[derive(Debug, Default)]
struct Habit {
    /// The time of its last answer, until its next question is complete.
    answered: Option<u64>,
    /// Its think time before that question, if it has asked: the shortest and the longest that it may
    /// have been.
    thought: Option<(u64, u64)>,
    /// Its think times: mean and mean deviation, both decayed.
    mean: u64,
    deviation: u64,
    /// The number of think times, up to [`KNOWN`].
    count: u32,
    /// The device time that it uses for a question, a decayed mean, and for the present one.
    served: u64,
    serving: u64,
    /// The idle time that it may cause.
    credit: u64,
    /// How often in succession it was waited for in vain, and the questions for which it is not waited
    /// for after that: twice as many each time.
    vain: u32,
    skipped: u32,
}

impl Habit {
    /// Records a question that came after a think time between these two.
    fn record(&mut self, shortest: u64, longest: u64) {
        self.served = match self.count {
            0 => self.serving,
            _ => decayed(self.served, self.serving),
        };
        self.skipped = self.skipped.saturating_sub(1);
        let think = if longest - shortest < PRECISE || longest <= self.mean {
            self.vain = 0;
            longest
        } else if 2 * shortest > self.mean {
            self.vain = (self.vain + 1).min(VAIN);
            self.skipped = (1 << (self.vain - 1)) - 1;
            2 * shortest
        } else {
            // It may have been as usual, or shorter: that is tried again in some time.
            self.mean -= self.mean / 8;
            self.deviation -= self.deviation / 8;
            return;
        };
        let think = think.min(LONGEST);
        if self.count == 0 {
            (self.mean, self.deviation) = (think, think / 2);
        } else {
            let apart = think.abs_diff(self.mean);
            self.mean = decayed(self.mean, think);
            self.deviation = decayed(self.deviation, apart);
        }
        self.count = (self.count + 1).min(KNOWN);
    }

    /// Returns how long after its answer the session is expected, if to wait for it may pay, and as long
    /// as it does. One that is not known is waited for to learn how long it thinks.
    fn window(&self) -> Option<u64> {
        let longest = self.served * (100 - SERVED) / SERVED;
        let usual = match self.count {
            KNOWN.. => self.mean + 4 * self.deviation,
            _ => GUESS,
        };
        (self.served > 0 && self.mean <= longest && self.skipped == 0).then_some(usual.min(longest))
    }
}

/// A mean in which the latest value counts for an eighth.
fn decayed(mean: u64, value: u64) -> u64 {
    mean - mean / 8 + value / 8
}

impl<K> Default for ThinkTimes<K> {
    fn default() -> ThinkTimes<K> {
        ThinkTimes { habits: FxHashMap::default(), thinking: Vec::new() }
    }
}

impl<K: SessionKey> ThinkTimes<K> {
    /// Removes a session.
    pub fn retire(&mut self, session: K) {
        self.habits.remove(&session);
        self.thinking.retain(|other| *other != session);
    }

    /// A session has used the device for `cost` nanoseconds.
    pub fn charge(&mut self, session: K, cost: u64) {
        let habit = self.habits.entry(session).or_default();
        habit.serving = habit.serving.saturating_add(cost);
        habit.credit = (habit.credit + cost.saturating_mul(IDLE) / 100).min(CREDIT);
    }

    /// The device was idle for a session for `cost` nanoseconds.
    pub fn charge_idle(&mut self, session: K, cost: u64) {
        if let Some(habit) = self.habits.get_mut(&session) {
            habit.credit = habit.credit.saturating_sub(cost);
        }
    }

    /// All work of a session is done, at the time `now`: it has its answer.
    pub fn answer(&mut self, session: K, now: u64) {
        let Some(habit) = self.habits.get_mut(&session) else { return };
        match habit.thought.take() {
            Some((shortest, longest)) => {
                if habit.serving < habit.served / TINY {
                    self.thinking.push(session);
                    return;
                }
                habit.record(shortest, longest);
            }
            None => habit.served = habit.served.max(habit.serving),
        }
        (habit.answered, habit.serving) = (Some(now), 0);
        if habit.window().is_some() && !self.thinking.contains(&session) {
            self.thinking.push(session);
        }
    }

    /// A session without work has some again, which arrived between the times `earliest` and `now`.
    pub fn ask(&mut self, session: K, earliest: u64, now: u64) {
        if let Some(habit) = self.habits.get_mut(&session)
            && let Some(answered) = habit.answered
        {
            let [shortest, longest] = [earliest, now].map(|at| at.saturating_sub(answered));
            habit.thought.get_or_insert((shortest, longest));
            self.thinking.retain(|other| *other != session);
        }
    }

    /// Whether a session may ask soon.
    pub fn is_any_thinking(&self) -> bool {
        !self.thinking.is_empty()
    }

    /// Returns the first session that is worth waiting for instead of beginning something that takes
    /// `length`, and the time until which it is: one that is still expected, has idle time left that it
    /// may cause, and is `behind` its share.
    pub fn awaited(
        &mut self,
        now: u64,
        length: u64,
        behind: impl Fn(K) -> bool,
    ) -> Option<(K, u64)> {
        let ThinkTimes { habits, thinking } = self;
        let until = |session: &K| {
            let habit = habits.get(session)?;
            Some((habit.answered? + habit.window()?, habit.credit))
        };
        thinking.retain(|session| until(session).is_some_and(|(until, _)| now < until));
        thinking.iter().find_map(|session| {
            let (until, credit) = until(session)?;
            let idle = until - now;
            let pays = idle < length && idle <= credit && behind(*session);
            pays.then_some((*session, until))
        })
    }
}
