//! One runtime for several threads, each of which drives its own future.
//!
//! If a Get went to another thread and back, it would pay for two wakes, a third of the time of the
//! read. Instead, the calling thread takes the runtime (a lock), polls its own future in it, and
//! releases it. A read that the future issues is left to the calling thread ([`super::io`]): it
//! reads without the lock, takes the runtime again and enters the result. A thread that calls
//! [`Shared::drive`] drives background tasks in turns. A caller that would have to wait first polls
//! ready tasks: its own future has often made them ready (prefetches of a scan, a group of the
//! log), and passing them to another thread would cost a wake.
//!
//! Why this is sound: everything in the runtime that two threads must not use at the same time
//! (reference counts, cells) is inside the lock, and nothing of it can leave: inputs are `Send` and
//! independent of the runtime, results are `Send`, and futures are created, polled and dropped with
//! the lock held. The remaining risk is a thread-local that keeps a part of the runtime. The only
//! one in this project is the list of [`crate::waker`], which holds a runtime only while it is
//! entered; clippy.toml forbids others.

use std::future::Future;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use parking_lot::{Mutex, MutexGuard};

use super::post::Remote;
use super::{Next, RealOptions};
use crate::{Handle, Nanos, Runtime, waker};

/// Attempts to take the lock before a caller sleeps for it: some tens of microseconds. Measured in
/// decision 40.
const TRIES: u32 = 300;

/// The data that the lock protects.
struct Inside<T> {
    /// First, so that it is dropped before the runtime in which it lives.
    root: Option<T>,
    rt: Runtime,
    /// The instant until which the driving thread sleeps.
    sleeps_until: Nanos,
}

// SAFETY: it is reached only through the lock, by one thread at a time, in the order of the lock.
// The module's documentation explains why no other place shares its reference counts.
unsafe impl<T> Send for Inside<T> {}

/// See the module's documentation. `T` is the object that lives in the runtime: a store.
pub struct Shared<T> {
    inside: Mutex<Inside<T>>,
    remote: Remote,
    /// Callers that wait for the lock.
    waiting: AtomicU32,
    /// Callers that wait for their futures to be woken.
    parked: Mutex<Vec<Arc<Caller>>>,
    /// Whether a task or a caller's future panicked inside, so that the state may be inconsistent.
    is_broken: AtomicBool,
    is_over: AtomicBool,
}

/// Marks the runtime as broken and wakes all waiting callers on drop, unless [`Self::end`] is
/// called first. Detects a panic while the lock is held.
struct Breaks<'a, T>(&'a Shared<T>);

impl<T> Breaks<'_, T> {
    /// Ends the guard without a panic.
    fn end(self) {
        std::mem::forget(self);
    }
}

impl<T> Drop for Breaks<'_, T> {
    fn drop(&mut self) {
        self.0.is_broken.store(true, Ordering::Release);
        self.0.parked.lock().iter().for_each(Wake::wake_by_ref);
        self.0.remote.office().bell.ring();
    }
}

/// The waker of a thread that waits for its future.
struct Caller {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Caller {
    fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }

    fn wait(&self) {
        while !self.is_woken.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

/// A future that is dropped with the lock held, even if its thread panics without the lock. If the
/// runtime is broken, the future is leaked.
struct Held<'a, T, F> {
    shared: &'a Shared<T>,
    future: Option<std::pin::Pin<Box<F>>>,
}

impl<T, F> Drop for Held<'_, T, F> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            let inside = self.shared.inside.lock();
            if self.shared.is_broken.load(Ordering::Acquire) {
                std::mem::forget(future);
            } else {
                let _here = enter(&inside.rt);
                drop(future);
            }
        }
    }
}

fn enter(rt: &Runtime) -> waker::Entered {
    let inner = &rt.handle.inner;
    waker::enter(inner.id, &inner.ready)
}

