//! Keys: the prefix, then the key number in digits, zero-padded to the full key length.
//!
//! Digits are decimal, or bytes with the most significant one first. Either way keys of one format
//! sort by the numbers they show: the number shown by a key is its *position*.
//!
//! With ordered keys the position is the key number. With hashed keys it is the scrambled number,
//! so that keys inserted one after the other are scattered. YCSB hashes with FNV-64, which is not
//! proven to be free of collisions on these numbers. Here the scramble is a permutation, [`mix64`]
//! if the digits have room for 64 bits, else a similar one on fewer bits: keys of different numbers
//! always differ, and the number can be computed from the key.
//!
//! Cost: about 20 ns per key, without allocation.

use runtime::mix64;
use serde::Serialize;

use crate::unmix::unmix64;

/// Whether keys sort by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InsertOrder {
    /// No: neighbours by number are far apart.
    Hashed,
    /// Yes.
    Ordered,
}

/// Representation of numbers in keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyDigits {
    /// `0` to `9`, padded with `0`.
    Decimal,
    /// Bytes, the most significant first, padded with zero bytes: four bytes have room for four
    /// billion (2^32) keys.
    Binary,
}

impl KeyDigits {
    fn base(self) -> u64 {
        match self {
            Self::Decimal => 10,
            Self::Binary => 256,
        }
    }

    /// Returns the digits of `u64::MAX`, the largest number.
    fn most(self) -> usize {
        match self {
            Self::Decimal => 20,
            Self::Binary => 8,
        }
    }

    /// Returns the padding before numbers with fewer digits.
    fn padding(self) -> u8 {
        match self {
            Self::Decimal => b'0',
            Self::Binary => 0,
        }
    }
}

/// The mapping from key numbers to keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyFormat {
    prefix: String,
    key_bytes: usize,
    order: InsertOrder,
    digits: KeyDigits,
    /// Digits of the number.
    width: usize,
    /// Numbers with at most `width` digits.
    #[serde(skip)]
    capacity: u64,
}

/// A buffer for keys; holds everything but the digits from the start.
#[derive(Clone, Debug)]
pub struct KeyBuffer {
    bytes: Box<[u8]>,
}

impl KeyFormat {
    /// Creates a format of keys of `key_bytes` bytes in decimal, including `prefix`; `None` if that
    /// leaves no room for a digit.
    pub fn new(prefix: &str, key_bytes: usize, order: InsertOrder) -> Option<Self> {
        Self::with_digits(prefix, key_bytes, order, KeyDigits::Decimal)
    }

    /// Same as [`Self::new`], with the given digits.
    pub fn with_digits(
        prefix: &str,
        key_bytes: usize,
        order: InsertOrder,
        digits: KeyDigits,
    ) -> Option<Self> {
        let room = key_bytes.checked_sub(prefix.len()).filter(|room| *room > 0)?;
        let width = room.min(digits.most());
        let capacity = digits.base().checked_pow(width as u32).unwrap_or(u64::MAX);
        Some(Self { prefix: prefix.to_owned(), key_bytes, order, digits, width, capacity })
    }

    /// Returns the length of every key in bytes.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Returns whether keys sort by their numbers.
    pub fn order(&self) -> InsertOrder {
        self.order
    }

    /// Returns the number of possible keys: numbers below this have unique keys.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns a buffer for [`Self::write`].
    pub fn buffer(&self) -> KeyBuffer {
        let mut bytes = vec![self.digits.padding(); self.key_bytes].into_boxed_slice();
        bytes[..self.prefix.len()].copy_from_slice(self.prefix.as_bytes());
        KeyBuffer { bytes }
    }

    /// Writes the key of `number`, which must be below [`Self::capacity`], and returns it.
    pub fn write<'b>(&self, number: u64, buffer: &'b mut KeyBuffer) -> &'b [u8] {
        let position = self.position(number);
        let digits = &mut buffer.bytes[self.key_bytes - self.width..];
        match self.digits {
            KeyDigits::Decimal => write_decimal(position, digits),
            KeyDigits::Binary => {
                digits.copy_from_slice(&position.to_be_bytes()[8 - self.width..]);
            }
        }
        &buffer.bytes
    }

    /// Returns the position of the key of `number`, which must be below [`Self::capacity`].
    pub(crate) fn position(&self, number: u64) -> u64 {
        assert!(number < self.capacity(), "{number} does not fit in {} digits", self.width);
        match self.order {
            InsertOrder::Ordered => number,
            InsertOrder::Hashed if self.width == self.digits.most() => mix64(number),
            InsertOrder::Hashed => scramble_below(number, self.capacity(), scramble_bits),
        }
    }

    /// Returns the number of the key at `position`, which must be a result of [`Self::position`] or
    /// [`Self::parse`].
    pub(crate) fn number_at(&self, position: u64) -> u64 {
        match self.order {
            InsertOrder::Ordered => position,
            InsertOrder::Hashed if self.width == self.digits.most() => unmix64(position),
            InsertOrder::Hashed => scramble_below(position, self.capacity(), unscramble_bits),
        }
    }

    /// Returns the position shown by `key`; `None` if it is not a key of this format.
    pub(crate) fn parse(&self, key: &[u8]) -> Option<u64> {
        if key.len() != self.key_bytes {
            return None;
        }
        let rest = key.strip_prefix(self.prefix.as_bytes())?;
        let (padding, digits) = rest.split_at(rest.len() - self.width);
        if padding.iter().any(|byte| *byte != self.digits.padding()) {
            return None;
        }
        digits.iter().try_fold(0_u64, |position, byte| {
            let digit = match self.digits {
                KeyDigits::Decimal => byte.checked_sub(b'0').filter(|digit| *digit < 10)?,
                KeyDigits::Binary => *byte,
            };
            position.checked_mul(self.digits.base())?.checked_add(u64::from(digit))
        })
    }

    /// Returns the key of `number` as text for messages.
    pub(crate) fn display(&self, number: u64) -> String {
        let mut buffer = self.buffer();
        self.write(number, &mut buffer).escape_ascii().to_string()
    }
}

