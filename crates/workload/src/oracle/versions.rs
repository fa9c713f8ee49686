//! The versions of every key: their acknowledgements, and the possible current ones.
//!
//! A version number is twice the ordinal of the write among the writes of its key, plus one for a
//! Put; deletes are even, and version 0 means never written. The versions of a key increase in the
//! order of issue.
//!
//! Invariant: a key's slot holds its newest issued version. If the slot is not marked contested,
//! that version is acknowledged and is the only possible current one. Otherwise the contest of the
//! key lists all possible current versions, ascending.

use std::borrow::Cow;
use std::collections::BTreeMap;

use runtime::Carrier;

use super::journal::Journal;
use super::ticket::{Current, ReadTicket};
use crate::value::{KEY_LIMIT, Stamp, VERSION_BITS};

const CONTESTED: u32 = 1 << 31;
const VERSION_MASK: u32 = (1 << VERSION_BITS) - 1;

/// A write that is not acknowledged.
const UNDER_WAY: u64 = u64::MAX;

/// A write that may be the current one.
#[derive(Clone, Copy, Default, Debug)]
struct Candidate {
    version: u32,
    /// Times of its begin and acknowledgement, by [`Versions::clock`].
    issued: u64,
    acknowledged: u64,
}

pub(super) struct Versions {
    slots: Vec<u32>,
    contests: BTreeMap<u64, Vec<Candidate>>,
    /// Empty lists of ended contests, for reuse.
    spare: Vec<Vec<Candidate>>,
    /// Counts begins and acknowledgements of writes: orders events within one instant of virtual
    /// time.
    clock: u64,
    deletes: u64,
    /// Earlier states of changed keys, for open snapshots.
    pub(super) journal: Journal,
}

/// The result of a Get, by version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    Nothing,
    Write(u32),
}

/// Returns the ordinal of a write among those of its key, from 1; 0 means no write.
pub(super) fn ordinal(version: u32) -> u32 {
    version >> 1
}

pub(super) fn is_put(version: u32) -> bool {
    version & 1 == 1
}

impl Seen {
    pub(super) fn is(self, version: u32) -> bool {
        match self {
            Self::Nothing => !is_put(version),
            Self::Write(write) => write == version,
        }
    }
}

impl Versions {
    /// Creates the state of an empty store, with room for `keys` keys.
    pub(super) fn new(keys: u64) -> Self {
        Self {
            slots: vec![0; keys as usize],
            contests: BTreeMap::new(),
            spare: Vec::new(),
            clock: 0,
            deletes: 0,
            journal: Journal::default(),
        }
    }

