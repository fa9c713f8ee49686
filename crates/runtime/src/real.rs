//! Real time: the same executor with a clock that runs by itself, files, and other threads.
//!
//! ```text
//!  turn ....... one turn of the loop: what came from other threads, ended I/O, timers, then tasks  (real.rs)
//!  bell ....... how it sleeps, and is woken                                                (real/bell.rs)
//!  post ....... what other threads leave: wakes, closures, ended I/O; Remote               (real/post.rs)
//!  mailbox .... a queue from any thread to a task                                          (real/mailbox.rs)
//!  io ......... operations under way, and their futures                                    (real/io.rs)
//!  op ......... one operation: what it needs, how a thread carries it out                  (real/op.rs)
//!  file_read .. reads that need no runtime                                         (real/file_read.rs)
//!  ring ....... io_uring, the one place with raw memory                                    (real/ring.rs)
//!  workers .... threads for blocking I/O and for computing                                 (real/workers.rs)
//!  nvme ....... admin commands of drives                                               (real/nvme.rs)
//!  compute .... work that is heavy on the processor                                        (real/compute.rs)
//!  heap ....... what the allocator keeps                                                   (real/heap.rs)
//!  wall_clock . time for threads outside                                           (real/wall_clock.rs)
//!  fork_mark .. whether this process is a copy of the one that began                   (real/fork_mark.rs)
//!  shared ..... several threads in one runtime, each driving its own future                (real/shared.rs)
//! ```
//! Invariants: a turn polls a bounded number of tasks, so neither I/O nor timers wait for a task that keeps
//! yielding; the loop sleeps when nothing is ready, and never spins; nothing here asks which thread it is on,
//! so a runtime may be handed from thread to thread as long as one has it at a time. Cost of a read by itself:
//! one call to the system, as with `pread`.

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

/// Calls that may wait for a drive at a time: as many as a volume has members.
const MOST_WAITERS: usize = 64;

/// Tasks polled between two looks at the clock, at ended I/O and at other threads.
const POLLS_A_TURN: usize = 64;

/// A turn of the loop that has taken longer than this is not gone on with where others can go first. Some reads of a
/// fast drive, and many times what it takes to go from one thread to another.
const LONG_TURN: Nanos = Nanos::from_micros(50);

/// How I/O on files is to be carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IoChoice {
    /// By `io_uring` where the kernel has it and lets this program, else by threads.
    #[default]
    Probe,
    /// By `io_uring`, or the runtime is not made.
    Ring,
    /// By threads that wait for it.
    Threads,
}

/// How I/O on files is carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IoEngine {
    /// By `io_uring`.
    Ring,
    /// By so many threads.
    Threads {
        /// At most so many.
        threads: usize,
        /// Why not by `io_uring`, unless it was not asked for.
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

/// What a runtime in real time is made with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RealOptions {
    /// For [`Handle::rng`]; the order of tasks does not follow from it.
    pub seed: u64,
    /// How I/O is to be carried out.
    pub io: IoChoice,
    /// Threads for I/O at most, where it is carried out by threads.
    pub io_threads: usize,
    /// Threads for [`Handle::compute`] at most.
    pub compute_threads: usize,
    /// Whether the allocator is asked for what is free ([`Handle::note_freed`]).
    pub trims_heap: bool,
}

impl Default for RealOptions {
    /// Sixteen threads for I/O, as many reads as a drive of one queue likes to have at a time, and two to compute.
    fn default() -> Self {
        let io = IoChoice::Probe;
        Self { seed: 0, io, io_threads: 16, compute_threads: 2, trims_heap: false }
    }
}

/// What a runtime in real time has besides.
pub(crate) struct Real {
    /// Shared with threads that measure how long they take.
    clock: Arc<Clock>,
    pub(crate) post: Arc<Post>,
    pub(crate) io: Io,
    engine: IoEngine,
    /// Nothing once the runtime has ended.
    computers: RefCell<Option<Workers>>,
    /// Threads for calls that wait long. Nothing once the runtime has ended.
    waiters: RefCell<Option<Workers>>,
    /// If the allocator is asked for what is free.
    heap: Option<Arc<Heap>>,
}

/// Time since the runtime was made, by the system's monotonic clock.
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

    /// Makes a call that may wait for seconds, on a thread that nothing else waits for.
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
            // Not one that computes: those are preempted while others wait for a heap.
            let (heap, clock) = (Arc::clone(heap), Arc::clone(&self.clock));
            waiters.run(Box::new(move || heap.give_back(|| clock.now())));
        }
    }

    /// Ends I/O ([`Io::close`]) and what is computed, and takes no letters any more.
    pub(crate) fn close(&self) {
        self.io.close();
        let (computers, waiters) =
            (self.computers.borrow_mut().take(), self.waiters.borrow_mut().take());
        drop((computers, waiters));
        drop(self.post.close());
    }
}

