//! The number of files, devices or column families in a trace.

use std::collections::BTreeSet;

/// Most distinct names that are counted.
const MOST: usize = 256;

/// Names that occur.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(BTreeSet<Box<str>>);

impl Sources {
    pub(crate) fn note(&mut self, name: &str) {
        if !self.0.contains(name) && self.0.len() < MOST {
            self.0.insert(name.into());
        }
    }

    /// Returns the number of names, at most 256.
    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }
}
