//! Tokens of sessions that are asked for and do not exist: who has asked for many has to wait.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

/// After so many wrong tokens of a user within [`WINDOW`], none of that user's is looked at until it
/// is over: the right one is not found either. Enough for many clients of a server that was started
/// without its state, and 2^128 are far more.
const MOST: u32 = 100;
const WINDOW: Duration = Duration::from_secs(10);

/// The wrong tokens of users: those of one cost no other user anything.
#[derive(Default)]
pub(super) struct Guesses(FxHashMap<String, (u32, Instant)>);

impl Guesses {
    /// Whether a user has to wait.
    pub fn are_many(&mut self, user: &str) -> bool {
        self.0.retain(|_, (_, since)| since.elapsed() < WINDOW);
        self.0.get(user).is_some_and(|(count, _)| *count >= MOST)
    }

    /// A user has asked for a session that is not there.
    pub fn add(&mut self, user: String) {
        self.0.entry(user).or_insert((0, Instant::now())).0 += 1;
    }

    /// The time passes.
    #[cfg(test)]
    pub fn forget(&mut self) {
        self.0.values_mut().for_each(|(_, since)| *since -= WINDOW);
    }

    /// How many a user may ask for.
    #[cfg(test)]
    pub const MOST: u32 = MOST;
}
