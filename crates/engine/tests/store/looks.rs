//! Gets that first look up the key in memory.

use engine::{CacheStats, Look, Options, Value, WriteOptions};
use runtime::{Nanos, Runtime};

use crate::memory::{Cells, MemoryMedium, SHAPE};
use crate::setup::create;

/// The medium of these tests does not support reads outside of the runtime, so the lookup returns
/// `Look::Ask`.
#[test]
fn a_value_that_a_look_leaves_to_a_get_is_missed_once() {
    let rt = Runtime::new(1);
    let medium = MemoryMedium::new(&rt.handle(), &Cells::new(SHAPE), None);
    let (memtable_bytes, value_cache_bytes) = (16 << 10, 64 << 10);
    let options = Options { memtable_bytes, value_cache_bytes, ..Options::pink() };
    let engine = create(&rt, &medium, &options);
    let (key, value) = (b"apple", Value::from_bytes(b"red"));
    let caches = |hits, misses| {
        let expected =
            CacheStats { value_hits: hits, value_misses: misses, ..CacheStats::default() };
        assert_eq!(engine.stats().caches, expected);
    };
    let (putting, put) = (engine.clone(), value.clone());
    rt.block_on(async move {
        putting.put(key, put, WriteOptions::default(), Nanos::ZERO).await.expect("there is room");
        putting.flush().await;
    });
    assert!(matches!(engine.look(key), Ok(Look::Ask)));
    caches(0, 0);
    let getting = engine.clone();
    let found = rt.block_on(async move { getting.get(key, Nanos::ZERO).await });
    assert_eq!(found.expect("it can be read").value, Some(value));
    caches(0, 1);
    assert!(matches!(engine.look(key), Ok(Look::Known(Some(_)))));
    caches(1, 1);
}
