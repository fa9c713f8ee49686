//! Which of all versions of a key that are found about counts.
//!
//! A run of a store knows all that was durable before it. So of two versions the one that was written in the later run is the newer one, and
//! within a run the one with the higher sequence number; what is moved keeps its number, and only what is
//! in use is moved. A sequence number alone does not tell: a power cut takes writes that nobody was told of, and the next run gives their numbers
//! again. Such a write that lies about is known by its number: it is not below the first one of a later run.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::object::Sequence;
use crate::medium::PageNo;

/// Where a version is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Place {
    /// Nowhere: the key was deleted.
    Deleted,
    /// In the log.
    Log,
    /// In this page of the data.
    Object(PageNo),
    /// Beside the key, in this page of the index.
    Index(PageNo),
}

/// A version of a key. The order is that in which they count.
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

/// What an index says of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Standing {
    /// Nothing yet.
    #[default]
    Unasked,
    /// It has a value.
    Live,
    /// It has none.
    Dead,
    /// A part of the index is damaged that may have the answer.
    Unknown,
}

/// The newest version of each key. Memory: a key, about 40 bytes for its version, and what a B-tree takes to hold them.
#[derive(Debug, Default)]
pub struct Versions {
    newest: BTreeMap<Box<[u8]>, (Version, Standing)>,
    /// The first write that is known of each run.
    runs: BTreeMap<u32, Sequence>,
}

impl Versions {
    /// A run has a write of this number, so that none before it has.
    pub fn note_run(&mut self, run: u32, sequence: Sequence) {
        let first = self.runs.entry(run).or_insert(sequence);
        *first = sequence.min(*first);
    }

    /// Whether a power cut took the write.
    fn was_lost(&self, version: &Version) -> bool {
        let mut later = self.runs.range(version.run.saturating_add(1)..);
        later.any(|(run, first)| *run > version.run && version.sequence >= *first)
    }

    /// Whether a version would count.
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

    /// Takes the value that an index with all writes up to `flushed` has beside a key in this page, unless a later write is of it.
    pub fn take_from_index(
        &mut self,
        key: &[u8],
        page: PageNo,
        flushed: Sequence,
        standing: Standing,
    ) {
        if self.newest.get(key).is_none_or(|(newest, _)| newest.sequence <= flushed) {
            // An index has it of whatever run.
            let version = Version::new(0, flushed, Place::Index(page));
            self.newest.insert(key.into(), (version, standing));
        }
    }

    /// Takes down a value that a page of an index has beside a key, of which nobody knows when it was written but in which run at the latest: what says more of
    /// itself goes before it.
    pub fn offer_from_index(&mut self, key: &[u8], run: u32, page: PageNo) {
        self.offer(key, Version::new(run, 0, Place::Index(page)));
    }

    /// Whether the version that counts stands beside its key in this page.
    pub fn is_in_index(&self, key: &[u8], page: PageNo) -> bool {
        self.newest.get(key).is_some_and(|(newest, _)| newest.place == Place::Index(page))
    }

    /// The pages of an index that have a value that counts, and how many such values there are of which nobody knows when they were written.
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

    /// Whether anything is known of a key.
    pub fn has(&self, key: &[u8]) -> bool {
        self.newest.contains_key(key)
    }

    /// The keys from `from` up to `to`, or to the last one, whose standing is not known yet, and what it is is up to `judge`.
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

    /// Whether the version that counts lies in this page, or was written after `flushed`.
    pub fn is_in(&self, key: &[u8], page: PageNo, flushed: Sequence) -> bool {
        let is_so =
            |newest: &Version| newest.place == Place::Object(page) || newest.sequence > flushed;
        self.newest.get(key).is_some_and(|(newest, _)| is_so(newest))
    }

    /// Takes out what an index that has all writes up to `flushed` says is deleted.
    pub fn drop_dead(&mut self, flushed: Sequence) {
        let is_dead = |version: &Version, standing| {
            version.sequence <= flushed && matches!(standing, Standing::Dead)
        };
        self.newest.retain(|_, (version, standing)| !is_dead(version, *standing));
    }

    /// Takes a key out that was deleted, if no write after `flushed` is of it.
    pub fn drop_deleted(&mut self, key: &[u8], flushed: Sequence) {
        if self.newest.get(key).is_some_and(|(newest, _)| newest.sequence <= flushed) {
            self.newest.remove(key);
        }
    }

    /// Pairs whose standing `is_one`.
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
