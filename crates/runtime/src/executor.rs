//! The executor: tasks, the clock and the event loop.

mod handle;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Context;

use crate::real::Real;
use crate::timer::{Target, Timers};
use crate::waker::{Pick, ReadyQueue};
use crate::{Carrier, Nanos, Rng, waker};

/// The maximum number of polls of one task within one virtual instant. More polls count as a hang.
///
/// Virtual time advances only when no task is ready, so a task that keeps waking itself would stop
/// time forever. No correct task comes near this number.
pub const POLL_LIMIT: u32 = 1_000_000;

/// The order in which ready tasks run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TaskOrder {
    /// An order drawn from the seed. It reveals code that depends on an accidental order.
    #[default]
    Seeded,
    /// The order in which they became ready.
    Fifo,
}

/// The state of a runtime in virtual time in which no event is pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standstill {
    seed: u64,
    now: Nanos,
    /// Determines the order of tasks from here on.
    order: Rng,
}

impl Default for Standstill {
    fn default() -> Self {
        Self { seed: 0, now: Nanos::ZERO, order: Rng::new(0) }
    }
}

impl Standstill {
    /// Carries all fields.
    pub fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.u64(&mut self.seed)?;
        by.nanos(&mut self.now)?;
        self.order.carry(by)
    }
}

/// A runtime, which owns its tasks. Dropping it drops every task wherever it is. A power cut of a
/// simulated host or firmware is modelled in the same way.
pub struct Runtime {
    pub(crate) handle: Handle,
}

/// A handle for tasks: clock, timers, spawning, randomness. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    pub(crate) inner: Rc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) id: u32,
    seed: u64,
    order: TaskOrder,
    pub(crate) ready: Rc<ReadyQueue>,
    tasks: RefCell<Tasks>,
    timers: RefCell<Timers>,
    now: Cell<Nanos>,
    task_rng: RefCell<Rng>,
    trace: Cell<u64>,
    steps: Cell<u64>,
    /// The additional state of a runtime in real time; `None` in virtual time.
    pub(crate) real: Option<Box<Real>>,
}

type BoxedTask = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
struct Tasks {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    /// `None` while the task is being polled, and after it has ended.
    future: Option<BoxedTask>,
    name: &'static str,
    polls_at: Nanos,
    polls: u32,
    /// Whether the task is being polled and must be dropped after the poll.
    is_aborted: bool,
}

impl Runtime {
    /// Creates a runtime in virtual time at instant zero, with seeded task order.
    pub fn new(seed: u64) -> Self {
        Self::with_order(seed, TaskOrder::Seeded)
    }

    /// Creates a runtime in virtual time with the given task order.
    pub fn with_order(seed: u64, order: TaskOrder) -> Self {
        let id = waker::new_runtime();
        let this = Self::around(id, seed, order, None);
        waker::register(id, Rc::clone(&this.handle.inner.ready));
        this
    }

    /// Returns the state of the runtime if no event is pending: no task is ready and no timer is
    /// armed. The state of waiting tasks is not included; they must save it themselves.
    pub fn standstill(&self) -> Option<Standstill> {
        let inner = &self.handle.inner;
        let is_still = inner.ready.len() == 0 && inner.first_due().is_none();
        let order = || inner.task_rng.borrow().clone();
        is_still.then(|| Standstill { seed: inner.seed, now: inner.now(), order: order() })
    }

    /// Creates a runtime in virtual time that continues from a standstill. [`Handle::trace_hash`]
    /// starts anew. Requires: tasks are started one by one, with [`Self::run_ready`] after each, so
    /// that their order does not consume random numbers.
    pub fn at(standstill: &Standstill) -> Self {
        let this = Self::new(standstill.seed);
        this.handle.inner.set_now(standstill.now);
        *this.handle.inner.task_rng.borrow_mut() = standstill.order.clone();
        this
    }

    /// Runs the tasks that are ready at this instant.
    pub fn run_ready(&self) {
        self.run_while(&|| false);
    }

