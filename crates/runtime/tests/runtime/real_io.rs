//! File I/O in real time, with both engines.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use runtime::{
    Handle, IoChoice, IoEngine, PageImage, RealOptions, Rng, Room, Runtime, Shared, join_all,
};

const BLOCK: usize = 4096;

fn both(test: impl Fn(&Runtime, &str)) {
    for (io, name) in [(IoChoice::Probe, "ring"), (IoChoice::Threads, "threads")] {
        let rt = Runtime::real(RealOptions { io, ..RealOptions::default() });
        test(&rt.expect("no ring is asked for"), name);
    }
}

/// A file that is removed on drop.
struct Scratch {
    path: PathBuf,
    file: Arc<File>,
}

impl Scratch {
    fn new(name: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let path = directory.join(format!("runtime-{name}-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        Self { file: Arc::new(file.expect("the target folder takes files")), path }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn filled(byte: u8, bytes: usize) -> PageImage {
    PageImage::aligned(&vec![byte; bytes], BLOCK)
}

async fn read(handle: &Handle, file: &Arc<File>, offset: u64, bytes: usize) -> (usize, Vec<u8>) {
    let (read, buffer) = handle.read_at(file, offset, PageImage::zeroed(bytes, BLOCK)).await;
    (read.expect("the file can be read"), buffer.bytes().to_vec())
}

#[test]
fn what_is_written_is_read_and_room_is_given_and_taken() {
    both(|rt, name| {
        let scratch = Scratch::new(&format!("basic-{name}"));
        let (handle, file) = (rt.handle(), Arc::clone(&scratch.file));
        rt.block_on(async move {
            let end = 64 * BLOCK as u64;
            handle.change_room(&file, 0, end, Room::Give).await.expect("there is room");
            assert_eq!(file.metadata().expect("it is there").len(), end);
            for (at, is_durable) in [(0, false), (5, true)] {
                let bytes = filled(7, 3 * BLOCK);
                let at = at * BLOCK as u64;
                let (written, bytes) = handle.write_at(&file, at, bytes, is_durable).await;
                assert_eq!((written.ok(), bytes.bytes()[9]), (Some(3 * BLOCK), 7));
            }
            handle.sync_data(&file).await.expect("it can be synced");
            handle.sync_all(&file).await.expect("it can be synced");
            let (count, bytes) = read(&handle, &file, 5 * BLOCK as u64, BLOCK).await;
            assert_eq!((count, &bytes[..]), (BLOCK, &[7; BLOCK][..]));
            handle.change_room(&file, 0, BLOCK as u64, Room::Punch).await.expect("it has holes");
            let (count, bytes) = read(&handle, &file, 0, 2 * BLOCK).await;
            assert_eq!((count, bytes[BLOCK - 1], bytes[BLOCK]), (2 * BLOCK, 0, 7));
            let (count, _) = read(&handle, &file, end - 100, BLOCK).await;
            assert_eq!(count, 100, "a file ends where it ends");
            let (count, _) = read(&handle, &file, end + 100, BLOCK).await;
            assert_eq!(count, 0);
        });
    });
}

#[test]
fn errors_of_the_system_come_back() {
    both(|rt, name| {
        let scratch = Scratch::new(&format!("errors-{name}"));
        let read_only = Arc::new(File::open(&scratch.path).expect("it is there"));
        let handle = rt.handle();
        let (written, bytes) = rt.block_on(handle.write_at(&read_only, 0, filled(1, 10), false));
        assert_eq!(written.expect_err("it is open for reading").raw_os_error(), Some(9));
        assert_eq!(bytes.bytes(), [1; 10]);
    });
}

#[test]
fn thousands_of_operations_at_once_each_find_their_own() {
    both(|rt, name| {
        let scratch = Scratch::new(&format!("many-{name}"));
        let (handle, file) = (rt.handle(), Arc::clone(&scratch.file));
        rt.block_on(async move {
            // More operations than fit in the ring, so that some are queued before it.
            let writes = (0..5000_u64).map(|n| {
                let bytes = PageImage::new(&n.to_le_bytes().repeat(8));
                handle.write_at(&file, n * 64, bytes, false)
            });
            let writes: Vec<_> = writes.collect();
            for (written, _) in join_all(writes).await {
                assert_eq!(written.ok(), Some(64));
            }
            let mut rng = handle.rng("which");
            let reads = (0..5000).map(|_| {
                let n = rng.below(5000);
                (n, handle.read_at(&file, n * 64, PageImage::zeroed(64, 1)))
            });
            let reads: Vec<_> = reads.collect();
            for (n, read) in reads {
                let (count, buffer) = read.await;
                assert_eq!(count.ok(), Some(64));
                assert_eq!(buffer.bytes()[..8], n.to_le_bytes());
            }
        });
    });
}

#[test]
fn an_operation_goes_on_though_nobody_looks_at_it() {
    both(|rt, name| {
        let scratch = Scratch::new(&format!("dropped-{name}"));
        let (handle, file) = (rt.handle(), Arc::clone(&scratch.file));
        rt.block_on(async move {
            for n in 0..100_u8 {
                drop(handle.write_at(&file, u64::from(n) * 512, filled(n, 512), false));
                drop(handle.read_at(&file, 0, PageImage::zeroed(1 << 16, BLOCK)));
            }
            while file.metadata().expect("it is there").len() < 100 * 512 {
                handle.yield_now().await;
            }
        });
    });
}

#[test]
fn a_runtime_that_is_dropped_waits_for_its_io() {
    for _ in 0..20 {
        both(|rt, name| {
            let scratch = Scratch::new(&format!("shutdown-{name}"));
            let (handle, file) = (rt.handle(), Arc::clone(&scratch.file));
            let waits = handle.clone();
            let for_task = Arc::clone(&file);
            drop(handle.spawn("reads for ever", async move {
                loop {
                    let (_, buffer) =
                        waits.read_at(&for_task, 0, PageImage::zeroed(1 << 20, BLOCK)).await;
                    let (written, _) = waits.write_at(&for_task, 0, buffer, true).await;
                    written.expect("there is room");
                }
            }));
            rt.block_on(async move {
                for n in 0..30 {
                    drop(handle.write_at(&file, n << 20, filled(3, 1 << 20), false));
                    drop(handle.read_at(&file, n << 20, PageImage::zeroed(1 << 20, BLOCK)));
                }
            });
        });
    }
}

#[test]
fn a_future_that_outlives_its_runtime_is_told() {
    for io in [IoChoice::Probe, IoChoice::Threads] {
        let rt = Runtime::real(RealOptions { io, ..RealOptions::default() }).expect("it is made");
        let scratch = Scratch::new(&format!("outlives-{io:?}"));
        let handle = rt.handle();
        let mut early = Box::pin(handle.read_at(&scratch.file, 0, PageImage::zeroed(10, 1)));
        drop(rt);
        let mut late = Box::pin(handle.sync_data(&scratch.file));
        let other = Runtime::new(1);
        let ended = other.block_on(async move {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            (early.as_mut().poll(&mut cx).is_ready(), late.as_mut().poll(&mut cx).is_ready())
        });
        assert_eq!(ended, (true, true));
    }
}

#[test]
#[should_panic(expected = "in virtual time there are no files")]
fn virtual_time_has_no_files() {
    let scratch = Scratch::new("virtual");
    let rt = Runtime::new(1);
    drop(rt.handle().sync_data(&scratch.file));
}

#[test]
fn a_caller_reads_for_itself_and_others_write_beside_it() {
    for io in [IoChoice::Probe, IoChoice::Threads] {
        let scratch = Scratch::new(&format!("shared-{io:?}"));
        std::fs::write(&scratch.path, (0..1000_u64).flat_map(u64::to_le_bytes).collect::<Vec<_>>())
            .expect("the target folder takes files");
        let file = Arc::clone(&scratch.file);
        let options = RealOptions { io, ..RealOptions::default() };
        let shared = Shared::new(options, move |handle| {
            let handle = handle.clone();
            async move { (handle, file) }
        });
        let shared = Arc::new(shared.expect("it is made"));
        let driven = Arc::clone(&shared);
        let driver = on_another_thread(move || driven.drive());
        let callers: Vec<_> = (0..3)
            .map(|seed| {
                let shared = Arc::clone(&shared);
                on_another_thread(move || {
                    let mut rng = Rng::new(seed);
                    for _ in 0..300 {
                        look_up(&shared, rng.below(1000), rng.below(4) == 0);
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.join().expect("it does not panic");
        }
        shared.stop();
        driver.join().expect("it does not panic");
        let engine = shared.call(|(handle, _)| {
            let engine = handle.io_engine().cloned();
            async move { engine }
        });
        assert!(matches!(engine, Some(IoEngine::Ring | IoEngine::Threads { .. })));
    }
}

#[test]
fn a_caller_that_only_reads_needs_nobody_else() {
    for io in [IoChoice::Probe, IoChoice::Threads] {
        let scratch = Scratch::new(&format!("alone-{io:?}"));
        let numbers = (0..1000_u64).flat_map(u64::to_le_bytes).collect::<Vec<_>>();
        std::fs::write(&scratch.path, numbers).expect("the target folder takes files");
        let file = Arc::clone(&scratch.file);
        let shared = Shared::new(RealOptions { io, ..RealOptions::default() }, move |handle| {
            let handle = handle.clone();
            async move { (handle, file) }
        });
        let shared = shared.expect("it is made");
        for n in 0..100 {
            // Two sequential reads, without a thread that drives the runtime.
            let sum = shared.call(move |(handle, file)| {
                let first = handle.read_at(file, n * 8, PageImage::zeroed(8, 1));
                let (handle, file) = (handle.clone(), Arc::clone(file));
                async move {
                    let first = first.await.1.bytes()[0];
                    let second = handle.read_at(&file, (n + 1) * 8, PageImage::zeroed(8, 1));
                    u64::from(first) + u64::from(second.await.1.bytes()[0])
                }
            });
            assert_eq!(sum, 2 * n + 1);
        }
    }
}

/// Reads a number twice concurrently; optionally writes it back to the same place.
fn look_up(shared: &Shared<(Handle, Arc<File>)>, n: u64, writes: bool) {
    let found = shared.call(move |(handle, file)| {
        let (handle, file) = (handle.clone(), Arc::clone(file));
        async move {
            let first = handle.read_at(&file, n * 8, PageImage::zeroed(8, 1));
            let second = handle.read_at(&file, n * 8, PageImage::zeroed(8, 1));
            let (read, buffer) = first.await;
            assert_eq!((read.ok(), second.await.1.bytes()), (Some(8), buffer.bytes()));
            if writes {
                let (written, _) = handle.write_at(&file, n * 8, buffer.clone(), false).await;
                assert_eq!(written.ok(), Some(8));
            }
            u64::from_le_bytes(buffer.bytes().try_into().expect("eight bytes"))
        }
    });
    assert_eq!(found, n);
}

#[expect(clippy::disallowed_methods, reason = "another thread is what this is about")]
fn on_another_thread<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::spawn(run)
}
