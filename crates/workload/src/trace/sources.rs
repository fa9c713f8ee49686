//! How many files, devices or column families a trace is of.

use std::collections::BTreeSet;

/// More than so many are not told apart.
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

    /// How many there are, 256 at most.
    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }
}