    pub(crate) fn around(id: u32, seed: u64, order: TaskOrder, real: Option<Box<Real>>) -> Self {
        let ready = Rc::new(ReadyQueue::default());
        let inner = Inner {
            id,
            seed,
            order,
            ready,
            tasks: RefCell::default(),
            timers: RefCell::default(),
            now: Cell::new(Nanos::ZERO),
            task_rng: RefCell::new(Rng::derive(seed, "task order")),
            trace: Cell::new(seed),
            steps: Cell::new(0),
            real,
        };
        Self { handle: Handle { inner: Rc::new(inner) } }
    }

    /// Returns a handle for tasks and devices.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until `future` has ended and returns its result. Other tasks stay where they are.
    ///
    /// # Panics
    /// Panics if `future` waits for an event that can no longer happen. The message names the
    /// remaining tasks.
    pub fn block_on<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        let join = self.handle.spawn("main", future);
        let ended = self.run_while(&|| !join.is_finished());
        assert!(ended, "nothing can happen any more, but these tasks wait: {:?}", self.waiting());
        join.take().expect("the task has finished and nobody else took its result")
    }

    /// Runs until `future` has ended, and calls `watch`, which may wake tasks, after every instant.
    ///
    /// # Panics
    /// As [`Self::block_on`].
    pub fn block_on_watched<T: 'static>(
        &self,
        future: impl Future<Output = T> + 'static,
        watch: &dyn Fn(),
    ) -> T {
        let join = self.handle.spawn("main", future);
        let ended = self.run_while(&|| {
            let goes_on = !join.is_finished();
            if goes_on {
                watch();
            }
            goes_on
        });
        assert!(ended, "nothing can happen any more, but these tasks wait: {:?}", self.waiting());
        join.take().expect("the task has finished and nobody else took its result")
    }

    /// Runs until `is_reached` holds, which is checked after every instant. Returns false if no
    /// event was left before that.
    pub fn run_until_true(&self, is_reached: impl Fn() -> bool) -> bool {
        self.run_while(&|| !is_reached())
    }

    /// Runs until `deadline`, or until no event is left, whichever is first.
    pub fn run_until(&self, deadline: Nanos) {
        if self.handle.is_real() {
            return self.handle.inner.run_in_real_time(&self.handle, deadline, &|| true);
        }
        let timers = &self.handle.inner.timers;
        self.run_while(&|| timers.borrow_mut().first_due().is_some_and(|at| at <= deadline.0));
        // Tasks woken at the last instant still run: `run_while` checks before it advances.
    }

    /// Runs as long as `goes_on` holds, which is checked whenever no task is ready. Returns false
    /// if no event was left before that.
    ///
    /// In real time events never run out, because another thread may always send one.
    ///
    /// Not generic, so that the compiler inlines polling and timers into a single copy of this
    /// loop.
    fn run_while(&self, goes_on: &dyn Fn() -> bool) -> bool {
        let inner = &*self.handle.inner;
        if self.handle.is_real() {
            inner.run_in_real_time(&self.handle, Nanos::MAX, goes_on);
            return true;
        }
        loop {
            while let Some(task) = inner.next_ready() {
                inner.poll(task);
            }
            if !goes_on() {
                return true;
            }
            if !inner.advance() {
                return false;
            }
        }
    }

    fn waiting(&self) -> Vec<&'static str> {
        let tasks = self.handle.inner.tasks.borrow();
        tasks.slots.iter().filter(|slot| slot.future.is_some()).map(|slot| slot.name).collect()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let inner = &self.handle.inner;
        let _here = inner.real.is_some().then(|| waker::enter(inner.id, &inner.ready));
        // Futures hold handles, and handles hold the tasks: this breaks the cycle. Dropping a
        // future runs the guards that it holds, which may wake or even spawn tasks, hence the loop.
        loop {
            let tasks = std::mem::take(&mut *self.handle.inner.tasks.borrow_mut());
            if tasks.slots.is_empty() {
                break;
            }
            drop(tasks);
        }
        let timers = std::mem::take(&mut *self.handle.inner.timers.borrow_mut());
        drop(timers);
        if let Some(real) = &inner.real {
            real.close();
        }
        waker::unregister(self.handle.inner.id);
    }
}

