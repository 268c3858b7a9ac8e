//! Links that survive the loss of their connection.
//!
//! Each end counts the messages that it has sent and received, and keeps those that the other has
//! not acknowledged. After a reconnection, each end reports the number that it has received, and
//! the other resends the rest: no message is lost or duplicated. Connections keep messages in
//! order, so messages carry no numbers.

use std::collections::VecDeque;

use bytes::Bytes;

/// The number of messages, and bytes, after which their receipt is acknowledged.
const MESSAGES: u64 = 64;
const BYTES: usize = 1 << 20;

/// Returns a token that cannot be guessed.
pub fn token() -> u128 {
    let mut token = [0; 16];
    getrandom::fill(&mut token).expect("the system gives random bytes");
    u128::from_ne_bytes(token)
}

/// The messages that one end has sent.
#[derive(Default)]
pub struct Unacknowledged {
    /// The number of acknowledged messages, and of messages up to the last acknowledged one that is
    /// recorded.
    acknowledged: u64,
    recorded: u64,
    /// The unacknowledged messages, oldest first, and whether the other end records each.
    kept: VecDeque<(Vec<Bytes>, bool)>,
    bytes: usize,
}

impl Unacknowledged {
    /// Adds a sent message. If it `is_recorded`, the other end makes it durable before
    /// acknowledging it.
    pub fn push(&mut self, frames: Vec<Bytes>, is_recorded: bool) {
        self.bytes += length(&frames);
        self.kept.push_back((frames, is_recorded));
    }

    /// Continues the counts of a previous end, of which the other end has received `received`
    /// messages.
    pub fn begin_at(&mut self, received: u64) {
        self.acknowledged = received;
    }

    /// Returns the number of acknowledged messages.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Returns the number of messages up to the last acknowledged one that is recorded.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Returns the number of messages sent.
    pub fn sent(&self) -> u64 {
        self.acknowledged + self.kept.len() as u64
    }

    /// Returns the bytes of the unacknowledged messages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Acknowledges the first `received` messages. Returns false if fewer were sent, or more are
    /// acknowledged already.
    pub fn acknowledge(&mut self, received: u64) -> bool {
        if received < self.acknowledged || received > self.sent() {
            return false;
        }
        while self.acknowledged < received
            && let Some((frames, is_recorded)) = self.kept.pop_front()
        {
            self.acknowledged += 1;
            if is_recorded {
                self.recorded = self.acknowledged;
            }
            self.bytes -= length(&frames);
        }
        true
    }

    /// Returns the unacknowledged messages, oldest first.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &Vec<Bytes>> {
        self.kept.iter().map(|(frames, _)| frames)
    }
}

/// The messages that one end has received.
#[derive(Default)]
pub struct Incoming {
    received: u64,
    acknowledged: u64,
    bytes: usize,
}

impl Incoming {
    /// Starts with `received` messages, all acknowledged.
    pub fn begin_at(received: u64) -> Incoming {
        Incoming { received, acknowledged: received, bytes: 0 }
    }

    /// Returns the number of messages received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Counts a received message. Returns the number received so far if an acknowledgement is due.
    pub fn take(&mut self, frames: &[Bytes]) -> Option<u64> {
        self.received += 1;
        self.bytes += length(frames);
        let is_due = self.received - self.acknowledged >= MESSAGES || self.bytes >= BYTES;
        is_due.then(|| self.acknowledge())
    }

    /// Returns the number of messages received, which the caller sends as an acknowledgement.
    pub fn acknowledge(&mut self) -> u64 {
        (self.acknowledged, self.bytes) = (self.received, 0);
        self.received
    }
}

fn length(frames: &[Bytes]) -> usize {
    frames.iter().map(Bytes::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(number: u64) -> Vec<Bytes> {
        vec![Bytes::copy_from_slice(&number.to_le_bytes())]
    }

    /// A small generator of pseudo-random numbers.
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn nothing_is_skipped_and_nothing_comes_twice_wherever_links_are_cut() {
        for seed in 1..500 {
            let mut random = u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15);
            let (mut outgoing, mut incoming) = (Unacknowledged::default(), Incoming::default());
            let (mut wire, mut back) = (VecDeque::new(), VecDeque::new());
            let (mut sent, mut got) = (0, Vec::new());
            for _ in 0..400 {
                match next(&mut random) % 8 {
                    0..=3 => {
                        outgoing.push(message(sent), sent % 3 == 0);
                        wire.push_back(message(sent));
                        sent += 1;
                    }
                    4 | 5 => {
                        if let Some(frames) = wire.pop_front() {
                            back.extend(incoming.take(&frames));
                            got.push(frames);
                        }
                    }
                    6 => {
                        if let Some(received) = back.pop_front() {
                            assert!(outgoing.acknowledge(received));
                        }
                    }
                    // Messages in flight are lost, in both directions.
                    _ => {
                        (wire, back) = (VecDeque::new(), VecDeque::new());
                        assert!(outgoing.acknowledge(incoming.acknowledge()));
                        wire.extend(outgoing.unacknowledged().cloned());
                    }
                }
            }
            got.extend(wire);
            assert_eq!(got, (0..sent).map(message).collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn what_is_received_is_acknowledged_now_and_then() {
        let (mut outgoing, mut incoming) = (Unacknowledged::default(), Incoming::default());
        let told = (0..200).filter_map(|number| {
            outgoing.push(message(number), number % 10 == 0);
            let told = incoming.take(&message(number))?;
            assert!(outgoing.acknowledge(told));
            Some(told)
        });
        assert_eq!(told.collect::<Vec<_>>(), [64, 128, 192]);
        assert_eq!((outgoing.bytes(), outgoing.sent(), outgoing.recorded()), (64, 200, 191));
        assert!(!outgoing.acknowledge(191) && !outgoing.acknowledge(201));
        let large = vec![Bytes::from(vec![0; BYTES])];
        assert_eq!(incoming.take(&large), Some(201));
    }
}