    /// Saves or restores the state of all keys. Requires: no open snapshot.
    pub(super) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.list(&mut self.slots, Carrier::u32)?;
        let mut contests: Vec<(u64, Vec<Candidate>)> =
            std::mem::take(&mut self.contests).into_iter().collect();
        by.list(&mut contests, |by, (key, contest)| {
            by.u64(key)?;
            by.list(contest, |by, write| {
                let Candidate { version, issued, acknowledged } = write;
                by.u32(version)?;
                by.u64(issued)?;
                by.u64(acknowledged)
            })
        })?;
        self.contests = contests.into_iter().collect();
        by.u64(&mut self.clock)?;
        by.u64(&mut self.deletes)?;
        self.slots_tell_contests().then_some(())
    }

    /// Returns whether exactly the keys with a contest are marked contested.
    fn slots_tell_contests(&self) -> bool {
        let marked = self.slots.iter().filter(|slot| *slot & CONTESTED != 0).count();
        marked == self.contests.len()
            && self
                .contests
                .iter()
                .all(|(key, contest)| self.slot(*key) & CONTESTED != 0 && !contest.is_empty())
    }

    pub(super) fn issue_put(&mut self, key: u64) -> u32 {
        self.issue(key, 1)
    }

    pub(super) fn issue_delete(&mut self, key: u64) -> u32 {
        self.deletes += 1;
        self.issue(key, 0)
    }

    fn issue(&mut self, key: u64, put: u32) -> u32 {
        assert!(key < KEY_LIMIT, "key number {key} is beyond what values can tell");
        self.tick(key);
        let index = key as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, 0);
        }
        let newest = self.slots[index] & VERSION_MASK;
        let version = (ordinal(newest) + 1) << 1 | put;
        assert!(version <= VERSION_MASK, "key number {key} was written too often to tell writes");
        let spare = &mut self.spare;
        let contest = self.contests.entry(key).or_insert_with(|| {
            let mut contest = spare.pop().unwrap_or_default();
            contest.push(Candidate { version: newest, issued: 0, acknowledged: 0 });
            contest
        });
        contest.push(Candidate { version, issued: self.clock, acknowledged: UNDER_WAY });
        self.slots[index] = version | CONTESTED;
        version
    }

    /// Notes that `key` is about to change.
    fn tick(&mut self, key: u64) {
        self.clock += 1;
        if self.journal.is_kept() {
            let before = self.begin_read(key);
            self.journal.note(self.clock, before);
        }
    }

    pub(super) fn acknowledge(&mut self, key: u64, version: u32) {
        self.tick(key);
        let contest = self.contests.get_mut(&key).expect("a write under way is contested");
        let write = contest.iter_mut().find(|write| write.version == version);
        let write = write.expect("a write under way may be current");
        assert!(write.acknowledged == UNDER_WAY, "a write is acknowledged once");
        write.acknowledged = self.clock;
        // This write replaces all writes acknowledged before it began.
        let began = write.issued;
        contest.retain(|other| other.acknowledged > began);
        self.end_if_settled(key);
    }

    /// Ends the contest of `key` if only the newest version is left and it is acknowledged.
    fn end_if_settled(&mut self, key: u64) {
        let newest = self.newest(key);
        let [only] = self.contests[&key].as_slice() else {
            return;
        };
        if only.version != newest || only.acknowledged == UNDER_WAY {
            return;
        }
        if let Some(mut contest) = self.contests.remove(&key) {
            contest.clear();
            self.spare.push(contest);
        }
        self.slots[key as usize] = newest;
    }

    /// Returns whether only the newest version can be current.
    pub(super) fn is_settled(&self, key: u64) -> bool {
        self.slot(key) & CONTESTED == 0
    }

    /// Returns whether a key has no version numbers left.
    pub(super) fn is_used_up(&self, key: u64) -> bool {
        self.newest(key) >= VERSION_MASK - 1
    }

    fn slot(&self, key: u64) -> u32 {
        self.slots.get(key as usize).copied().unwrap_or(0)
    }

    /// Returns the newest issued version of `key`; 0 if none was issued.
    pub(super) fn newest(&self, key: u64) -> u32 {
        self.slot(key) & VERSION_MASK
    }

    /// Returns whether `stamp` is that of an issued Put, as far as the newest version shows.
    pub(super) fn was_put(&self, stamp: Stamp) -> bool {
        is_put(stamp.version)
            && ordinal(stamp.version) > 0
            && stamp.version <= self.newest(stamp.key)
    }

    /// Returns the time by the clock of write events.
    pub(super) fn now(&self) -> u64 {
        self.clock
    }

    pub(super) fn begin_read(&self, key: u64) -> ReadTicket {
        let slot = self.slot(key);
        let current = if slot & CONTESTED == 0 {
            Current::Newest
        } else {
            let contest = &self.contests[&key];
            let is_quiet = contest.iter().all(|write| write.acknowledged != UNDER_WAY);
            Current::OneOf { versions: candidates(contest), is_quiet }
        };
        ReadTicket { key, newest: slot & VERSION_MASK, deletes: self.deletes, current }
    }

    /// Returns whether a Get that ends now may have seen the state; if so, notes the order that
    /// this settles.
    pub(super) fn finish_read(&mut self, ticket: &ReadTicket, seen: Seen) -> bool {
        if !self.allows(ticket, seen) {
            return false;
        }
        if self.is_quiet(ticket)
            && let Some(contest) = self.contests.get_mut(&ticket.key)
        {
            // No write was in flight during the Get: every later Get must see the same version.
            contest.retain(|write| seen.is(write.version));
            self.end_if_settled(ticket.key);
        }
        true
    }

    /// Returns whether a Get that ends now may have seen the state.
    pub(super) fn allows(&self, ticket: &ReadTicket, seen: Seen) -> bool {
        self.current(ticket).iter().any(|version| seen.is(*version))
            || self.was_issued_since(ticket, seen)
    }

    /// Returns whether the key was unsettled but had no write in flight at any time of the Get.
    fn is_quiet(&self, ticket: &ReadTicket) -> bool {
        let was_quiet = matches!(ticket.current, Current::OneOf { is_quiet: true, .. });
        was_quiet && self.newest(ticket.key) == ticket.newest
    }

    /// Returns the possible current versions at the begin of the Get. If no write was in flight,
    /// other Gets may have reduced them since.
    pub(super) fn current<'a>(&self, ticket: &'a ReadTicket) -> Cow<'a, [u32]> {
        match (&ticket.current, self.contests.get(&ticket.key)) {
            (Current::OneOf { .. }, Some(contest)) if self.is_quiet(ticket) => {
                Cow::Owned(candidates(contest))
            }
            (Current::OneOf { versions, .. }, _) if !self.is_quiet(ticket) => {
                Cow::Borrowed(versions)
            }
            _ => Cow::Borrowed(std::slice::from_ref(&ticket.newest)),
        }
    }

    /// Returns whether `seen` may be a write that began during the Get.
    ///
    /// Only the newest of such writes is certainly remembered. If a key had several during one Get,
    /// and any delete was issued in that time, one of them is assumed to be that delete.
    fn was_issued_since(&self, ticket: &ReadTicket, seen: Seen) -> bool {
        let newest = self.newest(ticket.key);
        match seen {
            Seen::Write(version) => ticket.newest < version && version <= newest,
            Seen::Nothing if newest == ticket.newest => false,
            Seen::Nothing if !is_put(newest) => true,
            Seen::Nothing => {
                ordinal(newest) - ordinal(ticket.newest) > 1 && self.deletes > ticket.deletes
            }
        }
    }

    /// Returns the Puts that a Get that ends now may have seen, as far as they are remembered.
    pub(super) fn allowed_puts(&self, ticket: &ReadTicket) -> impl Iterator<Item = u32> {
        let current = self.current(ticket).into_owned().into_iter();
        let since = ordinal(ticket.newest) + 1..=ordinal(self.newest(ticket.key));
        current.filter(|version| is_put(*version)).chain(since.map(|ordinal| ordinal << 1 | 1))
    }
}

fn candidates(contest: &[Candidate]) -> Vec<u32> {
    contest.iter().map(|write| write.version).collect()
}

#[cfg(test)]
impl Versions {
    /// Returns the number of keys with a contest.
    pub(super) fn contested(&self) -> usize {
        self.contests.len()
    }
}
