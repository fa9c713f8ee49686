//! What an iterator may meet: the store as it was when the iterator was made.

use pages::Value;

use crate::complaint::is_same;
use crate::world::World;

/// What a snapshot may hold, by key in key order.
struct Expected {
    keys: Vec<Possible>,
}

struct Possible {
    name: Vec<u8>,
    /// The values it may have had; one of them once it was read.
    values: Vec<Option<Value>>,
}

/// A walk through a snapshot.
pub struct Walk {
    expected: Expected,
    /// The next key that may come.
    at: usize,
    /// Keys from here on are out of bounds.
    end: usize,
}

impl Walk {
    /// A walk up to `bound`, exclusive, through what `world` holds now. `before` is what it had
    /// [acknowledged](World::acknowledged_all) when the iterator was asked for.
    pub fn new(world: &World, before: &[usize], bound: Option<&[u8]>) -> Self {
        let expected = Expected::of(world, before);
        let end = bound.map_or(expected.keys.len(), |bound| expected.first_from(bound));
        Self { expected, at: 0, end }
    }

    /// It goes on at the first key from `target` on.
    pub fn seek(&mut self, target: &[u8]) {
        self.at = self.expected.first_from(target);
    }

    /// A pair is met; false, because there may be more.
    ///
    /// # Errors
    /// What is wrong with that.
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

    /// The end is met.
    ///
    /// # Errors
    /// What was left out.
    pub fn meet_the_end(&mut self) -> Result<(), String> {
        self.pass_to(self.end)
    }

    /// What is passed over must be absent.
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

    /// The first key at or after `name`.
    fn first_from(&self, name: &[u8]) -> usize {
        self.keys.partition_point(|key| *key.name < *name)
    }
}
