//! Tokens of sessions that are asked for and do not exist: who has asked for many has to wait.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

/// After so many wrong tokens of a user within [`WINDOW`], no wrong one is answered until it is over,
/// and no right one of a user with a key of their own. Enough for many clients of a server that was
/// started without its state, and 2^128 are far more.
const MOST: u32 = 100;
const WINDOW: Duration = Duration::from_secs(10);

/// The wrong tokens of users: those of one cost no other user anything, and those of all who have no
/// key of their own cost nobody a session.
#[derive(Default)]
pub(super) struct Guesses(FxHashMap<String, (u32, Instant)>);

impl Guesses {
    /// Whether even the right token of a user is not looked at.
    pub fn lock(&self, user: &str) -> bool {
        !user.is_empty() && self.are_many(user)
    }

    /// A user has asked for a session that is not there. Returns whether that is answered.
    pub fn add(&mut self, user: String) -> bool {
        self.0.retain(|_, (_, since)| since.elapsed() < WINDOW);
        if self.are_many(&user) {
            return false;
        }
        self.0.entry(user).or_insert((0, Instant::now())).0 += 1;
        true
    }

    fn are_many(&self, user: &str) -> bool {
        let of_user = self.0.get(user).filter(|(_, since)| since.elapsed() < WINDOW);
        of_user.is_some_and(|(count, _)| *count >= MOST)
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
