//! Keys drawn at random.

use std::ops::RangeBounds;

use runtime::Rng;

use crate::error::Error;
use crate::key_bounds::half_open;
use crate::store::Store;

/// The number of draws before giving up.
const DRAWS: u32 = 64;

impl Store {
    /// Returns a random key within `bounds`, drawn with `seed`. All keys are about equally likely,
    /// whatever their bytes. Returns `None` if 64 draws did not hit a key: there are no keys within
    /// `bounds`, or few compared to keys outside, older versions and tombstones. A
    /// [`range`](Self::range) tells the two cases apart.
    ///
    /// Reads no value. Costs some steps over keys in memory, one page read if that page of the
    /// index is not in memory, and more for each further draw.
    ///
    /// ```
    /// # fn main() -> Result<(), levelhead::Error> {
    /// # let directory = std::env::temp_dir().join(format!("levelhead-draw-{}", std::process::id()));
    /// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
    /// store.put(b"apple", b"red")?;
    /// assert_eq!(store.random_key(.., 17)?.as_deref(), Some(&b"apple"[..]));
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&directory).expect("it is ours");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if a page of the index is damaged.
    pub fn random_key<'a>(
        &self,
        bounds: impl RangeBounds<&'a [u8]>,
        seed: u64,
    ) -> Result<Option<Box<[u8]>>, Error> {
        let (from, to) = half_open(&bounds);
        let mut rng = Rng::new(seed);
        for _ in 0..DRAWS {
            // One call per draw, so that other threads can use the store in between.
            let mut its = Rng::new(rng.next_u64());
            let drawn = self.call(|root| {
                let (engine, from, to) = (root.engine.clone(), from.clone(), to.clone());
                async move { Box::pin(engine.draw(&from, to.as_deref(), &mut its)).await }
            });
            let drawn = drawn.map_err(|error| self.error(&error))?;
            if drawn.is_some() {
                return Ok(drawn);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Durability, Options};

    /// Checks that 500 draws hit many different keys, none of them often, and only keys that exist.
    fn check(store: &Store, is_there: &dyn Fn(&[u8]) -> bool) {
        let mut drawn: BTreeMap<Box<[u8]>, u32> = BTreeMap::new();
        for seed in 0..500 {
            let key = store.random_key(.., seed).expect("it is whole").expect("there are many");
            assert!(is_there(&key), "{}", key.escape_ascii());
            *drawn.entry(key).or_default() += 1;
        }
        // Expected by chance: about 409 different keys of 1,202, and one key drawn five times.
        let most = drawn.values().max().expect("some were drawn");
        assert!(drawn.len() > 330 && *most < 10, "{} keys, one {most} times", drawn.len());
    }

    #[test]
    fn keys_are_drawn_evenly_whatever_they_begin_with() {
        let directory =
            std::env::temp_dir().join(format!("levelhead-draws-{}", std::process::id()));
        let options = Options { capacity_bytes: 256 << 20, ..Options::default() };
        let store = Store::open(&directory, &options).expect("it is ours");
        assert!(store.random_key(.., 1).expect("it is whole").is_none());
        let key = |number: u32| format!("a common prefix:{number:07}").into_bytes();
        let put = |key: &[u8]| store.put_with(key, b"value", Durability::None).expect("room");
        (0..1_500).for_each(|number| put(&key(number)));
        put(b"iq");
        put(b"probe");
        for number in 1_200..1_500 {
            store.delete_with(&key(number), Durability::None).expect("there is room");
        }
        let end = key(1_200);
        let is_there = |key: &[u8]| key < &end[..] || key.len() < 6;
        check(&store, &is_there);
        store.compact().expect("there is room");
        check(&store, &is_there);
        // The levels still have older versions of these keys, and deleted keys.
        (0..300).for_each(|number| put(&key(number)));
        for number in 300..600 {
            store.delete_with(&key(number), Durability::None).expect("there is room");
            put(&key(number + 1_000_000));
        }
        let (from, to, new) = (key(300), key(600), key(1_000_000));
        let is_gone = |key: &[u8]| (&from[..]..&to[..]).contains(&key);
        let is_there = |key: &[u8]| is_there(key) && !is_gone(key) || *key >= new[..];
        check(&store, &is_there);
        let bounds = &b"i"[..]..&b"j"[..];
        let few = (0..20).filter_map(|seed| store.random_key(bounds.clone(), seed).expect("whole"));
        assert!(few.into_iter().all(|key| *key == *b"iq"));
        drop(store);
        let _ = std::fs::remove_dir_all(&directory);
    }
}
