//! Real time: the same executor with the system's clock, files and other threads.
//!
//! ```text
//!  turn ....... one turn of the loop: letters, ended I/O, timers, then tasks        (real.rs)
//!  bell ....... sleeping and waking of the executor                            (real/bell.rs)
//!  post ....... letters from other threads: wakes, closures, ended I/O; Remote (real/post.rs)
//!  mailbox .... a queue from any thread to a task                           (real/mailbox.rs)
//!  io ......... operations in flight, and their futures                          (real/io.rs)
//!  op ......... one operation, and its execution by a thread                     (real/op.rs)
//!  file_read .. reads that need no runtime                                (real/file_read.rs)
//!  ring ....... io_uring                                                       (real/ring.rs)
//!  workers .... threads for blocking I/O and for computing                  (real/workers.rs)
//!  nvme ....... admin commands of NVMe drives                                  (real/nvme.rs)
//!  compute .... processor-heavy work on other threads                       (real/compute.rs)
//!  heap ....... returning free heap memory to the system                       (real/heap.rs)
//!  wall_clock . a clock for outside threads                              (real/wall_clock.rs)
//!  fork_mark .. detection of a forked process                             (real/fork_mark.rs)
//!  shared ..... several threads in one runtime, each with its own future     (real/shared.rs)
//! ```
//! Invariants: a turn polls a bounded number of tasks, so that neither I/O nor timers wait for a
//! task that keeps yielding. The loop sleeps when no task is ready, and never spins. This module
//! never depends on the current thread, so a runtime may move between threads as long as one thread
//! has it at a time. Cost of a single read: one system call, as with `pread`.

pub(crate) mod bell;
pub(crate) mod compute;
pub(crate) mod file_read;
pub(crate) mod fork_mark;
pub(crate) mod heap;
pub(crate) mod io;
pub(crate) mod mailbox;
pub(crate) mod nvme;
pub(crate) mod op;
pub(crate) mod post;
pub(crate) mod ring;
pub(crate) mod shared;
pub(crate) mod wall_clock;
pub(crate) mod workers;

use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use self::bell::Bell;
use self::compute::Compute;
use self::heap::Heap;
use self::io::{Engine, Io};
use self::post::{Letter, Post, Remote};
use self::ring::Ring;
use self::workers::{Priority, Workers};
use crate::executor::{Inner, TaskOrder};
use crate::timer::Target;
use crate::{Handle, Nanos, Runtime, waker};

/// The maximum number of concurrent calls that may wait for a drive: the maximum number of members
/// of a volume.
const MOST_WAITERS: usize = 64;

/// Tasks polled between two checks of the clock, of ended I/O and of letters from other threads.
const POLLS_A_TURN: usize = 64;

/// A turn that has taken longer than this yields where it can. As long as some reads of a fast
/// drive, and many times a switch between threads.
const LONG_TURN: Nanos = Nanos::from_micros(50);

/// The requested engine for file I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IoChoice {
    /// `io_uring` if the kernel supports it and permits it to this program, else threads.
    #[default]
    Probe,
    /// `io_uring`; creating the runtime fails without it.
    Ring,
    /// Threads that do blocking I/O.
    Threads,
}

/// The engine in use for file I/O.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IoEngine {
    /// `io_uring`.
    Ring,
    /// Threads.
    Threads {
        /// The maximum number of threads.
        threads: usize,
        /// The reason why `io_uring` is not used; `None` if threads were requested.
        why: Option<String>,
    },
}

impl fmt::Display for IoEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ring => f.write_str("io_uring"),
            Self::Threads { threads, why: None } => write!(f, "{threads} threads"),
            Self::Threads { threads, why: Some(why) } => {
                write!(f, "{threads} threads, because io_uring is refused: {why}")
            }
        }
    }
}

/// The options of a runtime in real time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RealOptions {
    /// The seed of [`Handle::rng`]. It does not affect the order of tasks.
    pub seed: u64,
    /// The requested engine for I/O.
    pub io: IoChoice,
    /// The maximum number of threads for I/O, if threads are used.
    pub io_threads: usize,
    /// The maximum number of threads for [`Handle::compute`].
    pub compute_threads: usize,
    /// Whether to return free heap memory to the system ([`Handle::note_freed`]).
    pub trims_heap: bool,
}

impl Default for RealOptions {
    /// Sixteen threads for I/O, a good queue depth for a drive with one queue, and two threads to
    /// compute.
    fn default() -> Self {
        let io = IoChoice::Probe;
        Self { seed: 0, io, io_threads: 16, compute_threads: 2, trims_heap: false }
    }
}

/// The additional state of a runtime in real time.
pub(crate) struct Real {
    /// Shared with threads that measure their own duration.
    clock: Arc<Clock>,
    pub(crate) post: Arc<Post>,
    pub(crate) io: Io,
    engine: IoEngine,
    /// `None` once the runtime has ended.
    computers: RefCell<Option<Workers>>,
    /// Threads for calls that block for long; `None` once the runtime has ended.
    waiters: RefCell<Option<Workers>>,
    /// Set if free heap memory is returned to the system.
    heap: Option<Arc<Heap>>,
}

