//! A map from numbers to values with cheap copies: values lie on pages of consecutive numbers,
//! pages in groups, and copies share both until they are written to.
//!
//! So cloning a map copies only its table of groups, and the difference between two clones is found
//! by visiting only what they do not share.

use std::collections::BTreeSet;
use std::sync::Arc;

use gt_ir::wire::{Decoded, Record, Sink, Source};
use rustc_hash::FxHashMap;

/// The bits of a number that are its index on a page, or a page's index in a group.
const RADIX_BITS: u32 = u32::BITS.trailing_zeros();
/// How many numbers share a page, and how many pages a group.
const RADIX: u64 = 1 << RADIX_BITS;

/// How many items a page first allocates.
const FEW: usize = 4;

/// A page: the values of [`RADIX`] consecutive numbers. Absent ones occupy no memory.
pub type Page<T> = Packed<T>;
type PageGroup<T> = Packed<Arc<Page<T>>>;

/// Up to [`RADIX`] items by index.
#[derive(Clone, Debug)]
pub struct Packed<T> {
    /// For each index, the position of its item counted from 1; 0 if there is none.
    at: [u8; RADIX as usize],
    /// The items in the order of their insertion, and their indices.
    items: Vec<T>,
    indices: [u8; RADIX as usize],
}

impl<T> Default for Packed<T> {
    fn default() -> Packed<T> {
        let none = [0; RADIX as usize];
        Packed { at: none, items: Vec::new(), indices: none }
    }
}

impl<T> Packed<T> {
    #[inline]
    fn get(&self, place: usize) -> Option<&T> {
        self.items.get(usize::from(self.at[place]).wrapping_sub(1))
    }

    #[inline]
    fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.items.get_mut(usize::from(self.at[place]).wrapping_sub(1))
    }

    #[inline]
    fn insert(&mut self, place: usize, item: T) -> Option<T> {
        if let Some(known) = self.get_mut(place) {
            return Some(std::mem::replace(known, item));
        }
        if self.items.len() == self.items.capacity() {
            // Doubles the capacity, from `FEW`: most pages of a program with few live tensors have
            // few items.
            self.items.reserve_exact(self.items.len().max(FEW));
        }
        self.indices[self.items.len()] = place as u8;
        self.items.push(item);
        self.at[place] = self.items.len() as u8;
        None
    }

    #[inline]
    fn remove(&mut self, place: usize) -> Option<T> {
        let index = usize::from(std::mem::take(&mut self.at[place])).checked_sub(1)?;
        let removed = self.items.swap_remove(index);
        let last = self.items.len();
        if index < last {
            let moved = self.indices[last];
            self.indices[index] = moved;
            self.at[usize::from(moved)] = index as u8 + 1;
        }
        if self.items.capacity() > 8 && last <= self.items.capacity() / 4 {
            self.items.shrink_to_fit();
        }
        Some(removed)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the items with their indices, in order.
    fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (0..RADIX).filter_map(|place| Some((place, self.get(place as usize)?)))
    }

    /// Returns the items, in no order.
    pub fn items(&self) -> &[T] {
        &self.items
    }
}

/// Encoded as a bit for each index that has an item, and the items in the order of their indices.
impl<T: Record> Record for Packed<T> {
    fn write<S: Sink>(&self, to: &mut S) {
        let present: u64 = self.iter().map(|(place, _)| 1 << place).sum();
        to.varint(present);
        self.iter().for_each(|(_, item)| item.write(to));
    }

    fn read(from: &mut Source) -> Decoded<Packed<T>> {
        let present = u32::read(from)?;
        let mut packed = Packed::default();
        for place in (0..RADIX).filter(|place| present >> place & 1 == 1) {
            packed.insert(place as usize, T::read(from)?);
        }
        Ok(packed)
    }
}

/// A page after a change, by its number; `None` if it has no values any more.
pub type PageChange<T> = (u64, Option<Arc<Page<T>>>);

/// A map from numbers to values, with cheap copies.
pub struct Pages<T> {
    /// All groups but the newest, by their numbers.
    groups: FxHashMap<u64, Arc<PageGroup<T>>>,
    /// The group into which a new number was inserted last, and its number. Its pages may be empty:
    /// they are kept, as tensors are created and freed there all the time.
    newest: (u64, Arc<PageGroup<T>>),
    count: usize,
}

