//! Search in sorted keys of one length, by eight bytes of each.
//!
//! Adjacent keys share their first bytes, and the next eight bytes differ in nearly all of them. So
//! a search compares numbers, and compares whole keys only if the numbers are equal. Nothing is
//! stored for it: the numbers are read from the keys in place.

use std::cmp::Ordering;
use std::ops::Range;

pub(crate) const HEAD_BYTES: usize = 8;

/// Sorted keys of one length at equal distances.
#[derive(Clone, Copy)]
pub(crate) struct KeyHeads<'a> {
    /// The bytes from the start of the first key to the end of the last one.
    bytes: &'a [u8],
    stride: usize,
    key_bytes: usize,
    /// The position in each key of the eight bytes compared first; all keys are equal before it.
    head_at: usize,
}

impl<'a> KeyHeads<'a> {
    /// Keys of `key_bytes` bytes, one every `stride` bytes of `bytes`. `None` if there is no key or
    /// keys are too short.
    pub(crate) fn new(bytes: &'a [u8], stride: usize, key_bytes: usize) -> Option<Self> {
        let last_head = key_bytes.checked_sub(HEAD_BYTES)?;
        let first = bytes.get(..key_bytes)?;
        let head_at = common_len(first, &bytes[bytes.len() - key_bytes..]).min(last_head);
        Some(Self { bytes, stride, key_bytes, head_at })
    }

    /// Returns the first of the keys `within` that is at least `key`; the end of `within` if there
    /// is none.
    pub(crate) fn lower_bound(&self, key: &[u8], within: Range<usize>) -> usize {
        let wanted = match self.wanted(key) {
            Ok(wanted) => wanted,
            Err(Ordering::Less) => return within.start,
            Err(_) => return within.end,
        };
        // Searches by heads first; whole keys are compared only at the end, because few heads are
        // equal.
        let at = lower_bound(within.clone(), |index| self.head(index).cmp(&wanted));
        let is_less = at < within.end && self.compare(at, wanted, key) == Ordering::Less;
        if is_less {
            lower_bound(at + 1..within.end, |index| self.compare(index, wanted, key))
        } else {
            at
        }
    }

    /// Like [`Self::lower_bound`], for a key that is probably near the start of `within`.
    pub(crate) fn gallop(&self, key: &[u8], within: Range<usize>) -> usize {
        match self.wanted(key) {
            Ok(wanted) => gallop(within, |index| self.compare(index, wanted, key)),
            Err(Ordering::Less) => within.start,
            Err(_) => within.end,
        }
    }

    /// Returns the number to search for, or how `key` compares to all keys if it does not share
    /// their common bytes.
    fn wanted(&self, key: &[u8]) -> Result<u64, Ordering> {
        let shared = &self.bytes[..self.head_at];
        if begins_with(key, shared) {
            return Ok(head(&key[self.head_at..]));
        }
        Err(key[..self.head_at.min(key.len())].cmp(shared))
    }

    #[inline]
    fn head(&self, index: usize) -> u64 {
        let own = self.bytes[index * self.stride + self.head_at..].first_chunk();
        u64::from_be_bytes(*own.expect("a key has no less"))
    }

    #[inline]
    fn compare(&self, index: usize, wanted: u64, key: &[u8]) -> Ordering {
        let own = self.head(index);
        if own == wanted { self.compare_whole(index, key) } else { own.cmp(&wanted) }
    }

    /// A separate function so that the search loop stays small enough to be inlined.
    #[inline(never)]
    fn compare_whole(&self, index: usize, key: &[u8]) -> Ordering {
        self.bytes[index * self.stride..][..self.key_bytes].cmp(key)
    }
}

/// Like [`lower_bound`], for a position that is probably near the start of `within`.
pub(crate) fn gallop(within: Range<usize>, compare: impl Fn(usize) -> Ordering) -> usize {
    let Range { start, end } = within;
    let is_less = |index: usize| index < end && compare(index) == Ordering::Less;
    if !is_less(start) {
        return start;
    }
    let mut step = 1;
    while is_less(start + step) {
        step *= 2;
    }
    lower_bound(start + step / 2 + 1..end.min(start + step), compare)
}

/// Returns the first of the indices `within` that does not compare as less; the end of `within` if
/// there is none.
///
/// The pivots of two steps of a binary search are read together, so that the cache misses of a
/// simulation's large memory overlap.
pub(crate) fn lower_bound(within: Range<usize>, compare: impl Fn(usize) -> Ordering) -> usize {
    let (mut low, mut len) = (within.start, within.len());
    while len >= 8 {
        let quarter = len / 4;
        let passes = |pivot: usize| usize::from(compare(low + pivot) == Ordering::Less);
        let passed = passes(quarter) + passes(2 * quarter) + passes(3 * quarter);
        low += passed * quarter;
        len = if passed == 3 { len - 3 * quarter } else { quarter };
    }
    (low..low + len).find(|index| compare(*index) != Ordering::Less).unwrap_or(low + len)
}

