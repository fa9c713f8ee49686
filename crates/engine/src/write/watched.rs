//! Keys that conditional writes have looked up and not written yet. A write of such a key in
//! between changes the result of the look-up. It is noted here, because it may be flushed before
//! the conditional write continues. Cost: nothing while no key is watched, else one map look-up for
//! each write.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// The watched keys.
#[derive(Default)]
pub(crate) struct Watched {
    keys: RefCell<BTreeMap<Box<[u8]>, State>>,
}

#[derive(Default)]
struct State {
    watches: u32,
    /// Whether the newest write since the first watch left a value.
    newest: Option<bool>,
}

impl Watched {
    /// Watches `key` until the result is dropped.
    pub(crate) fn watch<'a>(&'a self, key: &'a [u8]) -> Watch<'a> {
        self.keys.borrow_mut().entry(key.into()).or_default().watches += 1;
        Watch { watched: self, key }
    }

    /// Notes a write of `key`. `exists`: whether the key has a value now.
    pub(crate) fn note(&self, key: &[u8], exists: bool) {
        if let Some(state) = self.keys.borrow_mut().get_mut(key) {
            state.newest = Some(exists);
        }
    }
}

/// A watch of a key: see [`Watched::watch`].
pub(crate) struct Watch<'a> {
    watched: &'a Watched,
    key: &'a [u8],
}

impl Watch<'_> {
    /// Returns whether the key has a value now; `None` if it was not written since the watch began.
    pub(crate) fn newest(&self) -> Option<bool> {
        self.watched.keys.borrow()[self.key].newest
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let keys = &mut *self.watched.keys.borrow_mut();
        let state = keys.get_mut(self.key).expect("it is watched");
        state.watches -= 1;
        if state.watches == 0 {
            keys.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_knows_the_newest_write_since_it_began() {
        let watched = Watched::default();
        watched.note(b"a", true);
        let first = watched.watch(b"a");
        assert_eq!(first.newest(), None);
        watched.note(b"b", true);
        watched.note(b"a", false);
        let second = watched.watch(b"a");
        drop(first);
        assert_eq!(second.newest(), Some(false));
        watched.note(b"a", true);
        assert_eq!(second.newest(), Some(true));
        drop(second);
        assert!(watched.keys.borrow().is_empty());
    }
}
