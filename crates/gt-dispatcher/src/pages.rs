//! A map from numbers, of which copies share all that has not changed since: values stand on pages of
//! consecutive numbers, pages in groups, and both are copied when they are written to.
//!
//! So a copy of a large map takes a moment, and the difference between two copies is found by looking
//! at what they do not share.

use std::collections::BTreeSet;
use std::sync::Arc;

use gt_ir::wire::{Decoded, Record, Sink, Source};
use rustc_hash::FxHashMap;

/// The bits of a number that are its place on a page, or a page's place in a group.
const BITS: u32 = u32::BITS.trailing_zeros();
/// How many numbers have one page, and how many pages one group.
const PLACES: u64 = 1 << BITS;

/// How many items a page has room for at first.
const FEW: usize = 4;

/// A page: the values of [`PLACES`] consecutive numbers, of which only those that exist take up memory.
pub type Page<T> = Packed<T>;
type Group<T> = Packed<Arc<Page<T>>>;

/// Some of [`PLACES`] items.
#[derive(Clone, Debug)]
pub struct Packed<T> {
    /// Where the item of each place is, counted from 1; 0 for none.
    at: [u8; PLACES as usize],
    /// The items in the order in which they came, with their places.
    items: Vec<T>,
    places: [u8; PLACES as usize],
}

impl<T> Default for Packed<T> {
    fn default() -> Packed<T> {
        let none = [0; PLACES as usize];
        Packed { at: none, items: Vec::new(), places: none }
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
            // Twice as many, from a few on: most pages of a program that keeps little have few items.
            self.items.reserve_exact(self.items.len().max(FEW));
        }
        self.places[self.items.len()] = place as u8;
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
            let moved = self.places[last];
            self.places[index] = moved;
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

    /// The items with their places, in the order of these.
    fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        (0..PLACES).filter_map(|place| Some((place, self.get(place as usize)?)))
    }

    /// The items, in no order.
    pub fn items(&self) -> &[T] {
        &self.items
    }
}

/// A bit for each place that has an item, and the items in the order of their places.
impl<T: Record> Record for Packed<T> {
    fn write<S: Sink>(&self, to: &mut S) {
        let present: u64 = self.iter().map(|(place, _)| 1 << place).sum();
        to.varint(present);
        self.iter().for_each(|(_, item)| item.write(to));
    }

    fn read(from: &mut Source) -> Decoded<Packed<T>> {
        let present = u32::read(from)?;
        let mut packed = Packed::default();
        for place in (0..PLACES).filter(|place| present >> place & 1 == 1) {
            packed.insert(place as usize, T::read(from)?);
        }
        Ok(packed)
    }
}

/// A page as it is after a change, by its number; `None` if it has no values any more.
pub type Change<T> = (u64, Option<Arc<Page<T>>>);

/// The map.
pub struct Pages<T> {
    /// All groups but the newest, by their numbers.
    groups: FxHashMap<u64, Arc<Group<T>>>,
    /// The group in which a number was new last, and its number. Its pages may be empty: where tensors
    /// come and go, so would they.
    newest: (u64, Arc<Group<T>>),
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

/// A number's group, its page's place there, and its own place on the page.
#[inline]
fn places(number: u64) -> (u64, usize, usize) {
    let place = |number: u64| (number & (PLACES - 1)) as usize;
    (number >> (2 * BITS), place(number >> BITS), place(number))
}

impl<T: Clone> Pages<T> {
    #[inline]
    fn group(&self, number: u64) -> Option<&Arc<Group<T>>> {
        match number == self.newest.0 {
            true => Some(&self.newest.1),
            false => self.groups.get(&number),
        }
    }

    #[inline]
    fn group_mut(&mut self, number: u64) -> Option<&mut Group<T>> {
        let group = match number == self.newest.0 {
            true => &mut self.newest.1,
            false => self.groups.get_mut(&number)?,
        };
        Some(Arc::make_mut(group))
    }

