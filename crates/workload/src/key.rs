//! Keys: the prefix, then the key number in decimal, zero-padded to the full key length.
//!
//! With hashed order the number is scrambled first, so that keys inserted one after the other lie
//! anywhere. YCSB hashes with FNV-64, under which nobody has shown two numbers to stay different;
//! here the scramble is a permutation, [`mix64`] where 20 digits have room and one of the same
//! kind on fewer bits otherwise, so that keys of different numbers differ for certain.
//!
//! Cost: about 20 ns a key, nothing is allocated.

use runtime::mix64;

/// Digits of `u64::MAX`: no number needs more.
const MAX_DIGITS: usize = 20;

/// Whether keys sort as their numbers do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InsertOrder {
    /// No: neighbours by number lie far apart.
    Hashed,
    /// Yes.
    Ordered,
}

/// How a key number becomes a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFormat {
    prefix: String,
    key_bytes: usize,
    order: InsertOrder,
    digits: usize,
}

/// Where keys are written; holds everything but the digits from the start.
#[derive(Clone, Debug)]
pub struct KeyBuffer {
    bytes: Box<[u8]>,
}

impl KeyFormat {
    /// Keys of `key_bytes` bytes, `prefix` included; `None` if that leaves no room for a digit.
    pub fn new(prefix: &str, key_bytes: usize, order: InsertOrder) -> Option<Self> {
        let room = key_bytes.checked_sub(prefix.len()).filter(|room| *room > 0)?;
        let digits = room.min(MAX_DIGITS);
        Some(Self { prefix: prefix.to_owned(), key_bytes, order, digits })
    }

    /// Length of every key in bytes.
    pub fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    /// Whether keys sort as their numbers do.
    pub fn order(&self) -> InsertOrder {
        self.order
    }

    /// How many keys there can be: numbers below this have keys, each its own.
    pub fn capacity(&self) -> u64 {
        10_u64.checked_pow(self.digits as u32).unwrap_or(u64::MAX)
    }

    /// A buffer for [`Self::write`].
    pub fn buffer(&self) -> KeyBuffer {
        let mut bytes = vec![b'0'; self.key_bytes].into_boxed_slice();
        bytes[..self.prefix.len()].copy_from_slice(self.prefix.as_bytes());
        KeyBuffer { bytes }
    }

    /// Writes the key of `number`, which must be below [`Self::capacity`], and returns it.
    pub fn write<'b>(&self, number: u64, buffer: &'b mut KeyBuffer) -> &'b [u8] {
        assert!(number < self.capacity(), "{number} does not fit in {} digits", self.digits);
        let shown = match self.order {
            InsertOrder::Ordered => number,
            InsertOrder::Hashed if self.digits == MAX_DIGITS => mix64(number),
            InsertOrder::Hashed => scramble_below(number, self.capacity()),
        };
        let start = self.key_bytes - self.digits;
        write_decimal(shown, &mut buffer.bytes[start..]);
        &buffer.bytes
    }

    /// The key of `number` as text for messages.
    pub(crate) fn display(&self, number: u64) -> String {
        let mut buffer = self.buffer();
        self.write(number, &mut buffer).escape_ascii().to_string()
    }
}

/// Fills `out` with the last digits of `n`.
fn write_decimal(mut n: u64, out: &mut [u8]) {
    for pair in out.rchunks_mut(2) {
        let two = (n % 100) as u8;
        n /= 100;
        if let [tens, ones] = pair {
            (*tens, *ones) = (b'0' + two / 10, b'0' + two % 10);
        } else {
            pair[0] = b'0' + two % 10;
        }
    }
}

/// A permutation of the numbers below `bound`: permute all numbers of as many bits, again and
/// again until the result is in range. Fewer than two rounds on average.
fn scramble_below(number: u64, bound: u64) -> u64 {
    let bits = u64::BITS - (bound - 1).leading_zeros();
    let mut scrambled = number;
    loop {
        scrambled = scramble_bits(scrambled, bits);
        if scrambled < bound {
            return scrambled;
        }
    }
}

/// A permutation of the numbers of `bits` bits: multiplying by an odd number modulo a power of two
/// and xoring with the own upper bits can both be undone.
fn scramble_bits(number: u64, bits: u32) -> u64 {
    const ODD: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];
    let mask = u64::MAX >> (u64::BITS - bits);
    let shift = bits.div_ceil(2);
    let step = |x: u64, odd: u64| {
        let x = x.wrapping_mul(odd) & mask;
        x ^ (x >> shift)
    };
    ODD.into_iter().fold(number, step)
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

    #[test]
    fn a_key_needs_room_for_a_digit() {
        assert_eq!(KeyFormat::new("user", 4, InsertOrder::Hashed), None);
        assert_eq!(KeyFormat::new("user", 5, InsertOrder::Hashed).unwrap().capacity(), 10);
        assert_eq!(KeyFormat::new("", 20, InsertOrder::Hashed).unwrap().capacity(), u64::MAX);
    }
}
