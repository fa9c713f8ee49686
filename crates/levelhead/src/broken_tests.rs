//! A store within which something panics: nobody waits for ever, and the same process can open it again.

use std::future::{Ready, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use crate::options::Options;
use crate::store::Store;

/// Waits in the store for what never happens, with the engine in hand; tells when it has begun, and when that has ended.
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
