//! Outlines: facts about a segment that a search uses before it reads the segment: the positions of
//! its keys and the range of their numbers.
//!
//! Level lists store the outlines of segments that are in memory. A search begins where the key
//! would be if keys were evenly spread, as hashed keys are. This position is known without reading
//! the segment, so the cache line can be prefetched early from a simulation's large memory. From
//! there the search continues by eight bytes of each key (see `key_heads`). Cost: six or seven
//! comparisons of numbers among a few hundred evenly spread keys, twice the logarithm at worst.
//! Memory: 20 bytes a segment.

use runtime::prefetch;

use super::key_heads::{HEAD_BYTES, common_len, head};

/// The outline of a segment whose keys all have the same length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    /// The position of the first key's head in the page.
    first_head: u16,
    /// The distance of consecutive keys, in bytes.
    stride: u16,
    /// The index of the last key.
    last: u16,
    /// The first step of a search from the aim: about the typical error of the aim at evenly spread
    /// keys.
    step: u8,
    /// Bytes of a key.
    key_bytes: u8,
    /// The position in each key of the bytes that are compared; all keys are equal before it.
    head_at: u8,
    /// Whether heads consist of decimal digits.
    are_decimal: bool,
    /// Whether values follow the keys.
    has_values: bool,
    /// The number of the first head, and the difference to that of the last head; see
    /// [`number_of`].
    low: u32,
    span: u32,
}

/// The start of a search for a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    /// The head of the key.
    wanted: u64,
    /// The index of the expected entry.
    at: usize,
}

impl Outline {
    /// Creates the outline of `count` keys of `key_bytes` bytes, the first of which begins at
    /// `first_key` in the page; `None` if there are no keys or they are too short.
    pub(crate) fn new(
        page: &[u8],
        first_key: usize,
        count: usize,
        stride: usize,
        key_bytes: usize,
        has_values: bool,
    ) -> Option<Self> {
        let (last, last_head) = (count.checked_sub(1)?, key_bytes.checked_sub(HEAD_BYTES)?);
        let key = |index: usize| page.get(first_key + index * stride..)?.get(..key_bytes);
        let (first_one, last_one) = (key(0)?, key(last)?);
        let head_at = common_len(first_one, last_one).min(last_head);
        let [low, high] = [first_one, last_one].map(|key| head(&key[head_at..]));
        let are_decimal = are_digits(low) && are_digits(high);
        let [low, high] = [low, high].map(|head| number_of(head, are_decimal));
        Some(Self {
            first_head: u16::try_from(first_key + head_at).ok()?,
            stride: u16::try_from(stride).ok()?,
            last: u16::try_from(last).ok()?,
            step: 1 << ((last | 1).ilog2() / 2).saturating_sub(1),
            key_bytes: u8::try_from(key_bytes).ok()?,
            head_at: head_at as u8,
            are_decimal,
            has_values,
            low,
            span: high.saturating_sub(low),
        })
    }

    /// Whether values follow the keys.
    pub(crate) fn has_values(&self) -> bool {
        self.has_values
    }

    /// Returns the start of the search for `key`; `None` if keys have another length.
    pub(crate) fn aim(&self, key: &[u8]) -> Option<Aim> {
        if key.len() != usize::from(self.key_bytes) {
            return None;
        }
        let wanted = u64::from_be_bytes(*key.get(usize::from(self.head_at)..)?.first_chunk()?);
        let above = number_of(wanted, self.are_decimal).saturating_sub(self.low).min(self.span);
        let at = u64::from(above) * u64::from(self.last) / u64::from(self.span.max(1));
        Some(Aim { wanted, at: at as usize })
    }

    /// Prefetches the bytes that a search from `aim` will read.
    pub(crate) fn prefetch(&self, page: &[u8], aim: Aim) {
        let place = usize::from(self.first_head) + aim.at * usize::from(self.stride);
        let step = usize::from(self.step) * usize::from(self.stride);
        for place in [place, place + step, place.saturating_sub(step)] {
            if let Some(byte) = page.get(place) {
                prefetch(byte);
            }
        }
    }

    /// Returns the index of the entry of `key`, starting at `aim`.
    #[expect(clippy::inline_always, reason = "each Get does it in every level")]
    #[inline(always)]
    pub(crate) fn find(&self, page: &[u8], key: &[u8], aim: Aim) -> Option<usize> {
        let heads = &page[usize::from(self.first_head)..];
        let mut at = self.first_from(heads, aim);
        // Few heads are equal. The bytes that all keys share are compared only here.
        while at <= usize::from(self.last) && self.head(heads, at) == aim.wanted {
            let start = usize::from(self.first_head) + at * usize::from(self.stride);
            let own = &page[start - usize::from(self.head_at)..];
            if own.get(..key.len()) == Some(key) {
                return Some(at);
            }
            at += 1;
        }
        None
    }

    /// Returns the position in the page of the entry `at`, which begins with its pointer.
    pub(crate) fn entry(&self, at: usize, pointer_bytes: usize) -> usize {
        let key = usize::from(self.first_head) - usize::from(self.head_at);
        key - pointer_bytes + at * usize::from(self.stride)
    }

    /// Returns the first key whose head is not less than that of the aim.
    fn first_from(&self, heads: &[u8], aim: Aim) -> usize {
        let count = usize::from(self.last) + 1;
        let is_less = |index: usize| self.head(heads, index) < aim.wanted;
        let (mut low, mut high, mut step) = (0, count, usize::from(self.step));
        if is_less(aim.at) {
            low = aim.at + 1;
            while low + step < count {
                if !is_less(low + step) {
                    high = low + step;
                    break;
                }
                low += step + 1;
                step *= 2;
            }
        } else {
            high = aim.at;
            while high > step {
                if is_less(high - step) {
                    low = high - step + 1;
                    break;
                }
                high -= step;
                step *= 2;
            }
        }
        while high - low > 4 {
            let middle = usize::midpoint(low, high);
            (low, high) = if is_less(middle) { (middle + 1, high) } else { (low, middle) };
        }
        while low < high && is_less(low) {
            low += 1;
        }
        low
    }

