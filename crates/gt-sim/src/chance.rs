//! The simulation's random numbers.

use gt_ir::philox::RandomStream;

/// A seeded sequence of random numbers.
pub struct Chance {
    stream: RandomStream,
    drawn: u64,
}

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance { stream: RandomStream::new(seed, 0), drawn: 0 }
    }

    /// A number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.drawn += 1;
        self.stream.integer(self.drawn, 0, limit as i64) as u64
    }
}
