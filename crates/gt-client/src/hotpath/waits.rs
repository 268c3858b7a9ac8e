//! When somebody waited for a value, in tokens of the stream.

/// Where values are waited for after fewer commands than this, no template is followed.
const CLOSE: u64 = 4;

/// The waits for values so far.
pub struct Waits {
    /// The token after which the last one came.
    last: Option<u64>,
    /// How many tokens there were between waits: the most, where each wait halves those before it.
    between: u64,
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { last: None, between: 16 * CLOSE }
    }
}

impl Waits {
    /// Notes a wait after so many tokens.
    pub fn note(&mut self, total: u64) {
        let since = total - self.last.unwrap_or(0);
        // Several values that are asked for in a row are one wait.
        if since > 0 {
            self.between = since.max(self.between / 2);
        }
        self.last = Some(total);
    }

    /// How many tokens there were since the last wait, if there was one.
    #[inline]
    pub fn since(&self, total: u64) -> Option<u64> {
        self.last.map(|last| total - last)
    }

    /// Whether each few commands are waited for.
    #[inline]
    pub fn are_close(&self, total: u64) -> bool {
        self.between < CLOSE && self.since(total).is_some_and(|since| since < CLOSE)
    }
}
