//! The tokens of a stream so far, and the period with which they repeat.
//!
//! A period is found from the tokens alone, in constant time for each: while every token equals the
//! one a candidate period before it, the period holds. When it fails, the previous occurrence of
//! the last few tokens yields the next candidate. So a loop is found through the loops inside it,
//! and a stream that never repeats costs a lookup in one small table.

/// The number of tokens that are remembered; a period is shorter.
const CAPACITY: usize = 1 << 15;
/// The size of the table of positions.
const TABLE_SIZE: usize = 1 << 11;
/// The number of tokens in a lookup window.
const WINDOW: u64 = 4;

/// A token of the stream.
#[derive(Clone, Copy, Default)]
struct SeenToken {
    token: u64,
    /// The cost of starting a round with it.
    weight: i32,
    /// The number of earlier tokens that were ordinary commands.
    cold: u32,
}

/// The last tokens of a stream, and its period.
pub struct TokenHistory {
    seen: Vec<SeenToken>,
    /// The number of tokens so far.
    count: u64,
    /// The hash of the last few tokens.
    window: u64,
    /// Where a window of tokens was seen last: its hash, and the number of its last token.
    table: Vec<(u32, u32)>,
    /// The candidate period; 0 for none.
    period: u64,
    /// The number of tokens for which it has held.
    run: u64,
}

impl TokenHistory {
    pub fn new() -> TokenHistory {
        TokenHistory {
            seen: vec![SeenToken::default(); CAPACITY],
            count: 0,
            window: 0,
            table: vec![(0, 0); TABLE_SIZE],
            period: 0,
            run: 0,
        }
    }

    fn seen(&self, number: u64) -> &SeenToken {
        &self.seen[number as usize % CAPACITY]
    }

    fn token(&self, number: u64) -> u64 {
        self.seen(number).token
    }

    /// Adds the next token, with the cost of starting a round with it, and the number of ordinary
    /// commands before it.
    #[inline]
    pub fn push(&mut self, token: u64, weight: i32, cold: u64) {
        let at = self.count;
        self.seen[at as usize % CAPACITY] = SeenToken { token, weight, cold: cold as u32 };
        self.count += 1;
        // A token leaves it at the top after WINDOW others.
        self.window = self.window << (u64::BITS / WINDOW as u32) ^ token;
        if self.period != 0 && self.token(at - self.period) == token {
            self.run += 1;
            if self.run > self.period {
                // The positions of an earlier round are as good.
                return;
            }
        } else if self.period != 0 {
            (self.period, self.run) = (0, 0);
        }
        if self.count < WINDOW {
            return;
        }
        let window = (self.window ^ self.window >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = &mut self.table[(window >> 52) as usize % TABLE_SIZE];
        let window = (window >> 20) as u32;
        let (hash, before) = std::mem::replace(place, (window, at as u32));
        if self.period == 0 && hash == window {
            // Numbers wrap at 32 bits; older tokens are overwritten.
            let distance = u64::from((at as u32).wrapping_sub(before));
            if distance > 0 && distance < CAPACITY as u64 && distance < self.count {
                (self.period, self.run) = (distance, 1);
            }
        }
    }

    /// Returns the period that has held for `rounds` consecutive rounds, if any; for a short one,
    /// as many rounds together as make `shortest` tokens.
    #[inline]
    pub fn period(&self, rounds: u64, shortest: u64) -> Option<usize> {
        if self.period == 0 {
            return None;
        }
        let period = self.period * shortest.div_ceil(self.period);
        (self.run + WINDOW >= period * rounds).then_some(period as usize)
    }

    /// Returns whether the stream repeats with this period at the last token.
    #[inline]
    pub fn holds(&self, period: usize) -> bool {
        self.period != 0 && (period as u64).is_multiple_of(self.period)
    }

    /// Returns how many of the last tokens were ordinary commands.
    pub fn cold_in_last(&self, period: usize) -> u64 {
        let before = |number: u64| self.seen(number).cold;
        let (first, last) = (self.count.saturating_sub(period as u64), self.count - 1);
        u64::from(before(last).wrapping_sub(before(first)))
    }

    /// Returns the number of tokens until the best place to start a round: the one of least cost,
    /// if every round adds as much as the last.
    pub fn tokens_to_start(&self, period: usize) -> usize {
        let weight = |number: u64| i64::from(self.seen(number).weight);
        let (period, last) = (period as u64, self.count - 1);
        let first = self.count.saturating_sub(period);
        let growth = weight(last) - weight(last.saturating_sub(period));
        let level =
            |number: &u64| weight(*number) * period as i64 - growth * (*number - first) as i64;
        let best = (first..self.count).min_by_key(level).unwrap_or(self.count);
        ((best + period - self.count) % period) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(history: &mut TokenHistory, tokens: impl IntoIterator<Item = u64>) {
        tokens.into_iter().for_each(|token| history.push(token * 77_777 + 5, 0, 0));
    }

    #[test]
    fn a_loop_is_found_in_its_third_round() {
        let mut history = TokenHistory::new();
        feed(&mut history, 100..150);
        feed(&mut history, 0..30);
        feed(&mut history, 0..30);
        assert_eq!(history.period(2, 1), None);
        feed(&mut history, 0..30);
        assert_eq!(history.period(2, 1), Some(30));
    }

    #[test]
    fn a_loop_is_found_through_the_loops_inside_it() {
        let mut history = TokenHistory::new();
        let round = || (0..10).chain((0..8).flat_map(|_| 20..25)).chain(30..40);
        for _ in 0..4 {
            feed(&mut history, round());
        }
        assert_eq!(history.period(2, 1), Some(60));
    }

    #[test]
    fn short_loops_have_a_period_and_other_streams_none() {
        let mut history = TokenHistory::new();
        feed(&mut history, 0..20_000);
        assert_eq!(history.period(1, 1), None);
        feed(&mut history, [3; 12]);
        assert_eq!(history.period(2, 1), Some(1));
        feed(&mut history, (0..200).map(|i| i % 2));
        assert_eq!(history.period(2, 1), Some(2));
    }

    #[test]
    fn a_round_starts_where_the_fewest_tensors_are_alive() {
        let mut history = TokenHistory::new();
        for _ in 0..5 {
            for token in 0..10u64 {
                // Token 7 occurs when all other tensors are freed.
                history.push(token * 99_991, if token == 7 { 1 } else { 5 }, 0);
            }
        }
        assert_eq!(history.period(2, 1), Some(10));
        assert_eq!(history.tokens_to_start(10), 7);
        for token in 0..7u64 {
            history.push(token * 99_991, 5, 0);
        }
        assert_eq!(history.tokens_to_start(10), 0);
    }

    #[test]
    fn old_tokens_are_overwritten() {
        let mut history = TokenHistory::new();
        feed(&mut history, 0..3 * CAPACITY as u64);
        for _ in 0..4 {
            feed(&mut history, 0..1000);
        }
        assert_eq!(history.period(2, 1), Some(1000));
    }
}
