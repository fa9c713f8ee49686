//! Which keys a memtable does not have, told without a search.
//!
//! Most keys that are looked up are not in a memtable. Each key sets one bit of a bitmap that has at
//! least eight bits a key; a key whose bit is not set is not there. Memory: one to four bytes a key.

use runtime::mix64;

const WORD_BITS: usize = u64::BITS as usize;
const BITS_PER_KEY: usize = 8;
const FIRST_WORDS: usize = 16;

/// A bitmap of keys.
#[derive(Default)]
pub(super) struct Marks {
    /// A power of two of words, or none.
    words: Vec<u64>,
    keys: usize,
}

impl Marks {
    /// Whether `key` may be among the keys marked; false is certain.
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        self.may_have_hashed(hash(key))
    }

    /// [`Self::may_have`] of the key with this [`hash`].
    pub(super) fn may_have_hashed(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Marks `key`, which was not marked before. `all` are those that were.
    pub(super) fn mark<'a>(&mut self, key: &[u8], all: impl Iterator<Item = &'a [u8]>) {
        self.keys += 1;
        if self.keys * BITS_PER_KEY > self.words.len() * WORD_BITS {
            self.words = vec![0; FIRST_WORDS.max(4 * self.words.len())];
            all.for_each(|key| self.set(key));
        }
        self.set(key);
    }

    fn set(&mut self, key: &[u8]) {
        let (word, bit) = self.place(hash(key));
        self.words[word] |= bit;
    }

    /// The word of a key's bit, and the bit.
    fn place(&self, hash: u64) -> (usize, u64) {
        let word = (hash as usize / WORD_BITS) & self.words.len().wrapping_sub(1);
        (word, 1 << (hash % u64::from(u64::BITS)))
    }
}

/// What a key's bit follows from.
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
    use super::*;

    #[test]
    fn marked_keys_are_never_denied_and_others_mostly_are() {
        let key = |n: u32| format!("user{n:020}").into_bytes();
        let mut marks = Marks::default();
        assert!(!marks.may_have(b"") && !marks.may_have(&key(0)));
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for n in 0..3000 {
            marks.mark(&key(n), keys.iter().map(Vec::as_slice));
            keys.push(key(n));
        }
        assert!(keys.iter().all(|key| marks.may_have(key)));
        let wrong = (3000..13_000).filter(|n| marks.may_have(&key(*n))).count();
        assert!(wrong < 10_000 / 8, "{wrong} of 10,000");
        let bytes = marks.words.len() * size_of::<u64>();
        assert!((3000..=4 * 3000).contains(&bytes), "{bytes}");
    }
}
