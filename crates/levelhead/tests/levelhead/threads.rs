//! Several threads on one store.

use levelhead::Durability;

use crate::scratch::{Scratch, open, small};

#[test]
fn threads_share_a_store() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let store = store.clone();
            scope.spawn(move || {
                for n in 0..1_500_u32 {
                    let key = format!("{thread}-{n:06}");
                    let value = [thread as u8; 300];
                    let durability =
                        if n % 100 == 0 { Durability::Group } else { Durability::None };
                    store.put_with(key.as_bytes(), &value, durability).expect("there is room");
                    let back = format!("{thread}-{:06}", n / 2);
                    let found = store.get(back.as_bytes()).expect("it is there");
                    assert_eq!(found.as_deref(), Some(&value[..]), "{back}");
                }
            });
        }
        let store = store.clone();
        scope.spawn(move || {
            for _ in 0..20 {
                let mut last = Vec::new();
                for pair in store.range(..) {
                    let (key, value) = pair.expect("it can be read");
                    assert!(*key > last[..], "keys rise");
                    assert_eq!(value.len(), 300);
                    last = key.into();
                }
            }
        });
    });
    assert_eq!(store.range(..).count(), 6_000);
    store.settle();
    let statistics = store.statistics();
    assert_eq!((statistics.writes, statistics.gets_missing), (6_000, 0));
    assert!(statistics.flushes > 0, "{statistics:?}");
}