/// Returns the number of leading bytes that two keys share.
pub(crate) fn common_len(a: &[u8], b: &[u8]) -> usize {
    let (words, _) = a.as_chunks::<HEAD_BYTES>();
    let (others, _) = b.as_chunks::<HEAD_BYTES>();
    for (index, (word, other)) in words.iter().zip(others).enumerate() {
        let differing = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differing != 0 {
            return index * HEAD_BYTES + differing.trailing_zeros() as usize / 8;
        }
    }
    let equal = HEAD_BYTES * words.len().min(others.len());
    equal + a[equal..].iter().zip(&b[equal..]).take_while(|(a, b)| a == b).count()
}

/// Whether `key` begins with `shared`, which is the common case. Inlined, unlike the library's
/// comparison.
#[inline]
pub(crate) fn begins_with(key: &[u8], shared: &[u8]) -> bool {
    let Some(own) = key.get(..shared.len()) else { return false };
    let (Some(last), Some(own_last)) = (shared.last_chunk::<HEAD_BYTES>(), own.last_chunk()) else {
        return own.iter().zip(shared).all(|(a, b)| a == b);
    };
    let (words, _) = shared.as_chunks::<HEAD_BYTES>();
    let (own_words, _) = own.as_chunks();
    last == own_last && words.iter().zip(own_words).all(|(a, b)| a == b)
}

/// Returns the first eight bytes as a number with the same order; missing bytes count as zero.
pub(crate) fn head(bytes: &[u8]) -> u64 {
    if let Some(word) = bytes.first_chunk() {
        return u64::from_be_bytes(*word);
    }
    let mut word = [0; HEAD_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Generates keys of `len` bytes of a small alphabet, so that many have a common prefix.
    fn keys(len: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
        let byte = prop_oneof![Just(0), Just(1), Just(b'a'), Just(255)];
        let key = prop::collection::vec(byte, len);
        prop::collection::btree_set(key, 1..60).prop_map(|keys| keys.into_iter().collect())
    }

    proptest! {
        #[test]
        fn finds_what_a_search_through_all_keys_finds(
            (keys, wanted) in (8..20_usize).prop_flat_map(|len| {
                let any =
                    prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(b'a')], 0..24);
                (keys(len), prop::collection::vec(any, 1..20))
            }),
            gap in 0..5_usize,
        ) {
            let key_bytes = keys[0].len();
            let mut bytes = Vec::new();
            for key in &keys {
                bytes.extend_from_slice(key);
                bytes.resize(bytes.len() + gap, 7);
            }
            bytes.truncate(bytes.len() - gap);
            let heads = KeyHeads::new(&bytes, key_bytes + gap, key_bytes).expect("there are keys");
            let longer = keys.iter().map(|key| [&key[..], b"\0"].concat());
            let shorter = keys.iter().map(|key| key[..key.len() - 1].to_vec());
            for key in keys.iter().cloned().chain(longer).chain(shorter).chain(wanted) {
                let at = keys.partition_point(|other| *other < key);
                prop_assert_eq!(heads.lower_bound(&key, 0..keys.len()), at);
                let from = keys.len() / 3;
                prop_assert_eq!(heads.lower_bound(&key, from..keys.len()), at.max(from));
                prop_assert_eq!(heads.gallop(&key, from..keys.len()), at.max(from));
            }
        }
    }

    #[test]
    fn short_keys_and_no_keys_have_no_heads() {
        assert!(KeyHeads::new(b"", 20, 16).is_none());
        assert!(KeyHeads::new(b"1234567", 7, 7).is_none());
        assert_eq!(common_len(b"user0000123456789", b"user0000123556789"), 11);
        assert_eq!((common_len(b"abc", b"abd"), common_len(b"", b"abd")), (2, 0));
        assert_eq!(common_len(b"0123456789", b"01234567"), 8);
        assert_eq!(common_len(b"0123456789abcdef", b"0123456789a"), 11);
    }

    #[test]
    fn a_key_begins_with_each_of_its_beginnings_and_with_nothing_else() {
        let key: Vec<u8> = (0..40).collect();
        for len in 0..=key.len() {
            assert!(begins_with(&key, &key[..len]) && begins_with(&key[..len], &key[..len]));
            assert!(len == 0 || !begins_with(&key[..len - 1], &key[..len]));
            for at in 0..len {
                let mut other = key[..len].to_vec();
                other[at] ^= 1;
                assert!(!begins_with(&key, &other));
            }
        }
    }
}
