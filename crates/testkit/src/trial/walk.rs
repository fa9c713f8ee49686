//! The pairs that an iterator may return: the contents of the store when the iterator was created.

use engine::Value;

use super::complaint::is_same;
use super::world::World;

/// The possible contents of a snapshot, in key order.
struct Expected {
    keys: Vec<Possible>,
}

struct Possible {
    name: Vec<u8>,
    /// The possible values; a single value once the key was read.
    values: Vec<Option<Value>>,
}

/// An iteration through a snapshot.
pub struct Walk {
    expected: Expected,
    /// Index of the next key that may come.
    at: usize,
    /// Index of the first key out of bounds.
    end: usize,
}

impl Walk {
    /// Creates the expectation for an iteration up to `bound`, exclusive, through the current
    /// contents of `world`. `before` is the result of [`World::acknowledged_all`] when the iterator
    /// was requested.
    pub fn new(world: &World, before: &[usize], bound: Option<&[u8]>) -> Self {
        let expected = Expected::of(world, before);
        let end = bound.map_or(expected.keys.len(), |bound| expected.first_from(bound));
        Self { expected, at: 0, end }
    }

    /// Continues at the first key from `target` on.
    pub fn seek(&mut self, target: &[u8]) {
        self.at = self.expected.first_from(target);
    }

    /// Checks a returned pair. Returns false: more pairs may follow.
    ///
    /// # Errors
    /// Returns a description of the error in the pair or its position.
    pub fn meet(&mut self, key: &[u8], value: &Value) -> Result<bool, String> {
        let shown = key.escape_ascii();
        let found = self.expected.first_from(key);
        let is_known = self.expected.keys.get(found).is_some_and(|known| *known.name == *key);
        if !is_known || found < self.at || found >= self.end {
            return Err(format!("scan: {shown} is unknown, out of order or out of bounds"));
        }
        self.pass_to(found)?;
        let possible = &mut self.expected.keys[found].values;
        let is_right = possible.iter().any(|one| is_same(one.as_ref(), Some(value)));
        if !is_right {
            return Err(format!("scan: {shown} has {value:?}, expected one of {possible:?}"));
        }
        *possible = vec![Some(value.clone())];
        self.at = found + 1;
        Ok(false)
    }

    /// Checks that the iteration may end here.
    ///
    /// # Errors
    /// Returns a description of a skipped key.
    pub fn meet_the_end(&mut self) -> Result<(), String> {
        self.pass_to(self.end)
    }

    /// Checks that the skipped keys may be absent.
    fn pass_to(&mut self, to: usize) -> Result<(), String> {
        for key in self.expected.keys.get_mut(self.at..to).unwrap_or_default() {
            if !key.values.contains(&None) {
                return Err(format!("scan: {} was left out", key.name.escape_ascii()));
            }
            key.values = vec![None];
        }
        Ok(())
    }
}

impl Expected {
    fn of(world: &World, before: &[usize]) -> Self {
        let possible = |key: usize| Possible {
            name: world.names.of(key),
            values: world.values_since(key, before[key]),
        };
        let mut keys: Vec<Possible> = (0..world.keys()).map(possible).collect();
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        Self { keys }
    }

    /// Returns the index of the first key at or after `name`.
    fn first_from(&self, name: &[u8]) -> usize {
        self.keys.partition_point(|key| *key.name < *name)
    }
}
