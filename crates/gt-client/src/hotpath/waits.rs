//! When the program waited for values, in tokens of the stream.

/// If the program waits after fewer commands than this, no template is followed.
const MIN_DISTANCE: u64 = 4;

/// The waits for values so far.
pub struct WaitHistory {
    /// The number of tokens before the last wait.
    last: Option<u64>,
    /// The number of tokens between waits: the maximum, halved at each wait.
    between: u64,
}

impl Default for WaitHistory {
    fn default() -> WaitHistory {
        WaitHistory { last: None, between: 16 * MIN_DISTANCE }
    }
}

impl WaitHistory {
    /// Records a wait after `total` tokens.
    pub fn note(&mut self, total: u64) {
        let since = total - self.last.unwrap_or(0);
        // Several consecutive requests are one wait.
        if since > 0 {
            self.between = since.max(self.between / 2);
        }
        self.last = Some(total);
    }

    /// Returns the number of tokens since the last wait, if any.
    #[inline]
    pub fn since(&self, total: u64) -> Option<u64> {
        self.last.map(|last| total - last)
    }

    /// Returns whether the program waits after every few commands.
    #[inline]
    pub fn are_close(&self, total: u64) -> bool {
        self.between < MIN_DISTANCE && self.since(total).is_some_and(|since| since < MIN_DISTANCE)
    }
}
