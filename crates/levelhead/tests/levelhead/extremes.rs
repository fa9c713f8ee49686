//! Options with extreme values: they work, or are refused with an error before anything is created.

use levelhead::{Error, Options, Store};

use crate::scratch::{Scratch, open, small};

fn refused(directories: &[impl AsRef<std::path::Path>], options: &Options) -> Error {
    let refused = Store::open_over(directories, options).map(drop);
    let is_there = directories.iter().any(|directory| directory.as_ref().join("data").exists());
    assert!(!is_there, "nothing is made");
    refused.expect_err("no store can be so")
}

#[test]
fn expectations_and_memory_may_be_anything() {
    let scratch = Scratch::new();
    let all = [
        Options { memory_bytes: u64::MAX, ..small() },
        Options { memory_bytes: u64::MAX, value_cache_bytes: u64::MAX, ..small() },
        Options { expected_key_bytes: u32::MAX, ..small() },
        Options { expected_value_bytes: u32::MAX, ..small() },
        Options { expected_key_bytes: 0, expected_value_bytes: 0, ..small() },
    ];
    for (n, options) in (0..).zip(all) {
        let directory = scratch.path().join(format!("{n}"));
        for round in 0..2_u8 {
            let store = open(&directory, &options);
            for key in 0..3_000_u32 {
                store.put(&key.to_be_bytes(), &[round; 600]).expect("there is room");
            }
            store.settle();
            store.close().expect("it can be made durable");
            let store = open(&directory, &small());
            let pairs = store.range(..).map(|pair| pair.expect("it can be read").1);
            assert_eq!(pairs.filter(|value| *value == [round; 600]).count(), 3_000, "{options:?}");
        }
    }
}

#[test]
fn a_store_has_no_more_pages_than_numbers_for_them() {
    let scratch = Scratch::new();
    for (members, capacity_bytes) in [(1, 1 << 44), (1, u64::MAX), (3, 9 << 40)] {
        let error = refused(&scratch.directories(members), &Options { capacity_bytes, ..small() });
        assert!(
            matches!(&error, Error::Invalid(what) if what.contains("capacity_bytes")),
            "{error:?}"
        );
    }
}

#[test]
fn a_directory_is_named_once() {
    let scratch = Scratch::new();
    let directories = scratch.directories(2);
    let named = [&directories[0], &directories[1], &directories[0]];
    let error = refused(&named, &small());
    assert!(matches!(&error, Error::InUse(path) if path == named[2]), "{error:?}");
}
