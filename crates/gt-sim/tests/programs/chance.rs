//! Seeded random numbers.

use gt_ir::philox::RandomStream;

/// A sequence of random numbers, and the number drawn so far.
pub struct Chance(RandomStream, u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(RandomStream::new(seed, 77), 0)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.1 += 1;
        self.0.integer(self.1, 0, limit.max(1) as i64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }
}
