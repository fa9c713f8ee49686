//! Other objects in the place of a store's files: a pipe, a socket, a directory, a device, a link
//! that leads nowhere. Each gives an error with an explanation; nothing waits for it, and nothing
//! is written through it.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use levelhead::{Error, Store, repair};

use crate::scratch::{Scratch, open, small};

/// Longer than any call here takes; opening a pipe would block forever.
const PATIENCE: Duration = Duration::from_mins(1);
const PAIRS: u32 = 500;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stranger {
    Pipe,
    Socket,
    Directory,
    /// An endless device.
    Device,
    /// A link to itself.
    Loop,
}

const ALL: [Stranger; 5] =
    [Stranger::Pipe, Stranger::Socket, Stranger::Directory, Stranger::Device, Stranger::Loop];

impl Stranger {
    /// Replaces the file at `path`.
    fn take_place(self, path: &Path) {
        let _gone = fs::remove_file(path);
        match self {
            Self::Pipe => {
                let made = Command::new("mkfifo").arg(path).status().expect("it can be run");
                assert!(made.success());
            }
            Self::Socket => drop(UnixListener::bind(path).expect("there is room")),
            Self::Directory => fs::create_dir_all(path.join("full")).expect("there is room"),
            Self::Device => symlink("/dev/zero", path).expect("there is room"),
            Self::Loop => symlink(path, path).expect("there is room"),
        }
    }
}

fn key(n: u32) -> Vec<u8> {
    format!("key {n:04}").into_bytes()
}

fn put_all(store: Store) {
    (0..PAIRS).for_each(|n| store.put(&key(n), &[n as u8; 200]).expect("there is room"));
    store.close().expect("it can be made durable");
}

fn check_all(store: &Store) {
    for n in 0..PAIRS {
        assert_eq!(store.get(&key(n)).expect("it is whole"), Some(vec![n as u8; 200]));
    }
}

/// Returns the result of a call; panics if it hangs.
fn returned<T: Send + 'static>(what: &str, call: impl FnOnce() -> T + Send + 'static) -> T {
    let (told, returned) = mpsc::channel();
    let caller = thread::Builder::new().spawn(move || told.send(call()));
    let returned = returned.recv_timeout(PATIENCE);
    let returned = returned.unwrap_or_else(|why| panic!("{what}: {why}"));
    let _sent = caller.expect("there is a thread").join().expect("it has returned");
    returned
}

/// Checks that opening returns an error that names `path`.
fn check_is_told(what: &str, directories: Vec<PathBuf>, path: &Path) {
    let error = returned(what, move || Store::open_over(&directories, &small()).map(drop));
    let error = error.expect_err(what);
    assert!(matches!(error, Error::Damaged { .. } | Error::System { .. }), "{what}: {error:?}");
    let words = error.to_string();
    assert!(words.contains(&path.display().to_string()), "{what}: {words}");
}

#[test]
fn strangers_in_the_place_of_a_store_s_files_are_told() {
    for (name, stranger) in ["LEVELHEAD", "data"].into_iter().flat_map(|n| ALL.map(|s| (n, s))) {
        for members in [1, 3] {
            let what = format!("{name} is a {stranger:?}, {members} directories");
            let scratch = Scratch::new();
            let directories = scratch.directories(members);
            put_all(Store::open_over(&directories, &small()).unwrap_or_else(|e| panic!("{e}")));
            let path = directories[members - 1].join(name);
            stranger.take_place(&path);
            check_is_told(&what, directories.clone(), &path);
            let into = scratch.path().join("saved");
            let (from, to) = (directories.clone(), into.clone());
            let saved = returned(&what, move || repair(&from, &to, &small(), |_| ()));
            // The pages also have the contents of `LEVELHEAD`, and the other directories have the
            // pages of one.
            let is_left = name == "LEVELHEAD" || members > 1;
            assert_eq!(saved.is_ok(), is_left, "{what}: {saved:?}");
            if is_left {
                check_all(&open(&into, &small()));
            }
        }
    }
}

#[test]
fn strangers_where_a_store_is_to_be_made_are_left_alone() {
    for stranger in ALL {
        let what = format!("data is a {stranger:?}");
        let scratch = Scratch::new();
        stranger.take_place(&scratch.path().join("data"));
        let path = scratch.path().to_owned();
        let error = returned(&what, move || Store::open(&path, &small()).map(drop));
        let words = error.expect_err(&what).to_string();
        assert!(words.contains("data") && words.contains(" is there "), "{what}: {words}");
        assert!(scratch.path().join("data").symlink_metadata().is_ok(), "{what}");
    }
}

/// `LEVELHEAD` is first written under a temporary name.
#[test]
fn strangers_beside_levelhead_are_not_written_through() {
    let scratch = Scratch::new();
    let part = |n: usize| {
        let directory = scratch.path().join(n.to_string());
        fs::create_dir(&directory).expect("there is room");
        (directory.clone(), directory.join(".LEVELHEAD.part"))
    };
    for (n, stranger) in ALL.into_iter().enumerate() {
        let (directory, path) = part(n);
        stranger.take_place(&path);
        let opened = {
            let directory = directory.clone();
            returned(&format!("{stranger:?}"), move || Store::open(directory, &small()).map(drop))
        };
        match opened {
            Ok(()) => put_all(open(&directory, &small())),
            Err(error) => {
                assert_eq!(stranger, Stranger::Directory, "{error}");
                assert!(error.to_string().contains(".LEVELHEAD.part"), "{error}");
            }
        }
    }
    let (directory, path) = part(ALL.len());
    let precious = scratch.path().join("precious");
    fs::write(&precious, b"precious").expect("there is room");
    symlink(&precious, path).expect("there is room");
    put_all(open(&directory, &small()));
    assert_eq!(fs::read(precious).expect("it is there"), b"precious");
}
