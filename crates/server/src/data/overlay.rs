//! What a transaction has changed and not written yet: its own commands see it, nobody else does.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound;
use std::vec;

use levelhead::Range;

use super::batch::{Batch, Change};

/// A pair of a range, or why there is none.
pub(crate) type Pair = Result<(Box<[u8]>, Vec<u8>), levelhead::Error>;

/// What is to stand under keys of the store; nothing, where they are deleted.
type Changes = BTreeMap<Box<[u8]>, Option<Vec<u8>>>;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    changes: RefCell<Changes>,
    keys: Cell<i64>,
}

impl Overlay {
    /// What stands under a key: what it was changed to, or else what is `beneath`.
    pub(crate) fn get_or<E>(
        &self,
        at: &[u8],
        beneath: impl FnOnce() -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Option<Vec<u8>>, E> {
        match self.changes.borrow().get(at) {
            Some(changed) => Ok(changed.clone()),
            None => beneath(),
        }
    }

    /// Whether something stands under a key, if it was changed.
    pub(crate) fn is_put(&self, at: &[u8]) -> Option<bool> {
        self.changes.borrow().get(at).map(Option::is_some)
    }

    pub(crate) fn add(&self, batch: Batch) {
        self.keys.set(self.keys.get() + batch.keys);
        self.changes.borrow_mut().extend(batch.into_changes());
    }

    /// All of it as one batch.
    pub(crate) fn take(&self) -> Batch {
        Batch::of(self.changes.take(), self.keys.take())
    }

    fn within(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Vec<Change> {
        let changes = self.changes.borrow();
        let from_lower = changes.range::<[u8], _>((lower, Bound::Unbounded));
        let is_within = |key: &[u8]| match upper {
            Bound::Included(upper) => key <= upper,
            Bound::Excluded(upper) => key < upper,
            Bound::Unbounded => true,
        };
        let within = from_lower.take_while(|(key, _)| is_within(key));
        within.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// Pairs of a range in key order: the store's, with what a transaction has changed.
pub(crate) struct Pairs {
    store: Peekable<Range>,
    changes: Peekable<vec::IntoIter<Change>>,
}

impl Pairs {
    pub(crate) fn new(
        store: Range,
        overlay: Option<&Overlay>,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Self {
        let changes = overlay.map(|overlay| overlay.within(lower, upper)).unwrap_or_default();
        Self { store: store.peekable(), changes: changes.into_iter().peekable() }
    }
}

impl Iterator for Pairs {
    type Item = Pair;

    fn next(&mut self) -> Option<Pair> {
        loop {
            let Some((changed, _)) = self.changes.peek() else { return self.store.next() };
            match self.store.peek() {
                Some(Err(_)) => return self.store.next(),
                Some(Ok((key, _))) if key < changed => return self.store.next(),
                Some(Ok((key, _))) if key == changed => drop(self.store.next()),
                _ => {}
            }
            if let Some((key, Some(value))) = self.changes.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}
