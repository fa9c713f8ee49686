//! A panic inside a store: all waiting callers return, and the same process can reopen the store.

use std::future::{Ready, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use engine::{LogSync, Value};

use crate::error::Error;
use crate::options::{Io, Options};
use crate::root::Root;
use crate::store::Store;

/// Starts a thread that waits forever inside the store and holds the engine. The channel receives
/// `false` once the wait has begun, and then whether it ended by a panic.
#[expect(clippy::disallowed_methods, reason = "another thread is what this is about")]
fn waits(store: &Store) -> mpsc::Receiver<bool> {
    let (sender, receiver) = mpsc::channel();
    let (store, begun) = (store.clone(), sender.clone());
    std::thread::spawn(move || {
        let waits = || {
            store.call(|root| {
                let engine = root.engine.clone();
                async move {
                    begun.send(false).expect("the test waits");
                    pending::<()>().await;
                    engine.settle().await;
                }
            });
        };
        let panicked = catch_unwind(AssertUnwindSafe(waits)).is_err();
        drop(store);
        sender.send(panicked).expect("the test waits");
    });
    assert_eq!(receiver.recv(), Ok(false));
    receiver
}

fn panics(call: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

fn try_over(directories: &[PathBuf]) {
    let options = Options { capacity_bytes: 64 << 20, ..Options::default() };
    let open = || Store::open_over(directories, &options);
    let store = open().expect("it can be made");
    store.put(b"apple", b"red").expect("there is room");
    let waiting = waits(&store);
    assert!(panics(|| store.call(|_| -> Ready<()> { panic!("as the test wants") })));
    let ended = waiting.recv_timeout(Duration::from_mins(5));
    assert_eq!(ended, Ok(true), "nobody waits for ever");
    assert!(panics(|| store.settle()) && panics(|| drop(store.get(b"apple"))));
    drop(store);
    let again = open().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.get(b"apple").expect("it is whole").as_deref(), Some(&b"red"[..]));
    again.close().expect("nothing fails");
}

#[test]
fn a_panic_within_is_told_to_all_who_wait_and_the_store_opens_again() {
    let scratch = format!("levelhead-broken-{}", std::process::id());
    let scratch = std::env::temp_dir().join(scratch);
    for count in [1, 3] {
        let directories: Vec<PathBuf> =
            (0..count).map(|n| scratch.join(format!("{count}-{n}"))).collect();
        try_over(&directories);
    }
    std::fs::remove_dir_all(&scratch).expect("it is ours");
}

/// Returns the names of this process's threads that stores have started.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the system says");
    let comm = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    let names = tasks.filter_map(|task| comm(task.ok()?).ok());
    let begun = ["levelhead", "file I/O", "compute", "waits"];
    names.filter(|name| begun.contains(&name.trim())).collect()
}

/// Lets an opening fail after the store is fully open and its tasks run: by a panic, or by an
/// error.
fn try_opening(directories: &[PathBuf], io: Io, panics_within: bool) {
    let options = Options { capacity_bytes: 64 << 20, io, ..Options::default() };
    let open = || Store::open_over(directories, &options);
    let store = open().expect("it can be made");
    store.put(b"apple", b"red").expect("there is room");
    store.close().expect("nothing fails");
    for _ in 0..3 {
        let paths = directories.to_vec();
        let half_way = || {
            Store::with_root(paths.len(), &options, |handle, options| async move {
                let root = Root::open(handle, paths, options).await?;
                root.engine
                    .write(b"pear", Some(Value::from_bytes(b"green")), LogSync::None)
                    .await
                    .expect("there is room");
                assert!(!panics_within, "as the test wants");
                Err(Error::Missing("as the test wants".to_owned()))
            })
        };
        match catch_unwind(AssertUnwindSafe(half_way)) {
            Ok(opened) => assert!(matches!(opened, Err(Error::Missing(_))) && !panics_within),
            Err(_) => assert!(panics_within),
        }
        let again = open().unwrap_or_else(|error| panic!("{io:?}, {panics_within}: {error}"));
        assert_eq!(again.get(b"apple").expect("it is whole").as_deref(), Some(&b"red"[..]));
        again.close().expect("nothing fails");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "other threads take their time to end")]
fn an_opening_that_ends_half_way_leaves_nothing_behind() {
    let scratch = std::env::temp_dir().join(format!("levelhead-half-way-{}", std::process::id()));
    for (count, io) in [(1, Io::Probe), (3, Io::Probe), (1, Io::Threads), (3, Io::Threads)] {
        for panics_within in [false, true] {
            let name = |n| scratch.join(format!("{count}-{io:?}-{panics_within}-{n}"));
            let directories: Vec<PathBuf> = (0..count).map(name).collect();
            try_opening(&directories, io, panics_within);
        }
    }
    // Another test may have such threads until it ends.
    let are_gone = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        threads().is_empty()
    });
    assert!(are_gone, "threads are left: {:?}", threads());
    std::fs::remove_dir_all(&scratch).expect("it is ours");
}