impl<T: 'static> Shared<T> {
    /// Creates a runtime in real time, and in it the object that `make` returns.
    ///
    /// # Errors
    /// As [`Runtime::real`].
    pub fn new<F: Future<Output = T> + 'static>(
        options: RealOptions,
        make: impl FnOnce(&Handle) -> F + Send,
    ) -> std::io::Result<Self> {
        let rt = Runtime::real(options)?;
        let handle = rt.handle();
        let root = Some(rt.block_on(make(&handle)));
        let remote = handle.remote();
        drop(handle);
        let inside = Mutex::new(Inside { root, rt, sleeps_until: Nanos::ZERO });
        Ok(Self {
            inside,
            remote,
            waiting: AtomicU32::new(0),
            parked: Mutex::default(),
            is_broken: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        })
    }

    /// Whether a task or a future panicked inside. Then [`Self::call`] panics, even a call that is
    /// already waiting, and [`Self::drive`] returns.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    /// Takes the lock for a caller; the driving thread lets callers go first.
    fn lock_for_caller(&self) -> MutexGuard<'_, Inside<T>> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let inside = self.spin().unwrap_or_else(|| self.inside.lock());
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        assert!(!self.is_broken(), "a task of the store panicked; open it again");
        inside
    }

    /// Takes the lock if it becomes free within the time of a short step. A thread that sleeps for
    /// the lock instead costs its holder a system call, and receives the lock long before it runs
    /// again.
    fn spin(&self) -> Option<MutexGuard<'_, Inside<T>>> {
        (0..TRIES).find_map(|_| {
            let inside = self.inside.try_lock();
            if inside.is_none() {
                (0..4).for_each(|_| hint::spin_loop());
            }
            inside
        })
    }

    /// Passes the lock to the caller that has waited longest, and does not take it again before
    /// that caller.
    fn unlock(&self, inside: MutexGuard<'_, Inside<T>>) {
        if self.callers_wait() {
            MutexGuard::unlock_fair(inside);
        }
    }

    fn callers_wait(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Reads the object in the runtime with a closure that does not wait and starts no I/O.
    ///
    /// ```
    /// # use std::{cell::{Cell, RefCell}, rc::Rc};
    /// # let options = runtime::RealOptions::default();
    /// # let shared = runtime::Shared::new(options, |_| async { Rc::new(Cell::new(7)) }).expect("a runtime");
    /// assert_eq!(shared.look(|number| number.get()), 7);
    /// ```
    /// The object itself cannot leave, not even through the closure:
    /// ```compile_fail,E0277
    /// # use std::{cell::{Cell, RefCell}, rc::Rc};
    /// # let options = runtime::RealOptions::default();
    /// # let shared = runtime::Shared::new(options, |_| async { Rc::new(Cell::new(7)) }).expect("a runtime");
    /// let taken_out = RefCell::new(None);
    /// shared.look(|number| *taken_out.borrow_mut() = Some(Rc::clone(number)));
    /// ```
    ///
    /// # Panics
    /// As [`Self::call`].
    pub fn look<R: Send>(&self, at: impl FnOnce(&T) -> R + Send) -> R {
        self.assert_outside();
        let inside = self.lock_for_caller();
        let breaks = Breaks(self);
        let here = enter(&inside.rt);
        let before = inside.rt.handle.real().io.queued();
        let seen = at(inside.root.as_ref().expect("it is there until the runtime goes"));
        debug_assert_eq!(inside.rt.handle.real().io.queued(), before, "a look begins no I/O");
        inside.pass_on(&self.remote);
        drop(here);
        breaks.end();
        self.unlock(inside);
        seen
    }

    fn assert_outside(&self) {
        let runtime = self.remote.office().runtime();
        assert!(!waker::is_entered(runtime), "a task of the runtime would wait for itself");
    }

    /// Runs a future in the runtime on this thread, which performs the future's reads itself, one
    /// at a time. Before it waits for anything else, it polls ready tasks. The driving thread does
    /// the remaining ones.
    ///
    /// # Panics
    /// Panics if called from a task of the runtime, which would wait for itself; and if a panic
    /// occurred inside, before the call or while it waits.
    pub fn call<R: Send, F: Future<Output = R>>(&self, make: impl FnOnce(&T) -> F + Send) -> R {
        self.assert_outside();
        let caller =
            Arc::new(Caller { thread: thread::current(), is_woken: AtomicBool::new(false) });
        let waker = Waker::from(Arc::clone(&caller));
        let mut held = Held { shared: self, future: None };
        let mut make = Some(make);
        let mut read = None;
        loop {
            let inside = self.lock_for_caller();
            let before = inside.rt.handle.real().io.queued();
            let breaks = Breaks(self);
            let here = enter(&inside.rt);
            let inner = &inside.rt.handle.inner;
            let real = inside.rt.handle.real();
            inner.look_at_clock(real);
            if let Some((place, op, result)) = read.take() {
                real.io.end(place, op, result);
            }
            real.io.leave_reads(true);
            if let Some(make) = make.take() {
                let root = inside.root.as_ref().expect("it is there until the runtime goes");
                held.future = Some(Box::pin(make(root)));
            }
            let future = held.future.as_mut().expect("it has not ended");
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            real.io.leave_reads(false);
            let mut left = real.io.take_left();
            if polled.is_ready() {
                held.future = None;
                // Another task may wait for this read.
                if let Some((place, op)) = left.take() {
                    real.io.start(place, op);
                }
            } else if left.is_none() {
                inner.poll_ready(&|| caller.is_woken() || self.callers_wait());
            }
            let has_queued = real.io.queued() != before;
            inside.pass_on(&self.remote);
            drop(here);
            breaks.end();
            self.unlock(inside);
            if has_queued {
                self.remote.office().bell.submit();
            }
            if let Poll::Ready(result) = polled {
                return result;
            }
            match left {
                Some((place, mut op)) => {
                    let result = op.perform();
                    read = Some((place, op, result));
                }
                None => self.park(&caller),
            }
        }
    }

    /// Waits until the future of `caller` is woken, or the runtime is broken.
    fn park(&self, caller: &Arc<Caller>) {
        self.parked.lock().push(Arc::clone(caller));
        // A panic after this point finds the caller in the list.
        if !self.is_broken() {
            caller.wait();
        }
        self.parked.lock().retain(|other| !Arc::ptr_eq(other, caller));
    }

    /// Drives all tasks on this thread until [`Self::stop`], and lets callers go first.
    pub fn drive(&self) {
        let _exact = super::ExactTimers::begin();
        while !self.is_over.load(Ordering::Acquire) {
            let mut inside = self.inside.lock();
            if self.is_broken() {
                return; // Callers report the panic.
            }
            let breaks = Breaks(self);
            let here = enter(&inside.rt);
            let handle = inside.rt.handle.clone();
            let before = handle.real().io.queued();
            let next = handle.inner.turn(handle.real(), &handle, &|| self.callers_wait());
            let post = self.remote.office();
            let has_queued = handle.real().io.queued() != before;
            let sleep = match next {
                Next::Turn => None,
                Next::Sleep(until) => {
                    inside.sleeps_until = until.unwrap_or(Nanos::MAX);
                    post.bell.lie_down();
                    Some(until.map(|until| handle.real().span_until(until)))
                }
            };
            drop((handle, here));
            breaks.end();
            self.unlock(inside);
            let Some(longest) = sleep else {
                if has_queued {
                    post.bell.submit();
                }
                continue;
            };
            if post.has_letters() || self.is_over.load(Ordering::Acquire) {
                post.bell.get_up();
            } else {
                post.bell.sleep(longest);
            }
        }
    }

    /// Makes [`Self::drive`] return.
    pub fn stop(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.remote.office().bell.ring();
    }
}

impl<T> Inside<T> {
    /// Wakes the driving thread if a caller has left it ready tasks or an earlier timer.
    fn pass_on(&self, remote: &Remote) {
        let inner = &self.rt.handle.inner;
        let is_earlier = inner.first_due().is_some_and(|due| due < self.sleeps_until);
        if inner.ready_tasks() > 0 || is_earlier {
            remote.office().bell.ring();
        }
    }
}

impl<T> Drop for Inside<T> {
    fn drop(&mut self) {
        let _here = enter(&self.rt);
        self.root = None;
    }
}
