//! Operations on hashes, and on the parts of any collection.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::access::Access;
use super::batch::Batch;
use super::keys::{self, Space};
use super::overlay::Gives;
use super::records::{Entry, Head, Kind};
use crate::fault::Fault;

impl Access<'_> {
    /// Sets fields of a hash. Returns the number of new fields.
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
        let mut found = None;
        self.each_field(key, &[field], |value| {
            found = value;
            Ok(())
        })?;
        Ok(found)
    }

    /// Calls `show` with the value of each field, in order and all under one lock. One value at a
    /// time, because all of them may exceed the memory.
    pub(crate) fn each_field(
        &self,
        key: &[u8],
        fields: &[&[u8]],
        mut show: impl FnMut(Option<Vec<u8>>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let _lock = self.lock_to_read(key);
        let head = self.collection(key, Kind::Hash)?;
        let value = |field: &[u8]| match &head {
            Some(head) if field.len() <= keys::MAX_KEY_BYTES => {
                self.get(&keys::field(head.id, field))
            }
            _ => Ok(None),
        };
        fields.iter().try_for_each(|field| show(value(field)?))
    }

    pub(crate) fn remove_fields(&self, key: &[u8], fields: &[&[u8]]) -> Result<usize, Fault> {
        let _lock = self.lock(key);
        let Some(head) = self.collection(key, Kind::Hash)? else { return Ok(0) };
        let mut batch = Batch::that_makes_room();
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

    /// Reduces the count of a collection by `removed` parts. Removes a collection that becomes
    /// empty.
    pub(super) fn shrink(
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
            Self::remove(&mut batch, key, &Entry::Head(head));
        } else {
            Self::put_head(&mut batch, key, &head);
        }
        self.write(batch)
    }

    /// Returns the number of fields or members of a collection.
    pub(crate) fn length(&self, key: &[u8], kind: Kind) -> Result<u64, Fault> {
        let _lock = self.lock_to_read(key);
        Ok(self.collection(key, kind)?.map_or(0, |head| head.count))
    }

    /// Replaces the value of one field by that which `change` computes from the old value. Returns
    /// the result of `change`.
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

    /// Calls `show` with the parts of a collection in order of their names, starting after `after`,
    /// until `show` returns false. Records are empty if only keys are asked for.
    pub(crate) fn each_part(
        &self,
        key: &[u8],
        (kind, gives): (Kind, Gives),
        after: Option<&[u8]>,
        mut show: impl FnMut(&[u8], &[u8]) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let _lock = self.lock_to_read(key);
        let Some(head) = self.collection(key, kind)? else { return Ok(()) };
        let (first, end) = keys::parts(space_of(kind), head.id);
        let from = after.map_or(first.clone(), |name| [&first[..], name, b"\0"].concat());
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&end[..]));
        for pair in self.range(bounds, gives) {
            self.steps.take(1)?;
            let (at, record) = pair?;
            if !show(keys::behind_id(&at).unwrap_or_default(), &record)? {
                break;
            }
        }
        Ok(())
    }

    /// Calls `show` with the parts at chosen positions in order of their names. `choose` gets the
    /// number of parts and returns the positions in ascending order.
    pub(crate) fn chosen_parts(
        &self,
        key: &[u8],
        (kind, gives): (Kind, Gives),
        choose: impl FnOnce(u64) -> Result<Vec<u64>, Fault>,
        mut show: impl FnMut(&[u8], &[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let _lock = self.lock_to_read(key);
        let Some(head) = self.collection(key, kind)? else { return Ok(()) };
        let mut chosen = choose(head.count)?.into_iter().peekable();
        let (first, end) = keys::parts(space_of(kind), head.id);
        let bounds = (Bound::Included(&first[..]), Bound::Excluded(&end[..]));
        for (place, pair) in (0..).zip(self.range(bounds, gives)) {
            self.steps.take(1)?;
            let (at, record) = pair?;
            while chosen.next_if_eq(&place).is_some() {
                show(keys::behind_id(&at).unwrap_or_default(), &record)?;
            }
            if chosen.peek().is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the space in which the parts of a collection are stored by name.
pub(super) fn space_of(kind: Kind) -> Space {
    match kind {
        Kind::Hash => Space::Field,
        Kind::SortedSet => Space::Member,
        Kind::String => unreachable!("a string has no parts"),
    }
}