/// The time since the runtime was created, by the system's monotonic clock.
struct Clock {
    #[expect(clippy::disallowed_types, reason = "this is where time comes from")]
    start: std::time::Instant,
}

impl Clock {
    #[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the same")]
    fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    fn now(&self) -> Nanos {
        Nanos(self.start.elapsed().as_nanos() as u64)
    }
}

impl Real {
    fn new(runtime: u32, options: RealOptions) -> std::io::Result<Self> {
        let threads = options.io_threads;
        let by_threads = |why| {
            let engine = Engine::Threads(Workers::new("file I/O", threads, Priority::Normal));
            (engine, IoEngine::Threads { threads, why }, None)
        };
        let by_ring = |ring: Ring| {
            let bell = ring.bell();
            (Engine::Ring(ring), IoEngine::Ring, Some(bell))
        };
        let (io, engine, bell) = match options.io {
            IoChoice::Ring => by_ring(Ring::new()?),
            IoChoice::Threads => by_threads(None),
            IoChoice::Probe => match Ring::new() {
                Ok(ring) => by_ring(ring),
                Err(error) => by_threads(Some(error.to_string())),
            },
        };
        let post = Post::open(runtime, Bell::new(bell));
        Ok(Self {
            clock: Arc::new(Clock::start()),
            io: Io::new(io, Arc::clone(&post)),
            post,
            engine,
            computers: RefCell::new(Some(Workers::new(
                "compute",
                options.compute_threads,
                Priority::Low,
            ))),
            waiters: RefCell::new(Some(Workers::new("waits", MOST_WAITERS, Priority::Normal))),
            heap: options.trims_heap.then(Arc::default),
        })
    }

    /// Makes a call that may block for seconds, on a thread that nothing else needs.
    pub(crate) fn wait_apart<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Compute<T> {
        match &*self.waiters.borrow() {
            Some(waiters) => Compute::on(waiters, call),
            None => Compute::done(call()),
        }
    }

    fn note_freed(&self, bytes: u64) {
        let waiters = self.waiters.borrow();
        let (Some(waiters), Some(heap)) = (&*waiters, &self.heap) else { return };
        if heap.note_freed(bytes, self.clock.now()) {
            // Not on a compute thread: those have low priority and could be preempted while other
            // threads wait for a heap.
            let (heap, clock) = (Arc::clone(heap), Arc::clone(&self.clock));
            waiters.run(Box::new(move || heap.give_back(|| clock.now())));
        }
    }

    /// Ends I/O ([`Io::close`]) and computations, and accepts no more letters.
    pub(crate) fn close(&self) {
        self.io.close();
        let (computers, waiters) =
            (self.computers.borrow_mut().take(), self.waiters.borrow_mut().take());
        drop((computers, waiters));
        drop(self.post.close());
    }
}

/// The next step after a turn.
pub(crate) enum Next {
    /// Tasks are ready. The caller first submits queued operations to the kernel, so that they run
    /// meanwhile.
    Turn,
    /// No task is ready. Sleeps until this instant, if any, or until I/O ends or another thread
    /// sends a letter.
    Sleep(Option<Nanos>),
}

impl Inner {
    /// Runs one turn: processes events, then polls ready tasks, up to a limit. Polls only one task
    /// if other threads wait for the runtime.
    pub(crate) fn turn(
        &self,
        real: &Real,
        handle: &Handle,
        others_wait: &dyn Fn() -> bool,
    ) -> Next {
        self.take_in(real, handle);
        self.poll_ready(others_wait);
        if self.ready_tasks() > 0 {
            return Next::Turn;
        }
        Next::Sleep(self.first_due())
    }

    /// Polls ready tasks, at least one, until `is_enough`. Tasks that become ready meanwhile wait
    /// for the next turn, so that a task that keeps yielding delays nothing else.
    pub(crate) fn poll_ready(&self, is_enough: &dyn Fn() -> bool) {
        for _ in 0..self.ready_tasks().min(POLLS_A_TURN) {
            let Some(task) = self.next_ready() else { break };
            self.poll(task);
            if is_enough() {
                break;
            }
        }
    }

    /// Processes events: the time, letters, ended I/O and timers.
    pub(crate) fn take_in(&self, real: &Real, handle: &Handle) {
        self.look_at_clock(real);
        for letter in real.post.collect() {
            match letter {
                Letter::Wake(task) => self.make_ready(task),
                Letter::Run(run) => run(handle),
                Letter::Ended(place, op, result) => real.io.end(place, op, result),
            }
        }
        real.io.reap();
        self.fire_due();
    }

    pub(crate) fn look_at_clock(&self, real: &Real) {
        self.set_now(real.clock.now());
    }

    /// Fires the timers that are due.
    fn fire_due(&self) {
        let now = self.now();
        while self.first_due().is_some_and(|due| due <= now) {
            let due = self.take_due(now);
            match due {
                Some(Target::Task(task)) => self.make_ready(task),
                Some(Target::Wake(waker)) => waker.wake(),
                Some(Target::Fire(event, token)) => event.fire(token),
                None => {}
            }
        }
    }

