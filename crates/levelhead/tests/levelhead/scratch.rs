//! A scratch directory for each test, and options for small stores.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use faultfs::FaultFs;
use levelhead::{Durability, Io, Options, Store};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// The exit code of a process that hung.
pub(crate) const STANDS_STILL: i32 = 93;

/// A directory that is removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("store-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("it can be made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn directories(&self, count: usize) -> Vec<PathBuf> {
        (0..count).map(|n| self.0.join(format!("d{n}"))).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Options of a store of 64 MiB with memtables of 1 MiB; writes wait for durability only if they
/// ask for it.
pub(crate) fn small() -> Options {
    Options {
        capacity_bytes: 64 << 20,
        memory_bytes: 16 << 20,
        value_cache_bytes: 1 << 20,
        memtable_bytes: 1 << 20,
        durability: Durability::Interval,
        expected_key_bytes: 8,
        expected_value_bytes: 200,
        plm_cache_bytes: 4 << 20,
        ..Options::default()
    }
}

/// The same for a file system that this process serves. With `io_uring`, work of the ring may
/// interrupt a thread that holds a lock of the allocator; that work waits for the file system,
/// which waits for the allocator (decision 57).
pub(crate) fn by_threads() -> Options {
    Options { io: Io::Threads, ..small() }
}

pub(crate) fn open(path: &Path, options: &Options) -> Store {
    Store::open(path, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the result of a call and its duration.
#[expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test that measures")]
pub(crate) fn timed<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let begun = std::time::Instant::now();
    let returned = call();
    (returned, begun.elapsed())
}

/// Returns the value of an environment variable with which a user configures the trials.
#[expect(clippy::disallowed_methods, reason = "what a person wants of the trials")]
pub(crate) fn wanted<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Returns the seeds of trials: `0..most`, or the one to be replayed.
pub(crate) fn seeds(most: u64) -> Range<u64> {
    wanted("LEVELHEAD_SEED").map_or(0..most, |only: u64| only..only + 1)
}

/// Runs an ignored test in a separate process, which prints the acknowledged writes, and kills it
/// after `acknowledgements` lines. Returns the last number printed.
pub(crate) fn killed_while(test: &str, acknowledgements: u64) -> Option<u32> {
    let mut heard = 0;
    told_while(test, |_| {
        heard += 1;
        heard != acknowledgements
    })
}

/// Runs an ignored test in a separate process, which prints the acknowledged writes, and kills it
/// when `goes_on` returns false. Returns the last number printed.
pub(crate) fn told_while(test: &str, goes_on: impl FnMut(u32) -> bool) -> Option<u32> {
    told_while_told(test, &[], goes_on)
}

/// The same, with environment variables for the process.
pub(crate) fn told_while_told(
    test: &str,
    variables: &[(&str, &OsStr)],
    mut goes_on: impl FnMut(u32) -> bool,
) -> Option<u32> {
    let mut child = Command::new(std::env::current_exe().expect("it runs"))
        .args(["--ignored", "--exact", test, "--nocapture"])
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it can be run");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut last = None;
    for line in lines.map_while(Result::ok) {
        if let Some(n) = line.strip_prefix("acknowledged ") {
            let n = n.parse::<u32>().expect("a number");
            last = Some(n);
            if !goes_on(n) {
                child.kill().expect("it runs");
            }
        }
    }
    let status = child.wait().expect("it ends");
    assert_ne!(status.code(), Some(STANDS_STILL), "the process stood still");
    last
}

/// Mounts a file system that loses data that was not synced. Returns `None`, with a message, if
/// FUSE is not available.
pub(crate) fn faulty(seed: u64) -> Option<FaultFs> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("faulty-{}-{number}", std::process::id());
    match FaultFs::mount(&Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), seed) {
        Ok(mounted) => Some(mounted),
        Err(error) if wanted::<u8>("LEVELHEAD_NEED_FUSE") == Some(1) => panic!("no FUSE: {error}"),
        Err(error) => {
            eprintln!("left out, because FUSE cannot be mounted here: {error}");
            None
        }
    }
}
