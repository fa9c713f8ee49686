//! The end of a store, and its contents afterwards: closed, dropped, or with a directory lost.

use std::path::PathBuf;

use levelhead::{Durability, Error, Options, Store};

use crate::scratch::{Scratch, open, small};

fn key(n: u32) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

#[test]
fn a_second_one_is_kept_out_until_the_first_is_closed() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    match Store::open(scratch.path(), &small()) {
        Err(Error::InUse(path)) => assert!(path.starts_with(scratch.path())),
        other => panic!("{:?}", other.map(drop)),
    }
    let handle = store.clone();
    store.close().expect("it can be made durable");
    assert!(Store::open(scratch.path(), &small()).is_err(), "there is another handle");
    drop(handle);
    open(scratch.path(), &small());
}

#[test]
fn what_was_put_is_there_after_a_drop() {
    let scratch = Scratch::new();
    for round in 0..3_u32 {
        let store = open(scratch.path(), &small());
        for n in 0..round * 2_000 {
            let found = store.get(&key(n)).expect("it can be read");
            assert_eq!(found, Some(n.to_be_bytes().to_vec()), "key {n}");
        }
        for n in round * 2_000..(round + 1) * 2_000 {
            let durability = Durability::None;
            store.put_with(&key(n), &n.to_be_bytes(), durability).expect("there is room");
        }
    }
}

#[test]
fn a_store_over_three_directories_bears_the_loss_of_one() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    let store = Store::open_over(&directories, &small()).unwrap_or_else(|error| panic!("{error}"));
    for n in 0..5_000 {
        store.put(&key(n), &[n as u8; 250]).expect("there is room");
    }
    store.close().expect("it can be made durable");
    std::fs::remove_dir_all(&directories[1]).expect("it is ours");
    let store = Store::open_over(&directories, &small()).unwrap_or_else(|error| panic!("{error}"));
    for n in 0..5_000 {
        let found = store.get(&key(n)).expect("it can be rebuilt");
        assert_eq!(found, Some(vec![n as u8; 250]), "key {n}");
    }
    store.put(b"more", b"writes go on").expect("there is room");
    store.close().expect("it can be made durable");
    std::fs::remove_dir_all(&directories[0]).expect("it is ours");
    match Store::open_over(&directories, &small()) {
        Err(Error::Missing(words)) => assert!(words.contains("2 of 3"), "{words}"),
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
fn directories_of_another_number_order_or_store_are_told() {
    let scratch = Scratch::new();
    let directories = scratch.directories(3);
    drop(Store::open_over(&directories, &small()).unwrap_or_else(|error| panic!("{error}")));
    let words = |directories: &[PathBuf]| match Store::open_over(directories, &small()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{directories:?} were taken"),
    };
    assert!(words(&directories[..1]).contains("over 3 directories, not 1"));
    let mut turned = directories.clone();
    turned.rotate_left(1);
    assert!(words(&turned).contains("another order"));
    assert!(words(&directories[..2]).contains("not over 2"));
    let missing = Options { create_if_missing: false, ..small() };
    match Store::open(scratch.path().join("nothing"), &missing) {
        Err(Error::Missing(words)) => assert!(words.contains("there is no store"), "{words}"),
        other => panic!("{:?}", other.map(drop)),
    }
}

#[test]
fn what_somebody_else_has_in_a_directory_is_not_overwritten() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    std::fs::write(&data, b"precious").expect("there is room");
    match Store::open(scratch.path(), &small()) {
        Err(Error::Invalid(words)) => assert!(words.contains("without the LEVELHEAD"), "{words}"),
        other => panic!("{:?}", other.map(drop)),
    }
    assert_eq!(std::fs::read(&data).expect("it is there"), b"precious");
    // Nor is a store overwritten that lost its LEVELHEAD.
    std::fs::remove_file(&data).expect("it is there");
    open(scratch.path(), &small()).put(b"key", b"value").expect("there is room");
    let identity = scratch.path().join("LEVELHEAD");
    let said = std::fs::read(&identity).expect("it is there");
    std::fs::remove_file(&identity).expect("it is there");
    assert!(matches!(Store::open(scratch.path(), &small()), Err(Error::Invalid(_))));
    std::fs::write(&identity, said).expect("there is room");
    let found = open(scratch.path(), &small()).get(b"key").expect("it can be read");
    assert_eq!(found.as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_store_whose_pages_are_gone_is_damaged() {
    let scratch = Scratch::new();
    drop(open(scratch.path(), &small()));
    let data = scratch.path().join("data");
    std::fs::File::create(&data).expect("it is there");
    for _ in 0..2 {
        match Store::open(scratch.path(), &small()) {
            Err(Error::Damaged { path, .. }) => assert_eq!(path, data),
            other => panic!("{:?}", other.map(drop)),
        }
        let _gone = std::fs::remove_file(&data);
    }
}
