//! Numbers for the keys of a trace, in the order of first use.
//!
//! A key is identified by 128 bits of a hash: among a billion keys the probability of a collision
//! is 10^-21. Cost: 24 bytes a slot, between one and two thirds of them used. The table also has
//! the length of each key at its first use; later, different lengths in the trace are ignored.

use runtime::mix64;

use super::KvRecord;

#[derive(Clone, Copy, Default)]
struct Slot {
    hash: [u64; 2],
    /// The number of a key, plus one, above [`LENGTH_BITS`] bits of its length; 0 if empty.
    packed: u64,
}

/// Bits of the length of a key.
const LENGTH_BITS: u32 = 16;

/// A key with its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Met {
    /// Number, from 0.
    pub(crate) number: u64,
    /// Length at its first use, in bytes.
    pub(crate) bytes: u32,
    /// Whether the key was used before.
    pub(crate) is_known: bool,
}

impl Slot {
    fn met(self, is_known: bool) -> Met {
        let (number, bytes) = (self.packed >> LENGTH_BITS, self.packed & ((1 << LENGTH_BITS) - 1));
        Met { number: number - 1, bytes: bytes as u32, is_known }
    }
}

/// The keys used so far.
#[derive(Default)]
pub(crate) struct KeyNumbers {
    slots: Vec<Slot>,
    used: u64,
}

impl KeyNumbers {
    /// Returns the key of an operation; gives a new key the next number.
    pub(crate) fn meet(&mut self, record: &KvRecord) -> Met {
        if self.used as usize * 3 >= self.slots.len() * 2 {
            self.grow();
        }
        let hash = hash(&record.key, record.family);
        let place = self.place(hash);
        let slot = &mut self.slots[place];
        if slot.packed > 0 {
            return slot.met(true);
        }
        self.used += 1;
        *slot = Slot { hash, packed: self.used << LENGTH_BITS | u64::from(record.key_bytes) };
        slot.met(false)
    }

    /// Returns the number of keys.
    pub(crate) fn count(&self) -> u64 {
        self.used
    }

    fn place(&self, hash: [u64; 2]) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = hash[0] as usize & mask;
        while self.slots[place].packed > 0 && self.slots[place].hash != hash {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(1024);
        let slots = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in slots.into_iter().filter(|slot| slot.packed > 0) {
            let place = self.place(slot.hash);
            self.slots[place] = slot;
        }
    }
}

/// Returns two hash chains over the words of a key, each with a different mixing.
fn hash(key: &[u8], family: u32) -> [u64; 2] {
    let mut chains = [mix64(u64::from(family)), mix64(key.len() as u64 ^ 0x9E37_79B9_7F4A_7C15)];
    for chunk in key.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        chains = [mix64(chains[0] ^ word), mix64(chains[1].rotate_left(17).wrapping_add(word))];
    }
    [chains[0], mix64(chains[1] ^ chains[0])]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use runtime::{Nanos, Rng};

    use super::super::KvOp;
    use super::*;

    fn record(key: &[u8], family: u32) -> KvRecord {
        let (at, op) = (Nanos::ZERO, KvOp::Get);
        KvRecord { at, op, key: key.into(), family, key_bytes: 1, value_bytes: 0 }
    }

    #[test]
    fn each_key_has_its_own_number_from_the_first_time_on() {
        let (mut rng, mut map, mut numbers) = (Rng::new(1), BTreeMap::new(), KeyNumbers::default());
        for _ in 0..30_000 {
            let (key, family) = (rng.below(5_000).to_string(), rng.below(2) as u32);
            let next = map.len() as u64;
            let is_known = map.contains_key(&(key.clone(), family));
            let number = *map.entry((key.clone(), family)).or_insert(next);
            let met = numbers.meet(&record(key.as_bytes(), family));
            assert_eq!(met, Met { number, bytes: 1, is_known });
        }
        assert_eq!(numbers.count(), map.len() as u64);
        let zeros = [&b"a"[..], b"a\0", b"a\0\0", b"", b"\0"];
        let mut numbers = KeyNumbers::default();
        let all: Vec<u64> = zeros.iter().map(|key| numbers.meet(&record(key, 0)).number).collect();
        assert_eq!(all, [0, 1, 2, 3, 4]);
    }
}