/// Fills `out` with the decimal digits of `n`, zero-padded. Requires: `n` has at most `out.len()`
/// digits.
fn write_decimal(n: u64, out: &mut [u8]) {
    const BLOCK: u64 = 100_000_000;
    let mut digits = [[0; 8]; 3];
    digits[0] = eight_digits(n / BLOCK / BLOCK);
    digits[1] = eight_digits(n / BLOCK % BLOCK);
    digits[2] = eight_digits(n % BLOCK);
    let digits = digits.as_flattened();
    if let Ok(out) = <&mut [u8; 20]>::try_from(&mut *out) {
        // The most frequent length.
        out.copy_from_slice(&digits[4..]);
        return;
    }
    let (zeros, rest) = out.split_at_mut(out.len().saturating_sub(digits.len()));
    zeros.fill(b'0');
    rest.copy_from_slice(&digits[digits.len() - rest.len()..]);
}

/// Returns the digits of `n`, which has at most eight: splits it into halves three times, all in
/// parallel.
fn eight_digits(n: u64) -> [u8; 8] {
    // Each quotient is exact for numbers of this many digits: 10486 / 2^20 is 1/100, 103 / 2^10 is
    // 1/10.
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let pairs = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000F_000F_000F_000F;
    let digits = tens | ((pairs - tens * 10) << 8);
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

/// Permutes the numbers below `bound`, which is above 0: neighbours end up far apart.
///
/// # Panics
/// Panics if `number` is not below `bound`.
pub fn scrambled(number: u64, bound: u64) -> u64 {
    assert!(number < bound, "{number} is not below {bound}");
    if bound == 1 { 0 } else { scramble_below(number, bound, scramble_bits) }
}

/// Permutes the numbers below `bound`: applies `permute`, a permutation of all numbers with as many
/// bits, until the result is in range. Fewer than two rounds on average. The inverse of `permute`
/// gives the inverse permutation, because it takes the same steps backwards.
fn scramble_below(number: u64, bound: u64, permute: fn(u64, u32) -> u64) -> u64 {
    let bits = u64::BITS - (bound - 1).leading_zeros();
    let mut scrambled = number;
    loop {
        scrambled = permute(scrambled, bits);
        if scrambled < bound {
            return scrambled;
        }
    }
}

const ODD: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];

/// Permutes the numbers of `bits` bits: multiplication by an odd number modulo a power of two, and
/// xor with the upper bits, are both invertible.
fn scramble_bits(number: u64, bits: u32) -> u64 {
    let mask = u64::MAX >> (u64::BITS - bits);
    let shift = bits.div_ceil(2);
    let step = |x: u64, odd: u64| {
        let x = x.wrapping_mul(odd) & mask;
        x ^ (x >> shift)
    };
    ODD.into_iter().fold(number, step)
}

/// The inverse of [`scramble_bits`]. The shift moves at least half of the bits out, so the xor is
/// its own inverse.
fn unscramble_bits(scrambled: u64, bits: u32) -> u64 {
    let mask = u64::MAX >> (u64::BITS - bits);
    let shift = bits.div_ceil(2);
    let step = |x: u64, odd: u64| (x ^ (x >> shift)).wrapping_mul(inverse_of_odd(odd)) & mask;
    ODD.into_iter().rev().fold(scrambled, step)
}

