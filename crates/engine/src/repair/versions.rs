//! Selects the version of each key that counts among all versions found.
//!
//! A run of a store knows everything that was durable before it. Of two versions, the one from the
//! later run is therefore newer, and within a run the one with the higher sequence number. Garbage
//! collection keeps the number of an object and moves only live objects. A sequence number alone is
//! not enough: a power cut removes unacknowledged writes, and the next run reuses their numbers.
//! Such a lost write can be recognised: its number is not below the first number of a later run.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::object::Sequence;
use crate::medium::PageNo;

/// The place of a version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    /// No place: the key was deleted.
    Deleted,
    /// In the log.
    Log,
    /// In this data page.
    Object(PageNo),
    /// Next to the key, in this index page.
    Index(PageNo),
}

/// A version of a key. The greatest version counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Version {
    run: u32,
    sequence: Sequence,
    place: Place,
}

impl Version {
    pub(super) fn new(run: u32, sequence: Sequence, place: Place) -> Self {
        Self { run, sequence, place }
    }
}

/// The state of a key in an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// Not looked up yet.
    #[default]
    Unasked,
    /// The key has a value.
    Live,
    /// The key has no value.
    Dead,
    /// Unknown, because a part of the index that may have the key is damaged.
    Unknown,
}

/// The newest version of each key. Memory for each key: the key, about 40 bytes for its version,
/// and the overhead of a B-tree.
#[derive(Debug, Default)]
pub struct Versions {
    newest: BTreeMap<Box<[u8]>, (Version, Standing)>,
    /// The first known write of each run.
    runs: BTreeMap<u32, Sequence>,
}

impl Versions {
    /// Notes that a run has a write with this number: no earlier run's write from this number on
    /// has survived.
    pub fn note_run(&mut self, run: u32, sequence: Sequence) {
        let first = self.runs.entry(run).or_insert(sequence);
        *first = sequence.min(*first);
    }

    /// Whether a power cut has removed the write.
    fn was_lost(&self, version: &Version) -> bool {
        let mut later = self.runs.range(version.run.saturating_add(1)..);
        later.any(|(run, first)| *run > version.run && version.sequence >= *first)
    }

    /// Whether a version would replace the present one.
    pub(super) fn is_newer(&self, key: &[u8], version: &Version) -> bool {
        !self.was_lost(version) && self.newest.get(key).is_none_or(|(newest, _)| version > newest)
    }

    pub(super) fn offer(&mut self, key: &[u8], version: Version) {
        if self.is_newer(key, &version) {
            self.replace(key, version);
        }
    }

    pub(super) fn replace(&mut self, key: &[u8], version: Version) {
        match self.newest.get_mut(key) {
            Some(newest) => newest.0 = version,
            None => drop(self.newest.insert(key.into(), (version, Standing::default()))),
        }
    }

    /// Notes that an index with all writes up to `flushed` stores the value of `key` in index page
    /// `page`. Ignored if a later write of the key is known.
    pub fn take_from_index(
        &mut self,
        key: &[u8],
        page: PageNo,
        flushed: Sequence,
        standing: Standing,
    ) {
        if self.newest.get(key).is_none_or(|(newest, _)| newest.sequence <= flushed) {
            // The run does not matter: the value is current in the index.
            let version = Version::new(0, flushed, Place::Index(page));
            self.newest.insert(key.into(), (version, standing));
        }
    }

    /// Notes a value that an index page stores next to its key. Its sequence number is unknown;
    /// `run` is the latest run that can have written it. Versions of that run with a known number
    /// are preferred.
    pub fn offer_from_index(&mut self, key: &[u8], run: u32, page: PageNo) {
        self.offer(key, Version::new(run, 0, Place::Index(page)));
    }

    /// Whether the version that counts is stored next to its key in this index page.
    pub fn is_in_index(&self, key: &[u8], page: PageNo) -> bool {
        self.newest.get(key).is_some_and(|(newest, _)| newest.place == Place::Index(page))
    }

    /// Returns the index pages that store a value that counts, and the number of such values with
    /// an unknown sequence number.
    pub fn in_index(&self) -> (BTreeSet<PageNo>, u64) {
        let (mut pages, mut unordered) = (BTreeSet::new(), 0);
        for (newest, _) in self.newest.values() {
            if let Place::Index(page) = newest.place {
                pages.insert(page);
                unordered += u64::from(newest.sequence == 0);
            }
        }
        (pages, unordered)
    }

    /// Whether this is the version that counts.
    pub(super) fn counts(&self, key: &[u8], version: &Version) -> bool {
        self.newest.get(key).is_some_and(|(newest, _)| newest == version)
    }

    /// Whether any version of the key is known.
    pub fn has(&self, key: &[u8]) -> bool {
        self.newest.contains_key(key)
    }

    /// Sets the standing of the keys from `from` up to `to`, or up to the last key, to the result
    /// of `judge`. Skips keys whose standing is already known.
    pub fn judge(
        &mut self,
        from: &[u8],
        to: Option<&[u8]>,
        mut judge: impl FnMut(&[u8]) -> Standing,
    ) {
        let keys = self.newest.range_mut::<[u8], _>(bounds(from, to));
        for (key, (_, standing)) in keys.filter(|(_, (_, it))| *it == Standing::Unasked) {
            *standing = judge(key);
        }
    }

