//! A bitmap that excludes most absent keys of a memtable without a search.
//!
//! Most keys that are looked up are not in a memtable. Each key sets one bit of a bitmap with at
//! least eight bits per key; a key whose bit is not set is absent. Memory: one to five bytes per
//! key.
//!
//! A full bitmap is replaced by one of four times its size. The keys of the old bitmap are added to
//! the new one step by step, during later inserts: hundreds of thousands of keys at once would
//! delay a writer by a tenth of a second. Until then lookups probe both bitmaps.

use std::ops::Bound;

use runtime::mix64;

const BITS_PER_KEY: usize = 8;
const FIRST_WORDS: usize = 16;
/// New keys between two steps of the move to a larger bitmap, and old keys added per step: the move
/// ends long before the next one begins.
const BETWEEN_STEPS: usize = 32;
const STEP: usize = 128;

/// A bitmap of keys.
#[derive(Default)]
pub(super) struct Marks {
    bits: Bits,
    /// The previous bitmap, while its keys move.
    old: Bits,
    /// The last key that has moved.
    moved: Option<Box<[u8]>>,
    keys: usize,
}

impl Marks {
    /// Whether `key` may be among the marked keys; `false` is certain.
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        self.may_have_hashed(hash(key))
    }

    /// [`Self::may_have`] for the key with this [`hash`].
    pub(super) fn may_have_hashed(&self, hash: u64) -> bool {
        self.bits.has(hash) || self.old.has(hash)
    }

    /// Marks `key`. Requires: it was not marked before. `behind` returns the marked keys from a
    /// bound on, in order.
    pub(super) fn mark<'a, I: Iterator<Item = &'a [u8]>>(
        &mut self,
        key: &[u8],
        behind: impl Fn(Bound<&[u8]>) -> I,
    ) {
        self.keys += 1;
        if self.keys * BITS_PER_KEY > self.bits.len() {
            while !self.old.is_empty() {
                self.step(&behind);
            }
            let larger = Bits::new(FIRST_WORDS.max(4 * self.bits.words.len()));
            self.old = std::mem::replace(&mut self.bits, larger);
        } else if !self.old.is_empty() && self.keys.is_multiple_of(BETWEEN_STEPS) {
            self.step(&behind);
        }
        self.bits.set(hash(key));
    }

    /// Copies the next keys of the old bitmap to the new one.
    fn step<'a, I: Iterator<Item = &'a [u8]>>(&mut self, behind: &impl Fn(Bound<&[u8]>) -> I) {
        let from = self.moved.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let (mut last, mut count) = (None, 0);
        for key in behind(from).take(STEP) {
            self.bits.set(hash(key));
            (last, count) = (Some(key), count + 1);
        }
        if count < STEP {
            (self.old, self.moved) = (Bits::default(), None);
        } else {
            self.moved = last.map(Box::from);
        }
    }
}

/// A bitmap with a power of two of words, or without any.
#[derive(Default)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn new(words: usize) -> Self {
        Self { words: vec![0; words] }
    }

    fn len(&self) -> usize {
        self.words.len() * u64::BITS as usize
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn has(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, hash: u64) {
        let (word, bit) = self.place(hash);
        self.words[word] |= bit;
    }

    /// Returns the index of the word with a key's bit, and a mask of the bit.
    fn place(&self, hash: u64) -> (usize, u64) {
        let word = (hash as usize / u64::BITS as usize) & self.words.len().wrapping_sub(1);
        (word, 1 << (hash % u64::from(u64::BITS)))
    }
}

/// Returns the hash that determines a key's bit.
pub(super) fn hash(key: &[u8]) -> u64 {
    let step = |hash: u64, word: &[u8; 8]| {
        (hash.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    };
    let (words, rest) = key.as_chunks::<8>();
    let mut hash = words.iter().fold(key.len() as u64, step);
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = step(hash, &last);
    }
    mix64(hash)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use super::*;

    fn behind<'a>(
        keys: &'a BTreeSet<Vec<u8>>,
        from: Bound<&[u8]>,
    ) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        keys.range::<[u8], _>((from, Bound::Unbounded)).map(Vec::as_slice)
    }

    /// Returns distinct keys whose order differs from that of `n`.
    fn key(n: u32) -> Vec<u8> {
        format!("user{:020}", n.wrapping_mul(0x9E37_79B9)).into_bytes()
    }

    #[test]
    fn marked_keys_are_never_denied_and_others_mostly_are() {
        let mut marks = Marks::default();
        assert!(!marks.may_have(b"") && !marks.may_have(&key(0)));
        let mut keys = BTreeSet::new();
        for n in 0..3000 {
            marks.mark(&key(n), |from| behind(&keys, from));
            keys.insert(key(n));
            assert!(n % 37 != 0 || keys.iter().all(|key| marks.may_have(key)), "of {n}");
        }
        assert!(keys.iter().all(|key| marks.may_have(key)));
        let wrong = (3000..13_000).filter(|n| marks.may_have(&key(*n))).count();
        assert!(wrong < 10_000 / 8, "{wrong} of 10,000");
        let bytes = marks.bits.words.len() * size_of::<u64>();
        assert!((3000..=4 * 3000).contains(&bytes) && marks.old.is_empty(), "{bytes}");
    }

    #[test]
    fn no_key_pays_for_many_others() {
        let (mut marks, mut keys, mut growths) = (Marks::default(), BTreeSet::new(), 0);
        for n in 0..100_000 {
            let (walked, before) = (Cell::new(0), marks.bits.len());
            marks.mark(&key(n), |from| {
                behind(&keys, from).inspect(|_| walked.set(walked.get() + 1))
            });
            keys.insert(key(n));
            growths += u32::from(marks.bits.len() > before);
            assert!(walked.get() <= STEP, "key {n} pays for {}", walked.get());
        }
        assert_eq!(growths, 6);
        assert!(keys.iter().all(|key| marks.may_have(key)));
    }
}