    /// Sleeps until an event occurs, or until `until`.
    fn sleep(real: &Real, until: Option<Nanos>) {
        real.post.bell.lie_down();
        if real.post.has_letters() {
            real.post.bell.get_up();
            return;
        }
        real.post.bell.sleep(until.map(|until| real.span_until(until)));
    }

    /// Runs as long as `goes_on` holds, which is checked after each turn, and until `deadline`.
    pub(crate) fn run_in_real_time(
        &self,
        handle: &Handle,
        deadline: Nanos,
        goes_on: &dyn Fn() -> bool,
    ) {
        let real = handle.real();
        let _here = waker::enter(self.id, &self.ready);
        let _exact = ExactTimers::begin();
        let mut submitted = real.io.queued();
        let mut submit = || {
            if real.io.queued() != submitted {
                real.post.bell.submit();
                submitted = real.io.queued();
            }
        };
        loop {
            let next = self.turn(real, handle, &|| false);
            if !goes_on() || self.now() >= deadline {
                real.post.bell.submit();
                return;
            }
            match next {
                Next::Turn => submit(),
                Next::Sleep(until) => {
                    let until = until.unwrap_or(Nanos::MAX).min(deadline);
                    Self::sleep(real, (until < Nanos::MAX).then_some(until));
                }
            }
        }
    }
}

impl Real {
    /// Whether a turn that started at `begun` has taken long.
    pub(crate) fn turn_is_long(&self, begun: Nanos) -> bool {
        self.clock.now().saturating_since(begun) > LONG_TURN
    }

    /// Returns the span from now to `until`.
    pub(crate) fn span_until(&self, until: Nanos) -> Duration {
        Duration::from_nanos(until.saturating_since(self.clock.now()).0)
    }
}

/// Exact timers for the current thread, until dropped. By default the system may delay wake-ups by
/// the thread's timer slack of 50 us, to combine several timers.
struct ExactTimers {
    before: Option<NonZeroU64>,
}

impl ExactTimers {
    fn begin() -> Self {
        let before = rustix::thread::current_timer_slack().ok().and_then(NonZeroU64::new);
        // If the kernel refuses, timers stay as exact as they were.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Self { before }
    }
}

impl Drop for ExactTimers {
    fn drop(&mut self) {
        let _ = rustix::thread::set_current_timer_slack(self.before);
    }
}

impl Runtime {
    /// Creates a runtime in real time. Its clock is the system's, starting from zero. Tasks run in
    /// the order in which they become ready.
    ///
    /// Dropping it drops every task, and then waits for I/O that the kernel or a thread has
    /// started.
    ///
    /// # Errors
    /// Returns the system's error if the requested kind of I/O is not available.
    pub fn real(options: RealOptions) -> std::io::Result<Self> {
        let id = waker::new_runtime();
        let real = Real::new(id, options)?;
        Ok(Self::around(id, options.seed, TaskOrder::Fifo, Some(Box::new(real))))
    }
}

/// Other threads and files, in real time.
impl Handle {
    /// Whether this is real time.
    pub fn is_real(&self) -> bool {
        self.inner.real.is_some()
    }

    pub(crate) fn real(&self) -> &Real {
        self.inner.real.as_deref().expect("in virtual time there are no files and no other threads")
    }

    /// Returns the engine in use for file I/O; `None` in virtual time, which has no files.
    pub fn io_engine(&self) -> Option<&IoEngine> {
        self.inner.real.as_ref().map(|real| &real.engine)
    }

    /// Returns a handle to this runtime for other threads.
    ///
    /// # Panics
    /// Panics in virtual time.
    pub fn remote(&self) -> Remote {
        Remote::new(Arc::clone(&self.real().post))
    }

    /// Does processor-heavy work. In real time it runs on a separate thread, so that only the task
    /// that awaits it waits. In virtual time it runs immediately, and takes no time unless it is
    /// charged.
    ///
    /// A panic of `work` resumes where the result is awaited. Work that has not started when the
    /// runtime ends is dropped.
    pub fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Compute<T> {
        let computers = self.inner.real.as_ref().map(|real| real.computers.borrow());
        match computers.as_deref() {
            Some(Some(computers)) => Compute::on(computers, work),
            _ => Compute::done(work()),
        }
    }

    /// Drops a value of `bytes` bytes in many pieces, which takes long, on a compute thread, and
    /// reports the freed memory ([`Self::note_freed`]).
    pub fn drop_apart<T: Send + 'static>(&self, value: T, bytes: u64) {
        if !self.is_real() {
            return drop(value);
        }
        let remote = self.remote();
        drop(self.compute(move || {
            drop(value);
            // If the runtime has ended, all of its memory is freed anyway.
            let _ = remote.post(move |handle| handle.note_freed(bytes));
        }));
    }

    /// Reports that about `bytes` bytes were freed. After some MiB, another thread asks the
    /// allocator to return free memory to the system, if the allocator needs to be asked (glibc's)
    /// and if [`RealOptions::trims_heap`] is set. Does nothing in virtual time.
    pub fn note_freed(&self, bytes: u64) {
        if let Some(real) = &self.inner.real {
            real.note_freed(bytes);
        }
    }
}