    /// Whether the version that counts is in this page, or was written after `flushed`.
    pub fn is_in(&self, key: &[u8], page: PageNo, flushed: Sequence) -> bool {
        let is_so =
            |newest: &Version| newest.place == Place::Object(page) || newest.sequence > flushed;
        self.newest.get(key).is_some_and(|(newest, _)| is_so(newest))
    }

    /// Removes the keys that an index with all writes up to `flushed` reports as deleted.
    pub fn drop_dead(&mut self, flushed: Sequence) {
        let is_dead = |version: &Version, standing| {
            version.sequence <= flushed && matches!(standing, Standing::Dead)
        };
        self.newest.retain(|_, (version, standing)| !is_dead(version, *standing));
    }

    /// Removes a deleted key, unless a write after `flushed` is known.
    pub fn drop_deleted(&mut self, key: &[u8], flushed: Sequence) {
        if self.newest.get(key).is_some_and(|(newest, _)| newest.sequence <= flushed) {
            self.newest.remove(key);
        }
    }

    /// Returns the number of pairs for whose standing `is_one` is true.
    pub fn count(&self, is_one: impl Fn(Standing) -> bool) -> u64 {
        let there = self.newest.values().filter(|(version, _)| version.place != Place::Deleted);
        there.filter(|(_, standing)| is_one(*standing)).count() as u64
    }
}

fn bounds<'a>(
    from: &'a [u8],
    to: Option<&'a [u8]>,
) -> (std::ops::Bound<&'a [u8]>, std::ops::Bound<&'a [u8]>) {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    (Included(from), to.map_or(Unbounded, Excluded))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u32) -> Place = |page| Place::Object(PageNo(page));

    fn newest(offers: &[(u32, Sequence, Place)], runs: &[(u32, Sequence)]) -> Option<Version> {
        let mut versions = Versions::default();
        for (run, first) in runs {
            versions.note_run(*run, *first);
        }
        for (run, sequence, place) in offers {
            versions.offer(b"key", Version::new(*run, *sequence, *place));
        }
        versions.newest.get(&b"key"[..]).map(|(version, _)| *version)
    }

    #[test]
    fn the_later_run_counts_then_the_higher_number_then_what_lies_among_the_data() {
        let of =
            |offers: &[(u32, Sequence, Place)]| newest(offers, &[]).expect("there is one").place;
        assert_eq!(of(&[(1, 5, AT(1)), (1, 7, AT(2))]), AT(2));
        assert_eq!(of(&[(2, 5, AT(1)), (1, 7, AT(2))]), AT(1), "what a power cut took");
        assert_eq!(of(&[(1, 7, AT(2)), (1, 7, Place::Log)]), AT(2), "it was flushed");
        assert_eq!(of(&[(1, 7, AT(2)), (1, 8, Place::Deleted)]), Place::Deleted);
    }

    #[test]
    fn a_write_whose_number_a_later_run_gave_again_was_lost() {
        let found = newest(&[(1, 50, AT(1)), (1, 120, AT(2))], &[(2, 101)]).expect("there is one");
        assert_eq!(found.place, AT(1));
        assert_eq!(newest(&[(1, 101, AT(2))], &[(2, 101)]), None);
        assert!(newest(&[(2, 120, AT(2))], &[(2, 101)]).is_some(), "it is of that run");
    }

    #[test]
    fn a_value_beside_its_key_counts_unless_a_later_write_does() {
        let mut versions = Versions::default();
        versions.offer(b"log", Version::new(1, 7, Place::Log));
        versions.offer(b"later", Version::new(1, 9, Place::Log));
        for key in [&b"log"[..], b"later", b"index"] {
            versions.take_from_index(key, PageNo(3), 8, Standing::Live);
        }
        assert!(
            versions.is_in_index(b"log", PageNo(3)) && versions.is_in_index(b"index", PageNo(3))
        );
        assert!(!versions.is_in_index(b"later", PageNo(3)));
        versions.offer_from_index(b"index", 4, PageNo(9));
        assert!(versions.is_in_index(b"index", PageNo(9)), "of a later run");
        versions.offer_from_index(b"later", 1, PageNo(9));
        assert!(!versions.is_in_index(b"later", PageNo(9)), "nobody knows when it was written");
        assert_eq!(versions.in_index(), (BTreeSet::from([PageNo(3), PageNo(9)]), 1));
    }

    #[test]
    fn an_index_takes_out_what_it_knows_to_be_deleted_and_nothing_newer() {
        let mut versions = Versions::default();
        for (key, sequence) in [(b"a", 3), (b"b", 9), (b"c", 4)] {
            versions.offer(key, Version::new(1, sequence, AT(0)));
        }
        versions.judge(b"a", Some(b"c"), |_| Standing::Dead);
        versions.drop_dead(5);
        assert!(!versions.has(b"a") && versions.has(b"b") && versions.has(b"c"));
        assert_eq!(versions.count(|standing| standing == Standing::Unasked), 1);
        versions.drop_deleted(b"b", 8);
        versions.drop_deleted(b"c", 8);
        assert!(versions.has(b"b") && !versions.has(b"c"));
    }
}