impl<T> Default for Pages<T> {
    fn default() -> Pages<T> {
        Pages { groups: FxHashMap::default(), newest: Default::default(), count: 0 }
    }
}

impl<T> Clone for Pages<T> {
    fn clone(&self) -> Pages<T> {
        let Pages { groups, newest, count } = self;
        Pages { groups: groups.clone(), newest: newest.clone(), count: *count }
    }
}

/// Splits a number into its group, its page's index in the group, and its own index on the page.
#[inline]
fn split_number(number: u64) -> (u64, usize, usize) {
    let place = |number: u64| (number & (RADIX - 1)) as usize;
    (number >> (2 * RADIX_BITS), place(number >> RADIX_BITS), place(number))
}

impl<T: Clone> Pages<T> {
    #[inline]
    fn group(&self, number: u64) -> Option<&Arc<PageGroup<T>>> {
        match number == self.newest.0 {
            true => Some(&self.newest.1),
            false => self.groups.get(&number),
        }
    }

    #[inline]
    fn group_mut(&mut self, number: u64) -> Option<&mut PageGroup<T>> {
        let group = match number == self.newest.0 {
            true => &mut self.newest.1,
            false => self.groups.get_mut(&number)?,
        };
        Some(Arc::make_mut(group))
    }

    /// Makes a group the newest one.
    #[cold]
    fn make_newest(&mut self, number: u64) {
        let group = self.groups.remove(&number).unwrap_or_default();
        let (before, mut group) = std::mem::replace(&mut self.newest, (number, group));
        let pages = Arc::make_mut(&mut group);
        for page in 0..RADIX as usize {
            if pages.get(page).is_some_and(|page| page.is_empty()) {
                pages.remove(page);
            }
        }
        if !group.is_empty() {
            self.groups.insert(before, group);
        }
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the value of a number.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        let (group, page, place) = split_number(number);
        self.group(group)?.get(page)?.get(place)
    }