/// What there is to do after a turn.
pub(crate) enum Next {
    /// Tasks are ready. What others have asked for is to be handed to the kernel, so that it is begun while they run.
    Turn,
    /// Nothing before this instant, if at all, unless I/O ends or another thread has something.
    Sleep(Option<Nanos>),
}

impl Inner {
    /// One turn: takes in what has happened, then polls tasks that are ready, up to a number of them; no more
    /// than one if others wait for the runtime.
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

    /// Polls tasks that are ready, one at least, until `is_enough`; those that become ready meanwhile wait for the next
    /// turn, so that a task that keeps yielding holds nobody up.
    pub(crate) fn poll_ready(&self, is_enough: &dyn Fn() -> bool) {
        for _ in 0..self.ready_tasks().min(POLLS_A_TURN) {
            let Some(task) = self.next_ready() else { break };
            self.poll(task);
            if is_enough() {
                break;
            }
        }
    }

    /// Takes in what has happened: the time, letters, ended I/O, timers.
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

    /// Fires timers up to now.
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

    /// Sleeps until something happens, `until` at the latest.
    fn sleep(real: &Real, until: Option<Nanos>) {
        real.post.bell.lie_down();
        if real.post.has_letters() {
            real.post.bell.get_up();
            return;
        }
        real.post.bell.sleep(until.map(|until| real.span_until(until)));
    }

    /// Runs as long as `goes_on` holds, checked after each turn, and before `deadline`.
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
    /// Whether a turn that began at that instant is a long one by now.
    pub(crate) fn turn_is_long(&self, begun: Nanos) -> bool {
        self.clock.now().saturating_since(begun) > LONG_TURN
    }

    /// From now until then.
    pub(crate) fn span_until(&self, until: Nanos) -> Duration {
        Duration::from_nanos(until.saturating_since(self.clock.now()).0)
    }
}

/// The system may be late by the thread's slack, 50 us by default, to wake for several timers at once. Ours are to be
/// exact; dropping this gives the thread its slack back.
struct ExactTimers {
    before: Option<NonZeroU64>,
}

impl ExactTimers {
    fn begin() -> Self {
        let before = rustix::thread::current_timer_slack().ok().and_then(NonZeroU64::new);
        // A kernel that refuses leaves timers as exact as they were.
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
    /// A runtime in real time: its clock is the system's, from zero at this call on; tasks run in the order in which
    /// they become ready.
    ///
    /// Dropping it drops every task, then waits for I/O that the kernel or a thread has begun.
    ///
    /// # Errors
    /// What the system says, if there is no way to do I/O as `options` have it.
    pub fn real(options: RealOptions) -> std::io::Result<Self> {
        let id = waker::new_runtime();
        let real = Real::new(id, options)?;
        Ok(Self::around(id, options.seed, TaskOrder::Fifo, Some(Box::new(real))))
    }
}

/// Other threads, and files: in real time.
impl Handle {
    /// Whether this is real time.
    pub fn is_real(&self) -> bool {
        self.inner.real.is_some()
    }

    pub(crate) fn real(&self) -> &Real {
        self.inner.real.as_deref().expect("in virtual time there are no files and no other threads")
    }

    /// How I/O on files is carried out; nothing in virtual time, which has none.
    pub fn io_engine(&self) -> Option<&IoEngine> {
        self.inner.real.as_ref().map(|real| &real.engine)
    }

    /// This runtime, for other threads.
    ///
    /// # Panics
    /// In virtual time.
    pub fn remote(&self) -> Remote {
        Remote::new(Arc::clone(&self.real().post))
    }

    /// Does work that is heavy on the processor: on a thread of its own in real time, so that nobody waits for it but
    /// who awaits it; at once in virtual time, where it takes no time unless it is charged.
    ///
    /// A panic of it goes on where the result is awaited. Work that was not begun when the runtime ends is dropped.
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

    /// Drops a value of so many bytes in many pieces, which takes long, where [`Self::compute`] does its work; and says so
    /// ([`Self::note_freed`]).
    pub fn drop_apart<T: Send + 'static>(&self, value: T, bytes: u64) {
        if !self.is_real() {
            return drop(value);
        }
        let remote = self.remote();
        drop(self.compute(move || {
            drop(value);
            // Whoever has ended gives back all that it has.
            let _ = remote.post(move |handle| handle.note_freed(bytes));
        }));
    }

    /// Somebody has freed about so many bytes. When that comes to some MiB, an allocator that does not give back what is free unless it
    /// is asked (glibc's) is asked, on another thread, if the runtime was made so ([`RealOptions::trims_heap`]). Nothing happens in virtual time.
    pub fn note_freed(&self, bytes: u64) {
        if let Some(real) = &self.inner.real {
            real.note_freed(bytes);
        }
    }
}
