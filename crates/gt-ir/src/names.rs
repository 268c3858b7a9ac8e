//! Sets of tensor ids ("names"), most of which are consecutive: bitmaps in 64-bit words.

use crate::instruction::TensorId;
use crate::wire::{DecodeError, Decoded, Record, Sink, Source};

/// Returns the number of an id's word, and its bit in the word.
#[inline]
fn place(id: TensorId) -> (u64, u64) {
    (Names::word(id), 1 << (id.0 % Names::BITS))
}

/// A set of tensor ids.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    /// Pairs of a word's number and its bits, in order; no word is zero.
    words: Vec<(u64, u64)>,
}

impl Names {
    /// The number of ids in a word.
    pub const BITS: u64 = u64::BITS as u64;

    /// Returns the number of the word that has an id's bit.
    #[inline]
    pub fn word(id: TensorId) -> u64 {
        id.0 / Names::BITS
    }

    /// Returns the ids of a word, in order.
    pub fn of_word(word: u64) -> impl Iterator<Item = TensorId> {
        (0..Names::BITS).map(move |bit| TensorId(word.wrapping_mul(Names::BITS) | bit))
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub fn len(&self) -> usize {
        self.words.iter().map(|(_, bits)| bits.count_ones() as usize).sum()
    }

    fn find(&self, word: u64) -> Result<usize, usize> {
        match self.words.last() {
            // Most ids are inserted in order.
            Some((last, _)) if *last < word => Err(self.words.len()),
            _ => self.words.binary_search_by_key(&word, |(number, _)| *number),
        }
    }

    pub fn contains(&self, id: TensorId) -> bool {
        let (word, bit) = place(id);
        self.find(word).is_ok_and(|at| self.words[at].1 & bit != 0)
    }

    pub fn insert(&mut self, id: TensorId) {
        let (word, bit) = place(id);
        match self.find(word) {
            Ok(at) => self.words[at].1 |= bit,
            Err(at) => self.words.insert(at, (word, bit)),
        }
    }

    pub fn remove(&mut self, id: TensorId) {
        let (word, bit) = place(id);
        if let Ok(at) = self.find(word) {
            self.words[at].1 &= !bit;
            if self.words[at].1 == 0 {
                self.words.remove(at);
            }
        }
    }

    /// Returns the ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = TensorId> {
        let names = |(word, bits): &(u64, u64)| {
            let bits = *bits;
            Names::of_word(*word).filter(move |id| bits & place(*id).1 != 0)
        };
        self.words.iter().flat_map(names)
    }

    /// Merges the words of two sets, combining the bits of each word by `join`.
    fn merged(&self, other: &Names, join: impl Fn(u64, u64) -> u64) -> Names {
        let (mut words, mut others) = (Vec::with_capacity(self.words.len()), &other.words[..]);
        let mut add = |word, bits| {
            if bits != 0 {
                words.push((word, bits))
            }
        };
        for &(word, bits) in &self.words {
            while let [(next, its), rest @ ..] = others
                && *next < word
            {
                add(*next, join(0, *its));
                others = rest;
            }
            match others {
                [(next, its), rest @ ..] if *next == word => {
                    add(word, join(bits, *its));
                    others = rest;
                }
                _ => add(word, join(bits, 0)),
            }
        }
        others.iter().for_each(|(word, bits)| add(*word, join(0, *bits)));
        Names { words }
    }

    /// Returns the ids that are in this set and not in the other.
    #[must_use]
    pub fn without(&self, other: &Names) -> Names {
        self.merged(other, |own, its| own & !its)
    }

    /// Returns the ids that are in either set.
    #[must_use]
    pub fn or(&self, other: &Names) -> Names {
        self.merged(other, |own, its| own | its)
    }

    /// Updates the words with these numbers, which are in order, to the ids for which `is_there`
    /// holds.
    pub fn renew(&mut self, words: &[u64], is_there: impl Fn(TensorId) -> bool) {
        let bit = |id: TensorId| if is_there(id) { place(id).1 } else { 0 };
        let bits = |word: u64| Names::of_word(word).map(bit).sum::<u64>();
        let now: Vec<(u64, u64)> = words.iter().map(|word| (*word, bits(*word))).collect();
        let all = Names { words: words.iter().map(|word| (*word, u64::MAX)).collect() };
        *self = self.without(&all).or(&Names { words: now });
    }
}

impl FromIterator<TensorId> for Names {
    fn from_iter<I: IntoIterator<Item = TensorId>>(ids: I) -> Names {
        let mut names = Names::default();
        ids.into_iter().for_each(|id| names.insert(id));
        names
    }
}

/// For each word, the gap before it with a flag for a full word, then its bits unless it is full.
impl Record for Names {
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(self.words.len() as u64);
        let mut next = 0;
        for &(word, bits) in &self.words {
            let is_full = bits == u64::MAX;
            to.varint((word - next) << 1 | u64::from(is_full));
            if !is_full {
                to.varint(bits);
            }
            next = word + 1;
        }
    }

    fn read(from: &mut Source) -> Decoded<Names> {
        let count = from.count()?;
        let (mut words, mut next) = (Vec::new(), 0u64);
        for _ in 0..count {
            let head = from.varint()?;
            let bits = if head & 1 == 1 { u64::MAX } else { from.varint()? };
            let word = next.checked_add(head >> 1).ok_or(DecodeError::BadNumber)?;
            if bits == 0 || word > u64::MAX / Names::BITS {
                return Err(DecodeError::BadNumber);
            }
            words.push((word, bits));
            next = word + 1;
        }
        Ok(Names { words })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::wire::Frames;

    fn names(ids: impl IntoIterator<Item = u64>) -> Names {
        ids.into_iter().map(TensorId).collect()
    }

    #[test]
    fn they_are_sets() {
        let one: BTreeSet<u64> = (0..300).chain([1000, 1 << 44]).collect();
        let two: BTreeSet<u64> = (250..700).step_by(3).chain([1 << 44, 1 << 50]).collect();
        let (first, second) = (names(one.clone()), names(two.iter().rev().copied()));
        assert_eq!(first.without(&second), names(one.difference(&two).copied()));
        assert_eq!(second.without(&first), names(two.difference(&one).copied()));
        assert_eq!(first.or(&second), names(one.union(&two).copied()));
        let listed: Vec<u64> = second.iter().map(|id| id.0).collect();
        assert_eq!(listed, two.iter().copied().collect::<Vec<_>>());
        assert_eq!((first.len(), second.len()), (one.len(), two.len()));
        assert!(first.contains(TensorId(299)) && !first.contains(TensorId(300)));
        let mut left = first;
        one.iter().for_each(|id| left.remove(TensorId(*id)));
        assert!(left.is_empty());
    }

    #[test]
    fn words_are_renewed() {
        let mut all = names([1, 64, 65, 200]);
        all.renew(&[0, 1, 5], |id| [2, 65, 320].contains(&id.0));
        assert_eq!(all, names([2, 65, 200, 320]));
    }

    #[test]
    fn many_consecutive_names_take_few_bytes() {
        let all = names((3..200_000).chain([TensorId::PLANNED.0 + 5]));
        let mut frames = Frames::default();
        all.write(&mut frames);
        assert!(frames.head.len() < 7000, "{} bytes", frames.head.len());
        let mut source = Source::new(&frames.head, &[]);
        assert_eq!(Names::read(&mut source), Ok(all));
        // A word beyond the last, and an empty one.
        for bytes in
            [&[1, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 1][..], &[1, 2, 0]]
        {
            assert!(Names::read(&mut Source::new(bytes, &[])).is_err());
        }
    }
}
