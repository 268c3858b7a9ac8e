//! Rate limit of unknown session tokens: a user who presents many must wait.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

/// The number of wrong tokens of a user within [`WINDOW`] after which no wrong token is answered
/// until the window is over, and, for a user with a key of their own, no right one either. It is
/// enough for many clients of a server that was restarted without its state, and far less than
/// 2^128.
const MOST: u32 = 100;
const WINDOW: Duration = Duration::from_secs(10);

/// The wrong tokens, by user. The limit of one user does not affect others, and the limit of the
/// users without a key of their own ends no session.
#[derive(Default)]
pub(super) struct RateLimit(FxHashMap<String, (u32, Instant)>);

impl RateLimit {
    /// Returns whether even a right token of this user is ignored.
    pub fn lock(&self, user: &str) -> bool {
        !user.is_empty() && self.are_many(user)
    }

    /// Records a request of a user for an unknown session. Returns whether to answer it.
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

    /// Returns the number of wrong tokens that a user has left.
    #[cfg(test)]
    pub const MOST: u32 = MOST;
}
