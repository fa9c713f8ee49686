//! Operations on sorted sets.

use std::collections::BTreeMap;

use super::access::Access;
use super::batch::Batch;
use super::keys::{self, CollectionId, Space};
use super::overlay::Direction;
use super::records::{self, Head, Kind};
use super::rename::MOST_BYTES;
use super::selection::Selection;
use crate::fault::Fault;

/// The options of ZADD.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the words that ZADD has")]
pub(crate) struct AddOptions {
    /// Changes existing members only.
    pub only_present: bool,
    /// Adds new members only.
    pub only_missing: bool,
    /// Changes a score only to a greater one.
    pub greater: bool,
    /// Changes a score only to a smaller one.
    pub less: bool,
    /// Adds to existing scores.
    pub increments: bool,
}

/// The result of ZADD.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Added {
    pub new: usize,
    pub changed: usize,
    /// The score of the last pair's member afterwards; `None` if the options excluded the pair.
    pub score: Option<f64>,
}

/// Memory in bytes for the removal of a member until it is written, besides twice its name.
const REMOVAL_BYTES: usize = 160;

impl Access<'_> {
    /// Sets the scores of members of a sorted set.
    pub(crate) fn add(
        &self,
        key: &[u8],
        pairs: &[(f64, &[u8])],
        options: AddOptions,
    ) -> Result<Added, Fault> {
        pairs.iter().try_for_each(|(_, member)| keys::check_member(member))?;
        let _lock = self.lock(key);
        let found = self.collection(key, Kind::SortedSet)?;
        if found.is_none() && options.only_present {
            return Ok(Added::default());
        }
        let mut batch = Batch::default();
        let mut head = match found {
            Some(head) => head,
            None => self.begin_collection(&mut batch, key, Kind::SortedSet)?,
        };
        let mut added = Added::default();
        // Scores set by this command; they count when a member occurs again in it.
        let mut given: BTreeMap<&[u8], f64> = BTreeMap::new();
        for (score, member) in pairs {
            let stored = if found.is_some() { self.stored_score(head.id, member)? } else { None };
            let before = given.get(member).copied().or(stored);
            let Some(score) = new_score(before, *score, options)? else {
                added.score = None;
                continue;
            };
            added.score = Some(score);
            added.new += usize::from(before.is_none());
            added.changed += usize::from(
                before.is_some_and(|before| keys::ordered(before) != keys::ordered(score)),
            );
            if let Some(before) = before {
                if keys::ordered(before) == keys::ordered(score) {
                    continue;
                }
                batch.delete(&keys::score(head.id, before, member));
            }
            given.insert(member, score);
            batch.put(&keys::member(head.id, member), score.to_bits().to_le_bytes());
            batch.put(&keys::score(head.id, score, member), []);
        }
        if given.is_empty() {
            // Nothing is written, so no new set begins.
            return Ok(added);
        }
        if added.new > 0 {
            head.count += added.new as u64;
            Self::put_head(&mut batch, key, &head);
        }
        self.write(batch)?;
        Ok(added)
    }

    fn stored_score(&self, id: CollectionId, member: &[u8]) -> Result<Option<f64>, Fault> {
        let record = self.get(&keys::member(id, member))?;
        record.map(|record| records::decode_score(&record)).transpose()
    }

    pub(crate) fn remove_members(&self, key: &[u8], members: &[&[u8]]) -> Result<usize, Fault> {
        let _lock = self.lock(key);
        let Some(head) = self.collection(key, Kind::SortedSet)? else { return Ok(0) };
        let mut sorted: Vec<&[u8]> =
            members.iter().copied().filter(|m| m.len() <= keys::MAX_MEMBER_BYTES).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let (mut batch, mut removed) = (Batch::that_makes_room(), 0);
        for member in sorted {
            if let Some(score) = self.stored_score(head.id, member)? {
                batch.delete(&keys::score(head.id, score, member));
                batch.delete(&keys::member(head.id, member));
                removed += 1;
            }
        }
        self.shrink(key, head, removed, batch)?;
        Ok(removed)
    }

    /// Calls `show` with the score of each member, all under one lock.
    pub(crate) fn each_score(
        &self,
        key: &[u8],
        members: &[&[u8]],
        mut show: impl FnMut(Option<f64>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let _lock = self.lock_to_read(key);
        let head = self.collection(key, Kind::SortedSet)?;
        let score = |member: &[u8]| match &head {
            Some(head) => self.score_of(head, member),
            None => Ok(None),
        };
        members.iter().try_for_each(|member| show(score(member)?))
    }

    fn score_of(&self, head: &Head, member: &[u8]) -> Result<Option<f64>, Fault> {
        if member.len() > keys::MAX_MEMBER_BYTES {
            return Ok(None);
        }
        self.stored_score(head.id, member)
    }

    /// Returns the rank of a member from one end, and its score. Costs a walk over all members
    /// before it.
    pub(crate) fn rank(
        &self,
        key: &[u8],
        member: &[u8],
        direction: Direction,
    ) -> Result<Option<(usize, f64)>, Fault> {
        let _lock = self.lock_to_read(key);
        let Some(head) = self.collection(key, Kind::SortedSet)? else { return Ok(None) };
        let Some(score) = self.score_of(&head, member)? else { return Ok(None) };
        let (first, end) = keys::parts(Space::Score, head.id);
        let own = keys::score(head.id, score, member);
        let (from, to) = match direction {
            Direction::Up => (first, own),
            Direction::Down => (own, end),
        };
        let mut before = 0;
        for name in self.names_between(&from, &to) {
            self.steps.take(1)?;
            name?;
            before += 1;
        }
        // The walk from the member to the end includes the member itself.
        let rank: Option<usize> = match direction {
            Direction::Up => Some(before),
            Direction::Down => before.checked_sub(1),
        };
        let damaged = || Fault::error("damaged: a member has no place by its score");
        Ok(Some((rank.ok_or_else(damaged)?, score)))
    }

    /// Calls `show` with the members of a selection and their scores, in order.
    pub(crate) fn each_selected(
        &self,
        key: &[u8],
        selection: &Selection<'_>,
        show: impl FnMut(&[u8], f64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let _lock = self.lock_to_read(key);
        match self.collection(key, Kind::SortedSet)? {
            Some(head) => self.walk_selection(&head, selection, show),
            None => Ok(()),
        }
    }

    /// Removes the members of a selection after calling `show` for each. Returns their number. If
    /// `show` fails, no member is removed.
    pub(crate) fn take_selected(
        &self,
        key: &[u8],
        selection: &Selection<'_>,
        mut show: impl FnMut(&[u8], f64) -> Result<(), Fault>,
    ) -> Result<usize, Fault> {
        let _lock = self.lock(key);
        let Some(head) = self.collection(key, Kind::SortedSet)? else { return Ok(0) };
        let (mut batch, mut taken, mut bytes) = (Batch::that_makes_room(), 0, 0);
        self.walk_selection(&head, selection, |member, score| {
            bytes += 2 * member.len() + REMOVAL_BYTES;
            if bytes > MOST_BYTES {
                return Err(Fault::error("there are too many members to be removed at a time"));
            }
            batch.delete(&keys::score(head.id, score, member));
            batch.delete(&keys::member(head.id, member));
            taken += 1;
            show(member, score)
        })?;
        self.shrink(key, head, taken, batch)?;
        Ok(taken)
    }
}

/// Returns the new score of a member, or `None` if the options exclude the change.
fn new_score(before: Option<f64>, score: f64, options: AddOptions) -> Result<Option<f64>, Fault> {
    let Some(before) = before else {
        return Ok((!options.only_present).then_some(score));
    };
    if options.only_missing {
        return Ok(None);
    }
    let score = if options.increments { before + score } else { score };
    if score.is_nan() {
        return Err(Fault::error("resulting score is not a number (NaN)"));
    }
    let is_refused = options.greater && score <= before || options.less && score >= before;
    Ok((!is_refused).then_some(score))
}
