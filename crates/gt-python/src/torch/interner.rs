//! What comes up several times in a call, by its number: a storage, a value.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// So many are looked for one by one.
const FEW: usize = 16;

/// Numbers in the order in which they came up first.
#[derive(Default)]
pub struct Interner {
    pub all: SmallVec<[u64; 4]>,
    /// The interner by number, of more than a few.
    by_number: Option<Box<FxHashMap<u64, usize>>>,
}

impl Interner {
    /// The place of a number, and whether it is new.
    pub fn intern(&mut self, number: u64) -> (usize, bool) {
        let Some(by_number) = &mut self.by_number else {
            if let Some(place) = self.all.iter().position(|of| *of == number) {
                return (place, false);
            }
            self.all.push(number);
            if self.all.len() == FEW {
                self.by_number = Some(Box::new(self.all.iter().copied().zip(0..).collect()));
            }
            return (self.all.len() - 1, true);
        };
        let next = self.all.len();
        let place = *by_number.entry(number).or_insert(next);
        if place == next {
            self.all.push(number);
        }
        (place, place == next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_place() {
        let mut interner = Interner::default();
        for number in (0..50).map(|of| of * 7) {
            assert_eq!(interner.intern(number), (number as usize / 7, true));
            assert_eq!(interner.intern(7 * (number / 14)), (number as usize / 14, false));
        }
        assert_eq!(interner.all.len(), 50);
    }
}