/// Returns the inverse of `odd` modulo 2^64, by Newton's method: it starts with three correct bits,
/// and each step doubles them.
fn inverse_of_odd(odd: u64) -> u64 {
    (0..5)
        .fold(odd, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(format: &KeyFormat, number: u64) -> String {
        format.display(number)
    }

    #[test]
    fn keys_are_padded_to_their_length() {
        let ordered = KeyFormat::new("user", 32, InsertOrder::Ordered).unwrap();
        assert_eq!(key(&ordered, 0), "user0000000000000000000000000000");
        assert_eq!(key(&ordered, 12_345), "user0000000000000000000000012345");
        let hashed = KeyFormat::new("user", 32, InsertOrder::Hashed).unwrap();
        assert_eq!(key(&hashed, 7), format!("user{:028}", mix64(7)));
        let odd = KeyFormat::new("k", 4, InsertOrder::Ordered).unwrap();
        assert_eq!(key(&odd, 42), "k042");
    }

    #[test]
    fn numbers_are_spelled_as_they_should_be() {
        for n in (0..10_000).map(|n| n * 9_999).chain([9, 99_999_999, 10_000_000, 90_090_909]) {
            assert_eq!(eight_digits(n), *format!("{n:08}").as_bytes());
        }
        let long = (0..10_000).map(mix64).chain([u64::MAX, 0, 1]);
        for n in long.chain((0..20).map(|power| 10_u64.pow(power))) {
            for width in n.to_string().len()..30 {
                let mut out = vec![b'x'; width];
                write_decimal(n, &mut out);
                assert_eq!(out, format!("{n:0width$}").as_bytes());
            }
        }
    }

    #[test]
    fn a_buffer_can_be_used_again() {
        let format = KeyFormat::new("user", 28, InsertOrder::Ordered).unwrap();
        let mut buffer = format.buffer();
        format.write(u64::MAX - 1, &mut buffer);
        assert_eq!(format.write(3, &mut buffer), format!("user{:024}", 3).as_bytes());
    }

    #[test]
    fn every_number_has_its_own_key_at_any_width() {
        for digits in 1..=5 {
            let format = KeyFormat::new("k", 1 + digits, InsertOrder::Hashed).unwrap();
            let mut keys: Vec<String> = (0..format.capacity()).map(|n| key(&format, n)).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len() as u64, format.capacity(), "{digits} digits");
        }
    }

    #[test]
    fn hashed_neighbours_lie_apart() {
        for bytes in [12, 16, 32] {
            let format = KeyFormat::new("user", bytes, InsertOrder::Hashed).unwrap();
            let keys: Vec<String> = (0..10_000).map(|n| key(&format, n)).collect();
            let rising = keys.windows(2).filter(|pair| pair[0] < pair[1]).count();
            assert!((4500..5500).contains(&rising), "{bytes} bytes: {rising}");
        }
    }

    fn formats() -> Vec<KeyFormat> {
        let lengths = [(KeyDigits::Decimal, "user", 32), (KeyDigits::Decimal, "user", 24)];
        let more = [(KeyDigits::Decimal, "k", 9), (KeyDigits::Binary, "", 4)];
        let most = [(KeyDigits::Binary, "k", 4), (KeyDigits::Binary, "user", 16)];
        let orders = [InsertOrder::Hashed, InsertOrder::Ordered];
        let all = lengths.into_iter().chain(more).chain(most);
        all.flat_map(|(digits, prefix, bytes)| {
            orders.map(|order| KeyFormat::with_digits(prefix, bytes, order, digits).unwrap())
        })
        .collect()
    }

    #[test]
    fn a_key_tells_its_number_and_sorts_by_its_position() {
        for format in formats() {
            let mut keys = Vec::new();
            let mut buffer = format.buffer();
            for number in (0..2000).chain((0..2000).map(|n| mix64(n) % format.capacity())) {
                let key = format.write(number, &mut buffer);
                let position = format.parse(key).unwrap();
                assert_eq!(position, format.position(number), "{format:?}");
                assert_eq!(format.number_at(position), number, "{format:?}");
                keys.push((key.to_vec(), position));
            }
            keys.sort_unstable();
            assert!(keys.is_sorted_by_key(|(_, position)| *position), "{format:?}");
        }
    }

    #[test]
    fn other_keys_are_told_from_ours() {
        let format = KeyFormat::new("user", 26, InsertOrder::Hashed).unwrap();
        assert!(format.parse(b"user0000000000000000000012").is_some());
        let foreign: [&[u8]; 6] = [
            b"",
            b"user000000000000000000012",
            b"user00000000000000000000012",
            b"usex0000000000000000000012",
            b"user000000000000000000001x",
            b"user0100000000000000000012",
        ];
        for key in foreign.into_iter().chain([b"user0099999999999999999999".as_slice()]) {
            assert_eq!(format.parse(key), None, "{}", key.escape_ascii());
        }
    }

    #[test]
    fn four_bytes_have_room_for_four_thousand_million_keys() {
        let ordered =
            KeyFormat::with_digits("", 4, InsertOrder::Ordered, KeyDigits::Binary).unwrap();
        assert_eq!(ordered.capacity(), 1 << 32);
        assert_eq!(ordered.write(0x0102_0304, &mut ordered.buffer()), [1, 2, 3, 4]);
        let long = KeyFormat::with_digits("k", 11, InsertOrder::Ordered, KeyDigits::Binary);
        let long = long.unwrap();
        assert_eq!(long.write(258, &mut long.buffer()), b"k\0\0\0\0\0\0\0\0\x01\x02");
    }

    #[test]
    fn a_key_needs_room_for_a_digit() {
        assert_eq!(KeyFormat::new("user", 4, InsertOrder::Hashed), None);
        assert_eq!(KeyFormat::new("user", 5, InsertOrder::Hashed).unwrap().capacity(), 10);
        assert_eq!(KeyFormat::new("", 20, InsertOrder::Hashed).unwrap().capacity(), u64::MAX);
    }
}
