//! The writes of one writer in order, and the states of its keys that they explain.

use std::collections::{BTreeMap, BTreeSet};

use runtime::mix64;

/// Keys of a writer.
pub(crate) const KEYS: u64 = 60;

/// Each key that has a value, with the stamp of the write that set it.
pub(crate) type Found = BTreeMap<u32, u64>;

/// An atomic write of some keys: `true` sets a value, `false` deletes the key.
#[derive(Clone)]
struct Write {
    of: Vec<(u32, bool)>,
    /// Whether the write was acknowledged. If not, all of it may exist or none.
    is_sure: bool,
}

/// The writes of one writer since the last comparison with the store.
pub(crate) struct Line {
    writer: u32,
    base: Found,
    /// The stamp of the first write of `writes`.
    first: u64,
    writes: Vec<Write>,
    /// The number of writes that have returned.
    ended: usize,
    /// The number of writes that are durable for certain.
    durable: usize,
}

/// The minimum and maximum number of leading writes that took effect.
pub(crate) type Bounds = (usize, usize);

impl Line {
    pub(crate) fn new(writer: u32) -> Self {
        Self { writer, base: Found::new(), first: 1, writes: Vec::new(), ended: 0, durable: 0 }
    }

    /// Records the start of a write and returns its stamp.
    pub(crate) fn begin(&mut self, of: Vec<(u32, bool)>) -> u64 {
        self.writes.push(Write { of, is_sure: false });
        self.first + self.writes.len() as u64 - 1
    }

    /// Records that the last write has returned.
    pub(crate) fn end(&mut self, is_sure: bool, is_durable: bool) {
        self.writes.last_mut().expect("one was begun").is_sure = is_sure;
        self.ended = self.writes.len();
        if is_sure && is_durable {
            self.durable = self.ended;
        }
    }

    /// Records that all writes that have returned are durable.
    pub(crate) fn synced(&mut self) {
        self.durable = self.ended;
    }