    #[inline]
    fn head(&self, heads: &[u8], index: usize) -> u64 {
        let own = heads[index * usize::from(self.stride)..].first_chunk();
        u64::from_be_bytes(*own.expect("a key has no less"))
    }
}

/// Returns a head as a number that is as evenly spread as the keys are: the number spelled by its
/// decimal digits, if it has any.
fn number_of(head: u64, is_decimal: bool) -> u32 {
    if is_decimal { spelled(head) } else { (head >> 32) as u32 }
}

/// Whether each of eight bytes is a decimal digit.
fn are_digits(head: u64) -> bool {
    const HIGH_HALVES: u64 = 0xF0F0_F0F0_F0F0_F0F0;
    const SIXES: u64 = 0x0606_0606_0606_0606;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    // The high half of a digit is 3, and still is after 6 is added to the low half. There is no
    // carry into the next byte: the first test excludes bytes that would give one.
    head & HIGH_HALVES == ZEROS && (head + SIXES) & HIGH_HALVES == ZEROS
}

/// Returns the number that eight decimal digits spell, by joining neighbours three times. Arbitrary
/// for other bytes.
fn spelled(head: u64) -> u32 {
    const TENS: u64 = 10 << 8 | 1;
    const HUNDREDS: u64 = 100 << 16 | 1;
    const TEN_THOUSANDS: u64 = 10_000 << 32 | 1;
    let digits = head.swap_bytes() & 0x0F0F_0F0F_0F0F_0F0F;
    let pairs = (digits.wrapping_mul(TENS) >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(HUNDREDS) >> 16) & 0x0000_FFFF_0000_FFFF;
    (fours.wrapping_mul(TEN_THOUSANDS) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a page of these keys, each after `gap` bytes, and its outline.
    fn outlined(keys: &[Vec<u8>], gap: usize) -> (Vec<u8>, Option<Outline>) {
        let mut page = vec![1; 10];
        for key in keys {
            page.resize(page.len() + gap, 7);
            page.extend_from_slice(key);
        }
        let key_bytes = keys[0].len();
        let outline = Outline::new(&page, 10 + gap, keys.len(), key_bytes + gap, key_bytes, false);
        (page, outline)
    }

    /// Generates keys of `len` bytes of a small alphabet, so that many have a common prefix.
    fn keys(len: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
        let byte = prop_oneof![Just(0), Just(1), Just(b'1'), Just(b'9'), Just(255)];
        let key = prop::collection::vec(byte, len);
        prop::collection::btree_set(key, 1..80).prop_map(|keys| keys.into_iter().collect())
    }

    proptest! {
        #[test]
        fn finds_what_a_search_through_all_keys_finds(
            keys in (8..20_usize).prop_flat_map(keys),
            others in prop::collection::vec(prop::collection::vec(0..60_u8, 0..24), 1..20),
            gap in 0..5_usize,
        ) {
            let (page, outline) = outlined(&keys, gap);
            let outline = outline.expect("there are keys, and they are long enough");
            let longer = keys.iter().map(|key| [&key[..], b"\0"].concat());
            let shorter = keys.iter().map(|key| key[..key.len() - 1].to_vec());
            let changed = keys.iter().map(|key| [&[key[0] ^ 1], &key[1..]].concat());
            for key in
                keys.iter().cloned().chain(longer).chain(shorter).chain(changed).chain(others)
            {
                let found = outline.aim(&key).and_then(|aim| {
                    outline.prefetch(&page, aim);
                    outline.find(&page, &key, aim)
                });
                prop_assert_eq!(found, keys.binary_search(&key).ok());
            }
        }
    }

    #[test]
    fn digits_are_known_and_spell_numbers() {
        for number in [0, 1, 9, 10, 12_345_678, 90_909_090, 99_999_999] {
            let head = head(format!("{number:08}").as_bytes());
            assert!(are_digits(head) && spelled(head) == number);
        }
        for (at, byte) in (0..8).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
            let mut bytes = *b"42424242";
            bytes[at] = byte;
            assert_eq!(are_digits(head(&bytes)), byte.is_ascii_digit(), "{byte} at {at}");
        }
    }

    #[test]
    fn a_search_for_evenly_spread_keys_begins_near_them() {
        let decimal = |n: u64| format!("user{n:028}").into_bytes();
        let binary = |n: u64| [b"user", &n.to_be_bytes()[..]].concat();
        for spell in [decimal as fn(u64) -> Vec<u8>, binary] {
            let mut keys: Vec<_> = (0..200).map(|n| spell(runtime::mix64(n) >> 20)).collect();
            keys.sort_unstable();
            let outline = outlined(&keys, 5).1.expect("there are keys");
            let off = |(place, key): (usize, &Vec<u8>)| {
                outline.aim(key).map_or(usize::MAX, |aim| aim.at.abs_diff(place))
            };
            let off: usize = keys.iter().enumerate().map(off).sum();
            assert!(off / keys.len() <= 2 * usize::from(outline.step), "{off} places in all");
        }
    }

    #[test]
    fn short_keys_and_no_keys_have_no_outline() {
        assert!(outlined(&[b"1234567".to_vec()], 0).1.is_none());
        assert!(Outline::new(b"", 0, 0, 20, 16, false).is_none());
        assert!(Outline::new(b"0123456789", 2, 2, 8, 8, false).is_none(), "there is one only");
    }
}