impl Inner {
    #[expect(
        clippy::inline_always,
        reason = "two loops call it; both are to have it within, as the one had"
    )]
    #[inline(always)]
    pub(crate) fn next_ready(&self) -> Option<u32> {
        self.ready.pop(|ready| match self.order {
            TaskOrder::Seeded if ready > 1 => {
                Pick::Index(self.task_rng.borrow_mut().below(ready as u64) as usize)
            }
            TaskOrder::Fifo | TaskOrder::Seeded => Pick::Oldest,
        })
    }

    #[expect(
        clippy::inline_always,
        reason = "two loops call it; both are to have it within, as the one had"
    )]
    #[inline(always)]
    pub(crate) fn poll(&self, task: u32) {
        let Some(mut future) = self.take_for_poll(task) else {
            return;
        };
        self.witness(u64::from(task));
        let waker = waker::waker(self.id, task);
        let state = future.as_mut().poll(&mut Context::from_waker(&waker));
        let mut tasks = self.tasks.borrow_mut();
        let slot = &mut tasks.slots[task as usize];
        if state.is_pending() && !slot.is_aborted {
            slot.future = Some(future);
        } else {
            tasks.free.push(task);
            drop(tasks); // The members of the future may spawn or wake tasks when dropped.
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "two loops call it; both are to have it within, as the one had"
    )]
    #[inline(always)]
    fn take_for_poll(&self, task: u32) -> Option<BoxedTask> {
        let now = self.now.get();
        let mut tasks = self.tasks.borrow_mut();
        let slot = tasks.slots.get_mut(task as usize)?;
        let future = slot.future.take()?;
        if slot.polls_at != now {
            slot.polls_at = now;
            slot.polls = 0;
        }
        slot.polls += 1;
        let (name, polls) = (slot.name, slot.polls);
        assert!(polls <= POLL_LIMIT, "task `{name}` was polled {polls} times at instant {now}");
        Some(future)
    }

    /// Advances the clock to the next timer and fires all that are due. Returns false if there is
    /// none.
    fn advance(&self) -> bool {
        let Some(deadline) = self.timers.borrow_mut().first_due() else {
            return false;
        };
        let now = self.now.get().max(Nanos(deadline));
        self.now.set(now);
        loop {
            // A separate statement, because the borrow must end before the target runs.
            let due = self.timers.borrow_mut().take_due(now.0);
            match due {
                Some(Target::Task(task)) => self.ready.push(task),
                Some(Target::Wake(waker)) => waker.wake(),
                Some(Target::Fire(event, token)) => {
                    self.witness(token);
                    event.fire(token);
                }
                None => return true,
            }
        }
    }

    pub(crate) fn ready_tasks(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn make_ready(&self, task: u32) {
        self.ready.push(task);
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now.get()
    }

    pub(crate) fn set_now(&self, now: Nanos) {
        self.now.set(now.max(self.now.get()));
    }

    /// Returns the instant at which the first timer is due.
    pub(crate) fn first_due(&self) -> Option<Nanos> {
        self.timers.borrow_mut().first_due().map(Nanos)
    }

    /// Removes the first timer if it is due by `now`.
    pub(crate) fn take_due(&self, now: Nanos) -> Option<Target> {
        self.timers.borrow_mut().take_due(now.0)
    }

    /// Adds one step to the trace hash.
    fn witness(&self, what: u64) {
        let seen = self.trace.get().rotate_left(5) ^ what ^ self.now.get().0;
        self.trace.set(seen.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.steps.set(self.steps.get() + 1);
    }
}
