//! Interning of the storages and values of a call: equal ones get the same index.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Up to this many numbers are searched linearly.
const LINEAR_LIMIT: usize = 16;

/// Distinct numbers, in the order of their first occurrence.
#[derive(Default)]
pub struct Interner {
    pub numbers: SmallVec<[u64; 4]>,
    /// The indices by number, if there are more than [`LINEAR_LIMIT`].
    by_number: Option<Box<FxHashMap<u64, usize>>>,
}

impl Interner {
    /// Returns the index of a number, and whether it is new.
    pub fn intern(&mut self, number: u64) -> (usize, bool) {
        let Some(by_number) = &mut self.by_number else {
            if let Some(index) = self.numbers.iter().position(|of| *of == number) {
                return (index, false);
            }
            self.numbers.push(number);
            if self.numbers.len() == LINEAR_LIMIT {
                self.by_number = Some(Box::new(self.numbers.iter().copied().zip(0..).collect()));
            }
            return (self.numbers.len() - 1, true);
        };
        let next = self.numbers.len();
        let index = *by_number.entry(number).or_insert(next);
        if index == next {
            self.numbers.push(number);
        }
        (index, index == next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_get_equal_indices() {
        let mut interner = Interner::default();
        for number in (0..50).map(|of| of * 7) {
            assert_eq!(interner.intern(number), (number as usize / 7, true));
            assert_eq!(interner.intern(7 * (number / 14)), (number as usize / 14, false));
        }
        assert_eq!(interner.numbers.len(), 50);
    }
}