    /// Makes a group the newest one.
    #[cold]
    fn turn_to(&mut self, number: u64) {
        let group = self.groups.remove(&number).unwrap_or_default();
        let (before, mut group) = std::mem::replace(&mut self.newest, (number, group));
        let pages = Arc::make_mut(&mut group);
        for page in 0..PLACES as usize {
            if pages.get(page).is_some_and(|page| page.is_empty()) {
                pages.remove(page);
            }
        }
        if !group.is_empty() {
            self.groups.insert(before, group);
        }
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.count
    }

    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        let (group, page, place) = places(number);
        self.group(group)?.get(page)?.get(place)
    }

    /// A value that is changed: its page is copied if it is shared.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let (group, page, place) = places(number);
        let page = self.group_mut(group)?.get_mut(page)?;
        Arc::make_mut(page).get_mut(place)
    }

    /// Sets a value; returns the one before.
    #[inline]
    pub fn insert(&mut self, number: u64, value: T) -> Option<T> {
        let (group, page, place) = places(number);
        if group != self.newest.0 && !self.groups.contains_key(&group) {
            self.turn_to(group);
        }
        let pages = self.group_mut(group).expect("there is one now");
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

    /// Takes a value out.
    #[inline]
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let (number, page, place) = places(number);
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

    /// The values by number, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let groups = self.group_numbers().into_iter();
        let groups = groups.filter_map(|number| Some((number, self.group(number)?)));
        groups.flat_map(|(group, pages)| {
            pages.iter().flat_map(move |(page, values)| {
                let first = (group << BITS | page) << BITS;
                values.iter().map(move |(place, value)| (first | place, value))
            })
        })
    }

    /// The numbers of all values, in order.
    pub fn numbers(&self) -> Vec<u64> {
        self.iter().map(|(number, _)| number).collect()
    }

    fn group_numbers(&self) -> BTreeSet<u64> {
        self.groups.keys().copied().chain([self.newest.0]).collect()
    }

    fn page(&self, group: u64, page: u64) -> Option<&Arc<Page<T>>> {
        self.group(group)?.get(page as usize)
    }

    /// The pages that are not the same as before, in order, each as it was and as it is.
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
        groups.into_iter().flat_map(|group| (0..PLACES).map(move |page| (group, page))).filter_map(
            |(group, page)| {
                let (was, is) = (before.page(group, page), self.page(group, page));
                let is_same = match (was, is) {
                    (Some(was), Some(is)) => Arc::ptr_eq(was, is),
                    (was, is) => was.is_none() && is.is_none(),
                };
                (!is_same).then_some((group << BITS | page, was, is))
            },
        )
    }

    /// What has changed since `before`.
    pub fn changes(&self, before: &Pages<T>) -> Vec<Change<T>> {
        self.differences(before).map(|(number, _, is)| (number, is.cloned())).collect()
    }

    /// Makes changes that another map had.
    pub fn apply(&mut self, changes: Vec<Change<T>>) {
        for (number, page) in changes {
            let (group, place) = (number >> BITS, (number & (PLACES - 1)) as usize);
            if group != self.newest.0 {
                self.turn_to(group);
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

    /// Numbers that look like chance, always the same.
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
    fn it_is_a_map_and_copies_stay_as_they_were() {
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
        pages.turn_to(u64::MAX);
        assert!(pages.groups.is_empty());
    }

    #[test]
    fn changes_are_what_is_not_shared_and_lead_from_one_copy_to_the_other() {
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
            let read: Option<Packed<u64>> = Record::read(&mut source).expect("it was just written");
            other.apply(vec![(number, read.map(Arc::new))]);
        }
        assert_eq!(all(&other), all(&pages));
        assert_eq!((other.count(), pages.count()), (99_937, 99_937));
        assert_eq!(first.get(70_000), Some(&70_000));
    }
}
