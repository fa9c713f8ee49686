//! Child processes of a process with an open store. A child that runs another program inherits
//! nothing of the store. A child made by `fork` cannot use the store, and dropping it there does no
//! harm.

use std::panic::{self, AssertUnwindSafe};
use std::process::Command;

use levelhead::{Error, Options, Store};

use crate::scratch::{Scratch, open, small};

// SAFETY: declared as in POSIX.
unsafe extern "C" {
    fn fork() -> i32;
    safe fn _exit(status: i32) -> !;
    safe fn pause() -> i32;
    safe fn alarm(seconds: u32) -> u32;
    safe fn kill(process: i32, signal: i32) -> i32;
    unsafe fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
}

const SIGKILL: i32 = 9;
/// The system ends a child that hangs after this many seconds.
const PATIENCE_S: u32 = 60;

fn key(n: u32) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

fn put(store: &Store, keys: std::ops::Range<u32>) {
    keys.for_each(|n| store.put(&key(n), &[n as u8; 300]).expect("there is room"));
}

fn check(store: &Store, keys: std::ops::Range<u32>) {
    for n in keys {
        assert_eq!(store.get(&key(n)).expect("it is whole"), Some(vec![n as u8; 300]), "key {n}");
    }
}

#[test]
fn a_program_that_is_run_meanwhile_does_not_keep_a_store() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    let mut child = Command::new("sleep").arg("1000").spawn().expect("it can be run");
    store.close().expect("it can be made durable");
    let again = Store::open(scratch.path(), &small()).map(drop);
    child.kill().and_then(|()| child.wait()).expect("it is ours");
    again.expect("the child has nothing of it");
}

/// Runs in a process of its own, because only one thread of a process continues in its child.
#[test]
fn a_fork_leaves_a_store_alone() {
    let ran = Command::new(std::env::current_exe().expect("it runs"))
        .args(["--ignored", "--exact", "forks::forks", "--nocapture"])
        .output()
        .expect("it can be run");
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}\n{words}", ran.status);
}

/// Forks a child that runs `then`; its exit status is 0 if `then` returns true.
fn forked(then: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child allocates, which the C library supports after `fork`, takes no lock that
    // another thread may have held, and ends by `_exit`.
    match unsafe { fork() } {
        0 => {
            alarm(PATIENCE_S);
            _exit(i32::from(!then()))
        }
        child => child,
    }
}

fn status(child: i32) -> i32 {
    let mut status = -1;
    // SAFETY: `waitpid` writes to `status` only until it returns.
    assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
    status
}

#[test]
#[ignore = "another test runs it, in a process of its own"]
fn forks() {
    for io in [levelhead::Io::Probe, levelhead::Io::Threads] {
        let (scratch, options) = (Scratch::new(), Options { io, ..small() });
        let store = open(scratch.path(), &options);
        put(&store, 0..3_000);
        let (mut range, snapshot) = (store.range(..), store.snapshot().expect("there is room"));
        range.next().expect("there is one").expect("it is whole");
        // The child drops its own copies of these.
        let (mut held, mut store) = (Some((range, snapshot, store.clone())), Some(store));
        let child = forked(|| {
            panic::set_hook(Box::new(|_| ()));
            let used = |use_it: &dyn Fn(&Store) -> bool| {
                let store = store.as_ref().expect("it is there");
                panic::catch_unwind(AssertUnwindSafe(|| use_it(store))).is_ok()
            };
            let is_refused = !used(&|store| store.get(&key(1)).is_ok())
                && !used(&|store| store.put(&key(1), b"theirs").is_ok());
            drop((held.take(), store.take()));
            is_refused
        });
        assert_eq!(status(child), 0, "it is refused, and lets go");
        let store = store.expect("it is this process's own");
        let (range, snapshot, _) = held.expect("they are this process's own");
        assert_eq!(range.count(), 2_999);
        assert_eq!(snapshot.get(&key(1)).expect("it is whole"), Some(vec![1; 300]));
        drop(snapshot);
        check(&store, 0..3_000);
        put(&store, 3_000..6_000);
        let child = forked(|| {
            pause();
            true
        });
        check(&store, 0..6_000);
        assert!(matches!(Store::open(scratch.path(), &options), Err(Error::InUse(_))));
        store.close().expect("it can be made durable");
        // The file descriptors that a child inherits keep the lock until the child ends.
        assert!(matches!(Store::open(scratch.path(), &options), Err(Error::InUse(_))));
        kill(child, SIGKILL);
        status(child);
        check(&open(scratch.path(), &options), 0..6_000);
    }
}
