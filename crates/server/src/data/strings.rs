//! Operations on strings, and on keys of any kind.

use std::collections::BTreeMap;

use super::access::Access;
use super::batch::Batch;
use super::records::{Entry, Expiry};
use crate::fault::Fault;

/// The condition of SET.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum When {
    #[default]
    Always,
    /// Only if the key does not exist.
    Missing,
    /// Only if the key exists.
    Present,
}

/// The expiry after SET.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Lifetime {
    #[default]
    None,
    At(u64),
    Keep,
}

/// The options of SET.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SetOptions {
    pub when: When,
    pub lifetime: Lifetime,
    /// Whether to return the old value.
    pub get: bool,
}

/// The result of SET: whether the value was set, and the old value if requested.
pub(crate) struct Set {
    pub is_set: bool,
    pub before: Option<Vec<u8>>,
}

impl Access<'_> {
    /// Returns the string of a key that is not locked.
    pub(crate) fn string(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(as_string(self.look(key)?)?.map(|(value, _)| value))
    }

    fn string_and_expiry(&self, key: &[u8]) -> Result<Option<(Vec<u8>, Expiry)>, Fault> {
        as_string(self.find(key)?)
    }

    pub(crate) fn set(&self, key: &[u8], value: &[u8], options: SetOptions) -> Result<Set, Fault> {
        let _lock = self.lock(key);
        let mut batch = Batch::default();
        let needs_before =
            options.get || options.when != When::Always || options.lifetime == Lifetime::Keep;
        let before = if needs_before { self.find(key)? } else { None };
        let had = before.as_ref().and_then(Entry::expiry);
        let expiry = match options.lifetime {
            Lifetime::None => None,
            Lifetime::At(at) => Some(at),
            Lifetime::Keep => had,
        };
        let is_set = match options.when {
            When::Always => true,
            When::Missing => before.is_none(),
            When::Present => before.is_some(),
        };
        let before = match before {
            Some(Entry::Head(_)) if options.get => return Err(Fault::wrong_type()),
            Some(Entry::String { value, .. }) if options.get => Some(value),
            _ => None,
        };
        if is_set {
            if self.has_expired(expiry) {
                // The new expiry has passed already: the key is removed as if it had expired.
                batch.makes_room = true;
                if let Some(entry) = self.find_any(key)? {
                    Self::remove(&mut batch, key, &entry);
                }
            } else {
                Self::forget_expiry(&mut batch, key, had);
                self.put_string(&mut batch, key, value, expiry)?;
            }
            self.write(batch)?;
        }
        Ok(Set { is_set, before })
    }

    /// Sets several strings. With `When::Missing`, sets none and returns false if one of the keys
    /// exists.
    pub(crate) fn set_all(&self, pairs: &[(&[u8], &[u8])], when: When) -> Result<bool, Fault> {
        let _locks = self.lock_several(&pairs.iter().map(|(key, _)| *key).collect::<Vec<_>>());
        if when == When::Missing {
            for (key, _) in pairs {
                if self.find(key)?.is_some() {
                    return Ok(false);
                }
            }
        }
        let mut batch = Batch::default();
        // Of duplicate keys the last one counts.
        let pairs: BTreeMap<&[u8], &[u8]> = pairs.iter().copied().collect();
        for (key, value) in pairs {
            self.put_string(&mut batch, key, value, None)?;
        }
        self.write(batch)?;
        Ok(true)
    }

    /// Replaces a string by the one that `change` computes from it, and keeps its expiry. Returns
    /// the result of `change`.
    pub(crate) fn change<T>(
        &self,
        key: &[u8],
        change: impl FnOnce(Option<Vec<u8>>) -> Result<(Vec<u8>, T), Fault>,
    ) -> Result<T, Fault> {
        let _lock = self.lock(key);
        let (value, expiry) =
            self.string_and_expiry(key)?.map_or((None, None), |(v, e)| (Some(v), e));
        let (value, result) = change(value)?;
        let mut batch = Batch::default();
        self.put_string(&mut batch, key, &value, expiry)?;
        self.write(batch)?;
        Ok(result)
    }

    /// Removes a string and returns it.
    pub(crate) fn take(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        let _lock = self.lock(key);
        let Some((value, expiry)) = self.string_and_expiry(key)? else { return Ok(None) };
        let entry = Entry::String { value, expiry };
        let mut batch = Batch::that_makes_room();
        Self::remove(&mut batch, key, &entry);
        self.write(batch)?;
        let Entry::String { value, .. } = entry else { unreachable!("it is one") };
        Ok(Some(value))
    }

    /// Returns a string and changes its expiry to the result of `decide`, if that is not `None`.
    pub(crate) fn get_and_expire(
        &self,
        key: &[u8],
        decide: impl FnOnce() -> Result<Option<Expiry>, Fault>,
    ) -> Result<Option<Vec<u8>>, Fault> {
        let _lock = self.lock(key);
        let Some((value, before)) = self.string_and_expiry(key)? else { return Ok(None) };
        let Some(expiry) = decide()?.filter(|expiry| *expiry != before) else {
            return Ok(Some(value));
        };
        let mut batch = Batch::default();
        if self.has_expired(expiry) {
            batch.makes_room = true;
            Self::remove(&mut batch, key, &Entry::String { value: Vec::new(), expiry: before });
        } else {
            Self::forget_expiry(&mut batch, key, before);
            self.put_string(&mut batch, key, &value, expiry)?;
        }
        self.write(batch)?;
        Ok(Some(value))
    }

    /// Removes keys of any kind. Returns the number of keys that existed.
    pub(crate) fn delete(&self, keys: &[&[u8]]) -> Result<usize, Fault> {
        let _locks = self.lock_several(keys);
        let (mut batch, mut removed) = (Batch::that_makes_room(), 0);
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        for key in sorted {
            if let Some(entry) = self.find_any(key)? {
                removed += usize::from(!self.has_expired(entry.expiry()));
                Self::remove(&mut batch, key, &entry);
            }
        }
        self.write(batch)?;
        Ok(removed)
    }

    /// Sets or removes the expiry of a key as `decide` returns, given the current one. Returns
    /// false if the key does not exist or `decide` returns `None`.
    pub(crate) fn expire(
        &self,
        key: &[u8],
        decide: impl FnOnce(Expiry) -> Option<Expiry>,
    ) -> Result<bool, Fault> {
        let _lock = self.lock(key);
        let Some(mut entry) = self.find(key)? else { return Ok(false) };
        let Some(expiry) = decide(entry.expiry()) else { return Ok(false) };
        let mut batch = Batch::default();
        if self.has_expired(expiry) {
            batch.makes_room = true;
            Self::remove(&mut batch, key, &entry);
        } else {
            Self::forget_expiry(&mut batch, key, entry.expiry());
            match &mut entry {
                Entry::String { value, .. } => self.put_string(&mut batch, key, value, expiry)?,
                Entry::Head(head) => {
                    head.expiry = expiry;
                    Self::put_head(&mut batch, key, head);
                }
            }
        }
        self.write(batch)?;
        Ok(true)
    }
}

fn as_string(entry: Option<Entry>) -> Result<Option<(Vec<u8>, Expiry)>, Fault> {
    match entry {
        Some(Entry::String { value, expiry }) => Ok(Some((value, expiry))),
        Some(Entry::Head(_)) => Err(Fault::wrong_type()),
        None => Ok(None),
    }
}
