//! A host's store on files: acknowledged writes survive each kind of end.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;

use block::BlockDevice;
use engine::{ExtentId, LogSync, Medium, PageNo, StoreId, Stream, Value};
use files::{FileDevice, FileError, FileOptions};
use runtime::{
    Cores, Handle, IoChoice, IoClass, Nanos, PageImage, RealOptions, Rng, Runtime, Shared,
};
use stacks::design::Design;
use stacks::host::{HostProfile, HostStore, Media, StoreOptions};
use volume::{BlockRange, Layout, RangeOptions, Reuse, Volume};

use crate::scratch::{Scratch, runtime, ways};

const PAIRS: u64 = 10_000;
const FILE_BYTES: u64 = 192 << 20;

fn key(n: u64) -> [u8; 16] {
    let mut key = *b"key 000000000000";
    key[4..].copy_from_slice(format!("{n:012}").as_bytes());
    key
}

/// Returns the value of `key(n)` after its write number `version`.
fn value(n: u64, version: u64) -> Value {
    let mut rng = Rng::derive(n * 1000 + version, "value");
    let length = rng.below(800) as usize;
    let bytes: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
    Value::from_bytes(&bytes)
}

fn host() -> HostProfile {
    HostProfile::load("desktop-12-core").expect("it is built in")
}

fn options(design: &str) -> StoreOptions {
    let design = Design::load(design).expect("it is built in");
    let design = design.with(|options| options.memtable_bytes = 1 << 20);
    StoreOptions {
        index: design.index(),
        expected_key_bytes: 16,
        expected_value_bytes: 400,
        planted: engine::Planted::default(),
        id: StoreId(7),
    }
}

fn cores(handle: &Handle) -> Rc<Cores> {
    Rc::new(Cores::new(handle.clone(), 12, Nanos::from_micros(100)))
}

/// Returns the first sets of a device as media.
fn ranges(device: &FileDevice) -> Vec<BlockRange<FileDevice>> {
    let range = |set| RangeOptions {
        set,
        first_block: 0,
        page_blocks: 1,
        pages_per_extent: 256,
        extents: (FILE_BYTES >> 20) as u32,
        grows_to: 0,
        parallelism: 16,
        run_pages: 16,
        reuse: Reuse::First,
        forces_journal: true,
    };
    let sets = device.sets().into_iter().map(|shape| range(shape.id));
    sets.map(|options| BlockRange::new(device.clone(), options).expect("it fits")).collect()
}

fn plain(device: &FileDevice) -> Media<BlockRange<FileDevice>> {
    Media { data: ranges(device).swap_remove(0), journal: None }
}

async fn device(
    handle: &Handle,
    paths: &[PathBuf],
    is_new: bool,
    options: FileOptions,
) -> FileDevice {
    if is_new {
        let device = FileDevice::create(handle, paths, FILE_BYTES, options).await;
        return device.unwrap_or_else(|error| panic!("{error}"));
    }
    // The kernel may still hold the lock of a killed process that had operations in flight.
    for _ in 0..1_000 {
        match FileDevice::open(handle, paths, options).await {
            Err(FileError::InUse(_)) => handle.sleep(Nanos::from_millis(10)).await,
            device => return device.unwrap_or_else(|error| panic!("{error}")),
        }
    }
    panic!("the lock of a process that is gone is held for ten seconds")
}

/// Puts all pairs from many concurrent clients; each put is durable when it is acknowledged.
async fn put_all<M: Medium>(handle: &Handle, store: &HostStore<M>, version: u64) {
    let clients: Vec<_> = (0..32)
        .map(|client| {
            let store = store.clone();
            handle.spawn("client", async move {
                for n in (client..PAIRS).step_by(32) {
                    let key = key(n);
                    let put = store.put(&key, value(n, version), Some(LogSync::Group));
                    Box::pin(put).await.expect("there is room");
                }
            })
        })
        .collect();
    for client in clients {
        client.await;
    }
}

async fn check_all<M: Medium>(store: &HostStore<M>, version: u64) {
    for n in 0..PAIRS {
        let found = Box::pin(store.get(&key(n))).await.expect("it can be read");
        assert_eq!(found, Some(value(n, version)), "key {n}");
    }
    assert_eq!(store.get(b"never written").await.expect("it can be read"), None);
}

#[test]
fn what_was_put_is_there_after_the_store_was_opened_again() {
    for (n, (io, files)) in ways().into_iter().enumerate() {
        let scratch = Scratch::new();
        let paths = vec![scratch.file("drive")];
        let name = if n % 2 == 0 { "pink-log" } else { "levelhead" };
        for version in 0..3 {
            let (rt, paths) = (runtime(io), paths.clone());
            let handle = rt.handle();
            rt.block_on(async move {
                let device = device(&handle, &paths, version == 0, files).await;
                let (host, cores, media) = (host(), cores(&handle), plain(&device));
                let store = if version == 0 {
                    HostStore::create(&handle, &host, &cores, media, options(name))
                } else {
                    let opening = HostStore::open(&handle, &host, &cores, media, options(name));
                    Box::pin(opening).await
                };
                let store = store.unwrap_or_else(|error| panic!("{error}"));
                if version > 0 {
                    Box::pin(check_all(&store, version - 1)).await;
                }
                put_all(&handle, &store, version).await;
                Box::pin(check_all(&store, version)).await;
                assert!(device.troubles().is_empty());
            });
            // No handle is closed: background work ends at an arbitrary point.
        }
    }
}