    /// Returns a value to be changed: its page is copied if it is shared.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let (group, page, place) = split_number(number);
        let page = self.group_mut(group)?.get_mut(page)?;
        Arc::make_mut(page).get_mut(place)
    }

    /// Sets a value; returns the previous one.
    #[inline]
    pub fn insert(&mut self, number: u64, value: T) -> Option<T> {
        let (group, page, place) = split_number(number);
        if group != self.newest.0 && !self.groups.contains_key(&group) {
            self.make_newest(group);
        }
        let pages = self.group_mut(group).expect("made above");
        if let Some(page) = pages.get_mut(page) {
            let before = Arc::make_mut(page).insert(place, value);
            self.count += usize::from(before.is_none());
            return before;
        }
        let mut values = Page::default();
        values.insert(place, value);
        pages.insert(page, Arc::new(values));
        self.count += 1;
        None
    }

    /// Removes and returns a value.
    #[inline]
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let (number, page, place) = split_number(number);
        let group = self.group_mut(number)?;
        let values = Arc::make_mut(group.get_mut(page)?);
        let removed = values.remove(place)?;
        let is_empty = values.is_empty();
        self.count -= 1;
        if is_empty && number != self.newest.0 {
            self.drop_empty(number, page);
        }
        Some(removed)
    }

    #[cold]
    fn drop_empty(&mut self, number: u64, page: usize) {
        let Some(group) = self.group_mut(number) else { return };
        group.remove(page);
        if group.is_empty() {
            self.groups.remove(&number);
        }
    }

    /// Returns the values by number, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let groups = self.group_numbers().into_iter();
        let groups = groups.filter_map(|number| Some((number, self.group(number)?)));
        groups.flat_map(|(group, pages)| {
            pages.iter().flat_map(move |(page, values)| {
                let first = (group << RADIX_BITS | page) << RADIX_BITS;
                values.iter().map(move |(place, value)| (first | place, value))
            })
        })
    }

    /// Returns the numbers of all values, in order.
    pub fn numbers(&self) -> Vec<u64> {
        self.iter().map(|(number, _)| number).collect()
    }

    fn group_numbers(&self) -> BTreeSet<u64> {
        self.groups.keys().copied().chain([self.newest.0]).collect()
    }

    fn page(&self, group: u64, page: u64) -> Option<&Arc<Page<T>>> {
        self.group(group)?.get(page as usize)
    }

    /// Returns the pages that differ from those before, in order, each as it was and as it is.
    pub fn differences<'a>(
        &'a self,
        before: &'a Pages<T>,
    ) -> impl Iterator<Item = (u64, Option<&'a Arc<Page<T>>>, Option<&'a Arc<Page<T>>>)> {
        let is_shared = |group: &u64| match (self.group(*group), before.group(*group)) {
            (Some(now), Some(before)) => Arc::ptr_eq(now, before),
            _ => false,
        };
        let mut groups = self.group_numbers();
        groups.extend(before.group_numbers());
        groups.retain(|group| !is_shared(group));
        groups.into_iter().flat_map(|group| (0..RADIX).map(move |page| (group, page))).filter_map(
            |(group, page)| {
                let (was, is) = (before.page(group, page), self.page(group, page));
                let is_same = match (was, is) {
                    (Some(was), Some(is)) => Arc::ptr_eq(was, is),
                    (was, is) => was.is_none() && is.is_none(),
                };
                (!is_same).then_some((group << RADIX_BITS | page, was, is))
            },
        )
    }

    /// Returns the changes since `before`.
    pub fn changes(&self, before: &Pages<T>) -> Vec<PageChange<T>> {
        self.differences(before).map(|(number, _, is)| (number, is.cloned())).collect()
    }

    /// Applies changes that another map had.
    pub fn apply(&mut self, changes: Vec<PageChange<T>>) {
        for (number, page) in changes {
            let (group, place) = (number >> RADIX_BITS, (number & (RADIX - 1)) as usize);
            if group != self.newest.0 {
                self.make_newest(group);
            }
            let pages = Arc::make_mut(&mut self.newest.1);
            self.count += page.as_ref().map_or(0, |page| page.items.len());
            let before = match page.filter(|page| !page.is_empty()) {
                Some(page) => pages.insert(place, page),
                None => pages.remove(place),
            };
            self.count -= before.map_or(0, |page| page.items.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Returns pseudorandom numbers, the same in each run.
    fn numbers() -> impl Iterator<Item = u64> {
        let mut state = 7u64;
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        })
    }

    fn all(pages: &Pages<u64>) -> Vec<(u64, u64)> {
        pages.iter().map(|(number, value)| (number, *value)).collect()
    }

    #[test]
    fn pages_behave_like_a_map_and_clones_keep_their_values() {
        let (mut pages, mut plain) = (Pages::default(), BTreeMap::new());
        let mut before: (Pages<u64>, BTreeMap<u64, u64>) = Default::default();
        let mut chance = numbers();
        for round in 0..20_000 {
            let number = chance.next().unwrap() % 3000;
            if chance.next().unwrap().is_multiple_of(2) {
                assert_eq!(pages.insert(number, round), plain.insert(number, round));
            } else {
                assert_eq!(pages.remove(number), plain.remove(&number));
            }
            assert_eq!(pages.get(number), plain.get(&number));
            assert_eq!(pages.count(), plain.len());
            if round % 500 == 0 {
                assert_eq!(all(&pages), plain.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>());
                assert_eq!(all(&before.0), before.1.into_iter().collect::<Vec<_>>());
                before = (pages.clone(), plain.clone());
            }
        }
        for number in pages.numbers() {
            pages.remove(number);
        }
        pages.make_newest(u64::MAX);
        assert!(pages.groups.is_empty());
    }

    #[test]
    fn changes_turn_one_clone_into_another() {
        let mut pages = Pages::default();
        for number in 0..100_000 {
            pages.insert(number, number);
        }
        let first = pages.clone();
        assert!(pages.changes(&first).is_empty());
        *pages.get_mut(70_000).unwrap() = 1;
        for number in 0..64 {
            pages.remove(number);
        }
        pages.insert(1 << 44, 2);
        let changes = pages.changes(&first);
        assert_eq!(changes.len(), 4, "two pages are empty, one has changed, and one is new");
        let mut other = first.clone();
        for (number, page) in changes {
            let frames = {
                let mut frames = gt_ir::wire::Frames::default();
                page.as_deref().cloned().write(&mut frames);
                frames.head
            };
            let mut source = Source::new(&frames, &[]);
            let read: Option<Packed<u64>> = Record::read(&mut source).expect("encoded above");
            other.apply(vec![(number, read.map(Arc::new))]);
        }
        assert_eq!(all(&other), all(&pages));
        assert_eq!((other.count(), pages.count()), (99_937, 99_937));
        assert_eq!(first.get(70_000), Some(&70_000));
    }
}
