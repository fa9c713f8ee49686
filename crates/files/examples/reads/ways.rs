//! The ways to read. Each reads for a given time and reports the latency of single reads.

use std::fs::File;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use block::nvme::SetId;
use block::{Block, BlockDevice, Force};
use files::{FileDevice, FileOptions};
use runtime::{Handle, IoChoice, IoClass, PageImage, RealOptions, Rng, Runtime, Shared, mailbox};

const BLOCK: usize = 4096;
const SET: SetId = SetId::new(1).expect("numbers begin with 1");

/// The result of one way; latencies in microseconds.
pub(crate) struct Outcome {
    pub reads_per_second: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// A way to read from a file for the given number of microseconds.
type Way = fn(&Path, u64) -> Outcome;

pub(crate) const WAYS: [(&str, Way); 9] = [
    ("pread on the caller's thread", pread),
    ("runtime, io_uring", |path, us| in_runtime(path, us, IoChoice::Probe)),
    ("runtime, threads", |path, us| in_runtime(path, us, IoChoice::Threads)),
    ("runtime, io_uring, FileDevice", device),
    ("another thread, Remote::call, io_uring", |path, us| remote(path, us, IoChoice::Probe)),
    ("another thread, mailbox, io_uring", |path, us| by_mailbox(path, us, IoChoice::Probe)),
    ("another thread, mailbox, threads", |path, us| by_mailbox(path, us, IoChoice::Threads)),
    ("caller reads by itself in a shared runtime", caller_reads),
    ("the same, FileDevice", caller_reads_device),
];

/// Measures the time of each read: the time between two calls of `next`.
#[expect(clippy::disallowed_types, reason = "threads without a runtime are timed as well")]
struct Stopwatch {
    start: std::time::Instant,
    last: std::time::Instant,
    nanos: Vec<u64>,
    span_us: u64,
    rng: Rng,
    blocks: u64,
}

#[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the same")]
impl Stopwatch {
    fn new(path: &Path, span_us: u64) -> Self {
        let blocks = path.metadata().expect("it was made").len() / BLOCK as u64;
        let start = std::time::Instant::now();
        let rng = Rng::new(start.elapsed().as_nanos() as u64 + blocks);
        Self { start, last: start, nanos: Vec::with_capacity(1 << 20), span_us, rng, blocks }
    }

    /// Returns the next block to read; `None` when the time is over.
    fn next(&mut self) -> Option<u64> {
        let now = std::time::Instant::now();
        self.nanos.push(now.duration_since(self.last).as_nanos() as u64);
        self.last = now;
        let is_over = now.duration_since(self.start).as_micros() as u64 >= self.span_us;
        (!is_over).then(|| self.rng.below(self.blocks))
    }

    fn outcome(mut self) -> Outcome {
        self.nanos.remove(0);
        let seconds = self.last.duration_since(self.start).as_secs_f64();
        self.nanos.sort_unstable();
        let count = self.nanos.len();
        let at = |p: f64| self.nanos[((count as f64 * p) as usize).min(count - 1)] as f64 / 1e3;
        let reads_per_second = count as f64 / seconds;
        Outcome { reads_per_second, p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) }
    }
}

fn runtime(io: IoChoice) -> Runtime {
    Runtime::real(RealOptions { io, ..RealOptions::default() }).expect("no ring is asked for")
}

/// Opens the file with direct I/O if the file system supports it.
fn open_direct(path: &Path) -> Arc<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(direct).open(path);
    Arc::new(opened.or_else(|_| File::open(path)).expect("it was made"))
}

/// Creates the file, if it does not exist, with random data in every block.
pub(crate) fn make(path: &Path, bytes: u64) {
    if path.exists() {
        return;
    }
    let (rt, paths) = (runtime(IoChoice::Probe), vec![path.to_owned()]);
    let handle = rt.handle();
    rt.block_on(async move {
        let device = FileDevice::create(&handle, &paths, bytes, FileOptions::default()).await;
        let device = device.unwrap_or_else(|error| panic!("{error}"));
        eprintln!("{device}");
        let (blocks, mut rng) = (bytes / BLOCK as u64, handle.rng("noise"));
        for first in (0..blocks).step_by(32) {
            let noise = (0..32.min(blocks - first)).map(|_| {
                let noise: Vec<u8> = (0..512).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
                Block::new(&noise)
            });
            let written = device.write(SET, first, noise.collect(), IoClass::Flush, Force::No);
            written.await.expect("it has its room");
        }
        device.flush(SET).await.expect("it can be flushed");
    });
}

fn pread(path: &Path, span_us: u64) -> Outcome {
    use std::os::unix::fs::FileExt;
    let file = open_direct(path);
    let mut buffer = PageImage::zeroed(BLOCK, BLOCK);
    let mut watch = Stopwatch::new(path, span_us);
    while let Some(block) = watch.next() {
        let bytes = buffer.bytes_mut().expect("nobody shares it");
        let read = file.read_at(bytes, block * BLOCK as u64);
        assert_eq!(read.expect("it can be read"), BLOCK);
    }
    watch.outcome()
}