#[test]
fn a_store_on_three_files_bears_the_loss_of_one() {
    let scratch = Scratch::new();
    let paths = files::files_in(&scratch.path, 3);
    with_parity(&paths, true);
    std::fs::remove_file(&paths[1]).expect("it is ours");
    with_parity(&paths, false);
}

/// A first write into an extent makes the file system update its metadata before the write is
/// durable, so the log reuses extents of its own.
#[test]
fn what_held_a_journal_is_left_to_the_journal() {
    let scratch = Scratch::new();
    let paths = files::files_in(&scratch.path, 1);
    let rt = runtime(IoChoice::Probe);
    let handle = rt.handle();
    rt.block_on(async move {
        let device = device(&handle, &paths, true, FileOptions::default()).await;
        let range = ranges(&device).swap_remove(0);
        let suits = |extent, stream| range.wear(ExtentId(extent), stream);
        for (extent, stream) in [(3, Stream::Log), (4, Stream::Objects), (5, Stream::Manifest)] {
            range.open(ExtentId(extent), 1, stream).expect("it is free");
        }
        for journal in [Stream::Log, Stream::Manifest] {
            assert!(suits(3, journal) < suits(4, journal), "{journal:?}");
            assert!(suits(5, journal) < suits(6, journal), "{journal:?}");
        }
        for data in [Stream::Objects, Stream::Index, Stream::Tables] {
            assert!(suits(4, data) < suits(3, data), "{data:?}");
            assert_eq!(suits(4, data), suits(6, data), "{data:?}");
        }
    });
}

/// A journal run that is written and made durable by one command is readable like any other.
#[test]
fn a_run_that_is_durable_at_once_is_there() {
    for (io, files) in ways() {
        let scratch = Scratch::new();
        let paths = files::files_in(&scratch.path, 1);
        let rt = runtime(io);
        let handle = rt.handle();
        rt.block_on(async move {
            let device = device(&handle, &paths, true, files).await;
            let range = ranges(&device).swap_remove(0);
            range.open(ExtentId(0), 1, Stream::Log).expect("it is free");
            let pages: Vec<_> = (1..=3).map(|n| PageImage::new(&[n; 100])).collect();
            let append =
                range.append_durably(Stream::Log, PageNo(0), pages.clone(), IoClass::Journal);
            append.await.expect("it can be written");
            for (n, page) in (0..).zip(&pages) {
                let read = range.read(PageNo(n), IoClass::Journal).await.expect("it is there");
                assert_eq!(
                    read.bytes()[..100],
                    *page.bytes(),
                    "a page comes back up to its last byte, and some zeros"
                );
            }
        });
    }
}

/// Puts all pairs into a new store with parity, or opens the existing store; then gets them.
fn with_parity(paths: &[PathBuf], is_new: bool) {
    let bears = FileOptions { bears_missing: true, ..FileOptions::default() };
    let (rt, paths) = (runtime(IoChoice::Probe), paths.to_vec());
    let handle = rt.handle();
    rt.block_on(async move {
        let device = device(&handle, &paths, is_new, bears).await;
        let (host, cores) = (host(), cores(&handle));
        let setup = volume::Setup {
            handle: handle.clone(),
            cores: Rc::clone(&cores),
            members: ranges(&device),
            options: volume::Options::new(Layout::Parity { chunk_pages: 16 }, 5),
            planted: volume::Planted::default(),
        };
        let data = if is_new {
            Volume::create(setup).expect("members are alike")
        } else {
            Box::pin(Volume::recover(setup)).await.expect("two members are there")
        };
        let media = Media { data: data.clone(), journal: None };
        let options = options("pink-log");
        let store = if is_new {
            HostStore::create(&handle, &host, &cores, media, options)
        } else {
            Box::pin(HostStore::open(&handle, &host, &cores, media, options)).await
        };
        data.begin_filling();
        let store = store.unwrap_or_else(|error| panic!("{error}"));
        if is_new {
            put_all(&handle, &store, 0).await;
        }
        Box::pin(check_all(&store, 0)).await;
    });
}

#[expect(clippy::disallowed_methods, reason = "other threads are what this is about")]
fn on_another_thread<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::spawn(run)
}

type Plain = HostStore<BlockRange<FileDevice>>;