    /// Takes the state found as the new base.
    pub(crate) fn rebase(&mut self, found: Found) {
        self.first += self.writes.len() as u64;
        (self.base, self.ended, self.durable) = (found, 0, 0);
        self.writes.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Returns the bounds after a power cut: from the durable writes to all started ones.
    pub(crate) fn after_cut(&self) -> Bounds {
        (self.durable, self.writes.len())
    }

    /// Returns the bounds while the store is open: from the writes that have returned to all
    /// started ones.
    pub(crate) fn live(&self) -> Bounds {
        (self.ended, self.writes.len())
    }

    /// Checks that `found` is the result of a prefix of the writes, of at least `low` and at most
    /// `high`.
    pub(crate) fn explains(&self, found: &Found, (low, high): Bounds) -> Result<(), String> {
        let mut touches: BTreeMap<u32, Vec<(usize, bool, bool)>> = BTreeMap::new();
        for (n, write) in self.writes.iter().enumerate() {
            let is_its = |(key, _): &(u32, bool)| found.get(key) == Some(&(self.first + n as u64));
            // If a part of a batch exists, all of it must.
            let is_sure = write.is_sure || write.of.iter().any(is_its);
            for (key, gives) in &write.of {
                touches.entry(*key).or_default().push((n, *gives, is_sure));
            }
        }
        let keys: BTreeSet<u32> =
            touches.keys().chain(self.base.keys()).chain(found.keys()).copied().collect();
        let is_possible = |key: u32, after: usize| {
            let has = found.get(&key);
            for (n, gives, is_sure) in touches.get(&key).into_iter().flatten().rev() {
                if *n >= after {
                    continue;
                }
                if has.copied() == gives.then_some(self.first + *n as u64) {
                    return true;
                }
                if *is_sure {
                    return false;
                }
            }
            has == self.base.get(&key)
        };
        let wrong = |after: usize| keys.iter().find(|key| !is_possible(**key, after));
        if (low..=high).rev().any(|after| wrong(after).is_none()) {
            return Ok(());
        }
        let text = |after: usize| {
            let key = *wrong(after).expect("it is wrong");
            let of = touches.get(&key).map_or(&[][..], |of| &of[..]);
            let last: Vec<_> = of.iter().filter(|(n, ..)| *n < after).rev().take(3).collect();
            format!(
                "after {after} key {key} has {:?}, before was {:?}, writes of it (number, gives, sure) {last:?}",
                found.get(&key).map(|stamp| stamp.wrapping_sub(self.first) as i64),
                self.base.get(&key).map(|stamp| stamp.wrapping_sub(self.first) as i64),
            )
        };
        Err(format!(
            "writer {}: no {low} to {high} of {} writes explain it: {}; {}",
            self.writer,
            self.writes.len(),
            text(low),
            text(high)
        ))
    }

    /// Checks the state of one key in the same way.
    pub(crate) fn explains_one(
        &self,
        key: u32,
        found: Option<u64>,
        (low, high): Bounds,
    ) -> Result<(), String> {
        let mut has = false;
        let mut possible = self.base.get(&key).copied() == found;
        for (n, write) in self.writes.iter().enumerate().take(high) {
            if n == low {
                has |= possible;
            }
            let Some((_, gives)) = write.of.iter().find(|(of, _)| *of == key) else { continue };
            let is_it = found == gives.then_some(self.first + n as u64);
            possible = is_it || (possible && !write.is_sure);
            has |= possible && n >= low;
        }
        if has || possible {
            return Ok(());
        }
        Err(format!(
            "writer {}: key {key} has {:?}, and {low} to {high} of {} writes count",
            self.writer,
            found.map(|stamp| stamp.wrapping_sub(self.first) as i64),
            self.writes.len()
        ))
    }
}

pub(crate) fn key(writer: u32, number: u32) -> Vec<u8> {
    let mut key = format!("{writer}-{number:03}").into_bytes();
    if number.is_multiple_of(20) {
        key.resize(240, b'x');
    }
    key
}

/// Returns the writer and the number of a key.
pub(crate) fn number_of(key: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(key.get(..5)?).ok()?;
    let (writer, number) = text.split_once('-')?;
    Some((writer.parse().ok()?, number.parse().ok()?))
}

/// Returns the value that the write with `stamp` sets for a key; it contains the stamp.
pub(crate) fn value(writer: u32, number: u32, stamp: u64) -> Vec<u8> {
    let seed = mix64(stamp ^ u64::from(writer) << 50 ^ u64::from(number) << 40);
    let words = match seed % 64 {
        0 => 4_000,
        1..10 => 100 + (seed >> 8) as usize % 900,
        _ => 1 + (seed >> 8) as usize % 180,
    };
    let mut value = stamp.to_le_bytes().to_vec();
    value.extend((0..words as u64).flat_map(|word| mix64(seed ^ word).to_le_bytes()));
    value
}

/// Returns the stamp of a value, and checks all of its bytes.
pub(crate) fn stamp_of(writer: u32, number: u32, found: &[u8]) -> Result<u64, String> {
    let head = found.first_chunk().copied();
    let stamp = u64::from_le_bytes(head.ok_or("a value is too short")?);
    if value(writer, number, stamp) == found {
        return Ok(stamp);
    }
    Err(format!("key {number} of writer {writer} has a value that nobody gave it ({stamp})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(writes: &[(&[(u32, bool)], bool)]) -> Line {
        let mut line = Line::new(0);
        for (of, is_sure) in writes {
            line.begin(of.to_vec());
            line.end(*is_sure, false);
        }
        line
    }

    #[test]
    fn a_state_is_explained_by_the_first_writes_alone() {
        // The stamps are 1 to 4.
        let line = line(&[
            (&[(1, true)], true),
            (&[(2, true), (3, true)], false),
            (&[(1, false)], true),
            (&[(2, true)], true),
        ]);
        let explained = |found: &[(u32, u64)], bounds| {
            line.explains(&found.iter().copied().collect(), bounds).is_ok()
        };
        assert!(explained(&[], (0, 4)) && !explained(&[], (1, 2)));
        // The delete precedes the last put, and so does the unacknowledged batch.
        assert!(explained(&[(2, 4)], (4, 4)) && explained(&[(2, 4), (3, 2)], (0, 4)));
        assert!(!explained(&[(1, 1), (2, 4)], (0, 4)) && !explained(&[(2, 4)], (0, 3)));
        // All of a batch, or nothing.
        assert!(explained(&[(1, 1), (2, 2), (3, 2)], (0, 4)));
        assert!(!explained(&[(1, 1), (2, 2)], (0, 4)) && !explained(&[(1, 1), (3, 2)], (0, 4)));
        assert!(!explained(&[(7, 1)], (0, 4)), "nobody wrote it");
    }

    #[test]
    fn a_key_has_what_one_of_the_writes_that_count_left() {
        let line = line(&[(&[(1, true)], true), (&[(1, true)], false), (&[(1, false)], true)]);
        let ok = |found, bounds| line.explains_one(1, found, bounds).is_ok();
        assert!(ok(Some(1), (1, 3)) && ok(Some(1), (2, 3)) && ok(Some(2), (2, 3)));
        assert!(!ok(Some(1), (3, 3)) && ok(None, (3, 3)) && !ok(None, (1, 2)) && ok(None, (0, 0)));
    }
}
