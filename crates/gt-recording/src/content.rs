//! Hashes of values' bytes, by which data is stored once and values are compared.

use gt_ir::record;
use xxhash_rust::xxh3::xxh3_128;

/// The hash of some bytes (XXH3, 128 bits): different bytes have different hashes, unless they were
/// constructed to collide.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ContentHash(pub u128);

record!(struct ContentHash(bits));

impl ContentHash {
    /// Returns the hash of some bytes.
    pub fn of(bytes: &[u8]) -> ContentHash {
        ContentHash(xxh3_128(bytes))
    }
}

impl std::fmt::Display for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_published_algorithm() {
        assert_eq!(ContentHash::of(b"").to_string(), "99aa06d3014798d86001c324468d497f");
        assert_ne!(ContentHash::of(b"a"), ContentHash::of(b"b"));
    }
}