/// Creates a store in a runtime that threads share.
fn shared_store(path: PathBuf) -> Shared<Plain> {
    let shared = Shared::new(RealOptions::default(), move |handle| {
        let handle = handle.clone();
        async move {
            let device = device(&handle, &[path], true, FileOptions::default()).await;
            let (host, cores, media) = (host(), cores(&handle), plain(&device));
            let store = HostStore::create(&handle, &host, &cores, media, options("pink-log"));
            store.unwrap_or_else(|error| panic!("{error}"))
        }
    });
    shared.expect("any way to do I/O will do")
}

fn get(shared: &Shared<Plain>, n: u64) -> Option<Vec<u8>> {
    shared.call(move |store| {
        let store = store.clone();
        async move {
            let found = Box::pin(store.get(&key(n))).await.expect("it can be read");
            found.map(|value| value.to_bytes().to_vec())
        }
    })
}

fn put(shared: &Shared<Plain>, n: u64, version: u64) {
    shared.call(move |store| {
        let store = store.clone();
        async move {
            let key = key(n);
            let put = store.put(&key, value(n, version), Some(LogSync::Interval));
            Box::pin(put).await.expect("there is room");
        }
    });
}

#[test]
fn threads_that_share_a_store_get_and_put_by_themselves() {
    let scratch = Scratch::new();
    let shared = Arc::new(shared_store(scratch.file("drive")));
    let driven = Arc::clone(&shared);
    let driver = on_another_thread(move || driven.drive());
    let workers: Vec<_> = (0..3_u64)
        .map(|worker| {
            let shared = Arc::clone(&shared);
            on_another_thread(move || {
                let (mut rng, mut versions) = (Rng::new(worker), vec![None; 2_000]);
                for version in 0..6_000 {
                    let at = rng.below(2_000);
                    let n = at * 3 + worker;
                    if rng.chance(0.6) {
                        put(&shared, n, version);
                        versions[at as usize] = Some(version);
                    } else {
                        let expected = versions[at as usize].map(|version| value(n, version));
                        let expected = expected.map(|value| value.to_bytes().to_vec());
                        assert!(get(&shared, n) == expected, "key {n} of worker {worker}");
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().expect("it does not panic");
    }
    shared.stop();
    driver.join().expect("it does not panic");
}

/// Returns the path of the store of the process that is killed.
fn kill_path(parent: u32) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("killed-{parent}"))
}

/// Puts until the process is killed, and prints each acknowledged put.
#[test]
#[ignore = "another test runs it, in a process of its own"]
fn puts_until_it_is_killed() {
    let path = kill_path(std::os::unix::process::parent_id());
    if !path.with_extension("wanted").exists() {
        return;
    }
    let rt: Runtime = runtime(IoChoice::Probe);
    let handle = rt.handle();
    rt.block_on(async move {
        let paths = vec![path];
        let device = device(&handle, &paths, true, FileOptions::default()).await;
        let media = plain(&device);
        let store =
            HostStore::create(&handle, &host(), &cores(&handle), media, options("pink-log"));
        let store = store.unwrap_or_else(|error| panic!("{error}"));
        for n in 0..1_000_000 {
            let n = n % PAIRS;
            let key = key(n);
            let put = store.put(&key, value(n, 0), Some(LogSync::Group));
            Box::pin(put).await.expect("there is room");
            println!("acknowledged {n}");
        }
    });
}

#[test]
fn what_was_acknowledged_survives_a_process_that_is_killed() {
    let path = kill_path(std::process::id());
    std::fs::write(path.with_extension("wanted"), b"").expect("it is ours");
    let mut child = Command::new(std::env::current_exe().expect("it runs"))
        .args(["--ignored", "--exact", "--nocapture", "store::puts_until_it_is_killed"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it can be run once more");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut acknowledged = 0;
    for line in output.lines().map_while(Result::ok) {
        if let Some((_, n)) = line.split_once("acknowledged ") {
            acknowledged = n.parse::<u64>().expect("it says a number") + 1;
            if acknowledged == 3_000 {
                child.kill().expect("it is ours");
            }
        }
    }
    child.wait().expect("it has ended");
    std::fs::remove_file(path.with_extension("wanted")).expect("it is ours");
    assert!((3_000..PAIRS).contains(&acknowledged), "{acknowledged} were acknowledged");
    let rt = runtime(IoChoice::Probe);
    let (handle, paths) = (rt.handle(), vec![path.clone()]);
    rt.block_on(async move {
        let device = device(&handle, &paths, false, FileOptions::default()).await;
        let media = plain(&device);
        let (host, cores) = (host(), cores(&handle));
        let opened = HostStore::open(&handle, &host, &cores, media, options("pink-log"));
        let store = Box::pin(opened).await.unwrap_or_else(|error| panic!("{error}"));
        for n in 0..acknowledged {
            let found = Box::pin(store.get(&key(n))).await.expect("it can be read");
            assert_eq!(found, Some(value(n, 0)), "key {n} of {acknowledged}");
        }
    });
    drop(rt);
    std::fs::remove_file(path).expect("it is ours");
}
