//! What commands do to hashes and sorted sets.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::batch::Batch;
use super::database::{Access, Entry};
use super::keys::{self, CollectionId, Space};
use super::records::{self, Head, Kind};
use crate::fault::Fault;

/// Where a part of a sorted set begins or ends, by score.
pub(crate) type ScoreBound = Bound<f64>;

/// Whether ZADD adds, and what.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the words that ZADD has")]
pub(crate) struct AddOptions {
    /// Only members that are there.
    pub only_present: bool,
    /// Only members that are not.
    pub only_missing: bool,
    /// Only to a greater score.
    pub greater: bool,
    /// Only to a lesser one.
    pub less: bool,
    /// Scores are added to those that are there.
    pub increments: bool,
}

/// What ZADD has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Added {
    pub new: usize,
    pub changed: usize,
    /// The score of the last member, if it was to be added.
    pub score: Option<f64>,
}

/// A member and its score.
pub(crate) type Scored = (Vec<u8>, f64);

impl Access<'_> {
    /// Gives fields of a hash values; how many are new.
    pub(crate) fn set_fields(&self, key: &[u8], pairs: &[(&[u8], &[u8])]) -> Result<usize, Fault> {
        pairs.iter().try_for_each(|(field, _)| keys::check_field(field))?;
        let _lock = self.lock(key);
        let mut batch = Batch::default();
        let found = self.collection(key, Kind::Hash)?;
        let mut head = match found {
            Some(head) => head,
            None => self.begin_collection(&mut batch, key, Kind::Hash)?,
        };
        let mut new = 0;
        for (field, value) in pairs.iter().copied().collect::<BTreeMap<_, _>>() {
            let at = keys::field(head.id, field);
            new += usize::from(found.is_none() || !self.is_there(&at)?);
            batch.put(&at, value);
        }
        if new > 0 {
            head.count += new as u64;
            Self::put_head(&mut batch, key, &head);
        }
        self.write(batch)?;
        Ok(new)
    }

    pub(crate) fn field(&self, key: &[u8], field: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.fields(key, &[field])?.pop().flatten())
    }

    /// The values of fields, as they are together.
    pub(crate) fn fields(
        &self,
        key: &[u8],
        fields: &[&[u8]],
    ) -> Result<Vec<Option<Vec<u8>>>, Fault> {
        let _lock = self.lock_to_read(key);
        let Some(head) = self.collection(key, Kind::Hash)? else {
            return Ok(vec![None; fields.len()]);
        };
        let value = |field: &&[u8]| {
            if field.len() > keys::MAX_KEY_BYTES {
                return Ok(None);
            }
            self.get(&keys::field(head.id, field))
        };
        fields.iter().map(value).collect()
    }

    /// Shows all fields of a hash and their values, in the order of fields.
    pub(crate) fn each_field(
        &self,
        key: &[u8],
        mut show: impl FnMut(&[u8], &[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let _lock = self.lock_to_read(key);
        let Some(head) = self.collection(key, Kind::Hash)? else { return Ok(()) };
        let (from, to) = keys::parts(Space::Field, head.id);
        for pair in self.between(&from, &to) {
            let (at, value) = pair?;
            show(keys::behind_id(&at).unwrap_or_default(), &value)?;
        }
        Ok(())
    }

    pub(crate) fn remove_fields(&self, key: &[u8], fields: &[&[u8]]) -> Result<usize, Fault> {
        let _lock = self.lock(key);
        let Some(head) = self.collection(key, Kind::Hash)? else { return Ok(0) };
        let mut batch = Batch::default();
        let mut sorted: Vec<&[u8]> =
            fields.iter().copied().filter(|field| field.len() <= keys::MAX_KEY_BYTES).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut removed = 0;
        for field in sorted {
            let at = keys::field(head.id, field);
            if self.is_there(&at)? {
                batch.delete(&at);
                removed += 1;
            }
        }
        self.shrink(key, head, removed, batch)?;
        Ok(removed)
    }

    /// Takes `removed` parts off a collection; one without any is none.
    fn shrink(
        &self,
        key: &[u8],
        mut head: Head,
        removed: usize,
        mut batch: Batch,
    ) -> Result<(), Fault> {
        if removed == 0 {
            return Ok(());
        }
        head.count = head.count.saturating_sub(removed as u64);
        if head.count == 0 {
            self.remove(&mut batch, key, &Entry::Head(head));
        } else {
            Self::put_head(&mut batch, key, &head);
        }
        self.write(batch)
    }

    /// Fields or members of a collection.
    pub(crate) fn length(&self, key: &[u8], kind: Kind) -> Result<u64, Fault> {
        Ok(self.collection(key, kind)?.map_or(0, |head| head.count))
    }

    /// Changes one field, given what it holds; gives what `change` gives.
    pub(crate) fn change_field<T>(
        &self,
        key: &[u8],
        field: &[u8],
        change: impl FnOnce(Option<Vec<u8>>) -> Result<(Vec<u8>, T), Fault>,
    ) -> Result<T, Fault> {
        keys::check_field(field)?;
        let _lock = self.lock(key);
        let mut batch = Batch::default();
        let found = self.collection(key, Kind::Hash)?;
        let before = match found {
            Some(head) => self.get(&keys::field(head.id, field))?,
            None => None,
        };
        let is_new = before.is_none();
        let (value, result) = change(before)?;
        let mut head = match found {
            Some(head) => head,
            None => self.begin_collection(&mut batch, key, Kind::Hash)?,
        };
        if is_new {
            head.count += 1;
            Self::put_head(&mut batch, key, &head);
        }
        batch.put(&keys::field(head.id, field), value);
        self.write(batch)?;
        Ok(result)
    }

    /// Gives members of a sorted set scores.
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
        // What this command gives a member counts for it when it comes again.
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
            return Ok(added); // also of a set that would have begun
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

    pub(crate) fn score(&self, key: &[u8], member: &[u8]) -> Result<Option<f64>, Fault> {
        let _lock = self.lock_to_read(key);
        match self.collection(key, Kind::SortedSet)? {
            Some(head) if member.len() <= keys::MAX_MEMBER_BYTES => {
                self.stored_score(head.id, member)
            }
            _ => Ok(None),
        }
    }

    pub(crate) fn remove_members(&self, key: &[u8], members: &[&[u8]]) -> Result<usize, Fault> {
        let _lock = self.lock(key);
        let Some(head) = self.collection(key, Kind::SortedSet)? else { return Ok(0) };
        let mut sorted: Vec<&[u8]> =
            members.iter().copied().filter(|m| m.len() <= keys::MAX_MEMBER_BYTES).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let (mut batch, mut removed) = (Batch::default(), 0);
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

    /// Shows members with scores within bounds, in order, until `show` says that it is enough.
    pub(crate) fn each_scored(
        &self,
        key: &[u8],
        min: ScoreBound,
        max: ScoreBound,
        mut show: impl FnMut(&[u8], f64) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let _lock = self.lock_to_read(key);
        let Some(head) = self.collection(key, Kind::SortedSet)? else { return Ok(()) };
        let (first, end) = keys::parts(Space::Score, head.id);
        let from = match min {
            Bound::Included(score) => keys::score(head.id, score, b""),
            // Behind all members of that score.
            Bound::Excluded(score) => match keys::ordered(score).checked_add(1) {
                Some(next) => [&first[..], &next.to_be_bytes()].concat(),
                None => return Ok(()),
            },
            Bound::Unbounded => first,
        };
        if from >= end {
            return Ok(());
        }
        for pair in self.between(&from, &end) {
            let (at, _) = pair?;
            let split = keys::split_score(&at);
            let (score, member) = split.ok_or_else(|| Fault::error("damaged: a member"))?;
            let is_within = match max {
                Bound::Included(max) => score <= max,
                Bound::Excluded(max) => score < max,
                Bound::Unbounded => true,
            };
            if !is_within || !show(member, score)? {
                break;
            }
        }
        Ok(())
    }
}

/// The score that a member gets; `None` if it stays as it is.
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