/// Reads one block through a runtime.
fn read(handle: &Handle, file: &Arc<File>, block: u64) -> impl Future<Output = ()> + use<> {
    let buffer = PageImage::zeroed(BLOCK, 512);
    let read = handle.read_at(file, block * BLOCK as u64, buffer);
    async move { assert_eq!(read.await.0.expect("it can be read"), BLOCK) }
}

fn in_runtime(path: &Path, span_us: u64, io: IoChoice) -> Outcome {
    let (rt, file) = (runtime(io), open_direct(path));
    let (handle, path) = (rt.handle(), path.to_owned());
    rt.block_on(async move {
        let mut watch = Stopwatch::new(&path, span_us);
        while let Some(block) = watch.next() {
            read(&handle, &file, block).await;
        }
        watch.outcome()
    })
}

fn device(path: &Path, span_us: u64) -> Outcome {
    let (rt, path) = (runtime(IoChoice::Probe), path.to_owned());
    let handle = rt.handle();
    rt.block_on(async move {
        let device = open_device(&handle, path.clone()).await;
        let mut watch = Stopwatch::new(&path, span_us);
        while let Some(block) = watch.next() {
            let read = device.read(SET, block, 1, IoClass::ClientRead);
            assert_eq!(read.await.expect("it can be read").len(), 1);
        }
        watch.outcome()
    })
}

async fn open_device(handle: &Handle, path: PathBuf) -> FileDevice {
    let device = FileDevice::open(handle, &[path], FileOptions::default()).await;
    device.unwrap_or_else(|error| panic!("{error}"))
}

#[expect(clippy::disallowed_methods, reason = "another thread is what this is about")]
fn on_another_thread<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::spawn(run)
}

fn remote(path: &Path, span_us: u64, io: IoChoice) -> Outcome {
    let (rt, file, path) = (runtime(io), open_direct(path), path.to_owned());
    let remote = rt.handle().remote();
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let caller = on_another_thread(move || {
        let mut watch = Stopwatch::new(&path, span_us);
        while let Some(block) = watch.next() {
            let file = Arc::clone(&file);
            let called = remote.call("read", move |handle| read(handle, &file, block));
            called.expect("the runtime is there");
        }
        // Set by the posted call that wakes the runtime, because the runtime checks the flag when
        // it handles the call.
        let end = move |_: &Handle| ends.store(true, Ordering::Release);
        remote.post(end).expect("the runtime is there");
        watch.outcome()
    });
    rt.run_until_true(|| is_over.load(Ordering::Acquire));
    caller.join().expect("it does not panic")
}

fn by_mailbox(path: &Path, span_us: u64, io: IoChoice) -> Outcome {
    let (rt, file, path) = (runtime(io), open_direct(path), path.to_owned());
    let (outbox, mut inbox) = mailbox::<(u64, mpsc::SyncSender<()>)>();
    let caller = on_another_thread(move || {
        let (reply, replies) = mpsc::sync_channel(1);
        let mut watch = Stopwatch::new(&path, span_us);
        while let Some(block) = watch.next() {
            outbox.send((block, reply.clone())).expect("the runtime is there");
            replies.recv().expect("it is answered");
        }
        watch.outcome()
    });
    let handle = rt.handle();
    rt.block_on(async move {
        while let Some((block, reply)) = inbox.recv().await {
            read(&handle, &file, block).await;
            reply.send(()).expect("whoever asked waits");
        }
    });
    caller.join().expect("it does not panic")
}

/// Runs `caller` on this thread while another thread drives the shared runtime.
fn with_driver<T: 'static>(
    shared: Shared<T>,
    caller: impl FnOnce(&Shared<T>) -> Outcome,
) -> Outcome {
    let shared = Arc::new(shared);
    let driven = Arc::clone(&shared);
    let driver = on_another_thread(move || driven.drive());
    let outcome = caller(&shared);
    shared.stop();
    driver.join().expect("it does not panic");
    outcome
}

fn caller_reads(path: &Path, span_us: u64) -> Outcome {
    let file = open_direct(path);
    let shared = Shared::new(RealOptions::default(), move |handle| {
        let handle = handle.clone();
        async move { (handle, file) }
    });
    with_driver(shared.expect("any way will do"), |shared| {
        let mut watch = Stopwatch::new(path, span_us);
        while let Some(block) = watch.next() {
            shared.call(move |(handle, file)| read(handle, file, block));
        }
        watch.outcome()
    })
}

fn caller_reads_device(path: &Path, span_us: u64) -> Outcome {
    let own = path.to_owned();
    let shared = Shared::new(RealOptions::default(), move |handle| {
        let handle = handle.clone();
        async move { open_device(&handle, own).await }
    });
    with_driver(shared.expect("any way will do"), |shared| {
        let mut watch = Stopwatch::new(path, span_us);
        while let Some(block) = watch.next() {
            let found = shared.call(move |device: &FileDevice| {
                let read = device.read(SET, block, 1, IoClass::ClientRead);
                async move { read.await.expect("it can be read").len() }
            });
            assert_eq!(found, 1);
        }
        watch.outcome()
    })
}
