//! A bounded cache, of what can be recomputed.
//!
//! It bounds the number of its entries, and their weight, such as a program's instructions. When another
//! does not fit, the least recently used ones go, an eighth of all at a time, so that they are rarely
//! searched for.

use std::borrow::Borrow;
use std::hash::Hash;
use std::ops::AddAssign;

use rustc_hash::{FxBuildHasher, FxHashMap};

/// The bounds of a cache.
#[derive(Clone, Copy, Debug)]
pub struct CacheLimits {
    pub entries: usize,
    /// The most that all entries may weigh.
    pub weight: usize,
}

impl CacheLimits {
    /// Returns the limits of entries that all weigh the same.
    pub const fn entries(entries: usize) -> CacheLimits {
        CacheLimits { entries, weight: usize::MAX }
    }
}

/// What a cache holds, and how it was used.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CacheStats {
    pub entries: usize,
    pub weight: usize,
    pub hits: u64,
    pub misses: u64,
    /// The number of entries that had to make room for others.
    pub evicted: u64,
}

impl AddAssign for CacheStats {
    fn add_assign(&mut self, other: CacheStats) {
        self.entries += other.entries;
        self.weight += other.weight;
        self.hits += other.hits;
        self.misses += other.misses;
        self.evicted += other.evicted;
    }
}

/// A bounded cache.
#[derive(Debug)]
pub struct Cache<K, V> {
    limits: CacheLimits,
    entries: FxHashMap<K, CacheEntry<V>>,
    weight: usize,
    /// Counts the uses.
    clock: u64,
    hits: u64,
    misses: u64,
    evicted: u64,
}

#[derive(Debug)]
struct CacheEntry<V> {
    value: V,
    weight: usize,
    /// The clock at its last use.
    used: u64,
}

impl<K, V> Cache<K, V> {
    /// Returns an empty cache.
    pub const fn new(limits: CacheLimits) -> Cache<K, V> {
        let entries = FxHashMap::with_hasher(FxBuildHasher);
        Cache { limits, entries, weight: 0, clock: 0, hits: 0, misses: 0, evicted: 0 }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns what it holds, and how it was used.
    pub fn stats(&self) -> CacheStats {
        let Cache { weight, hits, misses, evicted, .. } = *self;
        CacheStats { entries: self.entries.len(), weight, hits, misses, evicted }
    }

    /// Returns the entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, entry)| (key, &entry.value))
    }
}

impl<K: Eq + Hash + Clone, V> Cache<K, V> {
    /// Returns an entry, which counts as used now.
    #[inline]
    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.clock += 1;
        match self.entries.get_mut(key) {
            Some(entry) => {
                self.hits += 1;
                entry.used = self.clock;
                Some(&mut entry.value)
            }
            None => {
                self.misses += 1;
                None
            }
        }
    }

    /// Returns an entry without counting it as used.
    pub fn peek<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Like [`Cache::peek`].
    pub fn peek_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key).map(|entry| &mut entry.value)
    }

    /// Adds an entry, or replaces that of the same key. Returns the entries that made room for it.
    /// One that exceeds the limit by itself is kept alone.
    pub fn insert(&mut self, key: K, value: V, weight: usize) -> Vec<(K, V)> {
        self.remove(&key);
        let CacheLimits { entries, weight: most } = self.limits;
        let mut evicted = Vec::new();
        while !self.entries.is_empty()
            && (self.entries.len() >= entries || self.weight.saturating_add(weight) > most)
        {
            self.evict(&mut evicted);
        }
        self.clock += 1;
        self.weight += weight;
        self.entries.insert(key, CacheEntry { value, weight, used: self.clock });
        evicted
    }

    /// Removes the least recently used eighth.
    fn evict(&mut self, evicted: &mut Vec<(K, V)>) {
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        let last = uses.len() / 8;
        // Each use has a clock of its own, so that just these are older.
        let (_, &mut newest, _) = uses.select_nth_unstable(last);
        let mut old: Vec<(u64, K)> = Vec::with_capacity(last + 1);
        // The order is that of their uses.
        #[allow(clippy::iter_over_hash_type, reason = "they are sorted below")]
        for (key, entry) in &self.entries {
            if entry.used <= newest {
                old.push((entry.used, key.clone()));
            }
        }
        old.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in old {
            self.evicted += 1;
            evicted.extend(self.remove(&key).map(|value| (key, value)));
        }
    }

    /// Removes an entry.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let entry = self.entries.remove(key)?;
        self.weight -= entry.weight;
        Some(entry.value)
    }

    /// Keeps the entries for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain(|key, entry| {
            let is_kept = keep(key, &mut entry.value);
            self.weight -= if is_kept { 0 } else { entry.weight };
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(cache: &Cache<u32, ()>) -> Vec<u32> {
        let mut keys: Vec<u32> = cache.iter().map(|(key, ())| *key).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn the_least_recently_used_make_room() {
        let mut cache = Cache::new(CacheLimits::entries(16));
        for key in 0..16 {
            assert!(cache.insert(key, (), 1).is_empty());
        }
        assert!(cache.get(&0).is_some() && cache.peek(&1).is_some());
        let evicted: Vec<u32> = cache.insert(16, (), 1).into_iter().map(|(key, ())| key).collect();
        assert_eq!(evicted, [1, 2, 3], "an eighth, and the one that is full");
        assert_eq!(keys(&cache), [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
        let stats = CacheStats { entries: 14, weight: 14, hits: 1, misses: 0, evicted: 3 };
        assert_eq!(cache.stats(), stats);
        assert!(cache.get(&1).is_none());
        assert_eq!(cache.stats().misses, 1);
    }

    #[test]
    fn the_weight_is_bounded() {
        let mut cache = Cache::new(CacheLimits { entries: 100, weight: 10 });
        for (key, weight) in [(0, 4), (1, 4), (2, 4)] {
            cache.insert(key, (), weight);
        }
        assert_eq!((keys(&cache), cache.stats().weight), (vec![1, 2], 8));
        cache.insert(1, (), 6);
        assert_eq!((keys(&cache), cache.stats().weight), (vec![1, 2], 10));
        cache.insert(3, (), 1000);
        assert_eq!(keys(&cache), [3], "it is kept alone");
        cache.insert(4, (), 1);
        assert_eq!(keys(&cache), [4]);
        cache.retain(|_, ()| false);
        assert!(cache.is_empty());
        assert_eq!(cache.stats().weight, 0);
    }
}
