//! The flash as its users see it: they submit an operation and await its end. Timers drive the
//! steps between dies, buses and cells, which the files below implement; submitters do not see
//! them.
//!
//! ```text
//!   submit ......... an operation reaches its die                 (submit.rs)
//!    |               its submitter awaits it                       (device.rs)   
//!    `- attend ..... the die starts its next operation             (attend.rs)
//!        |- reads .. command, sense, page register, transfer       (reads.rs)
//!        |- array .. program or erase, suspended, resumed, done    (array_steps.rs)
//!        `- bus .... commands and pages over the channel           (bus.rs)
//!   timers ......... the end of each step starts the next          (timers.rs)
//! ```

mod array_steps;
mod attend;
mod bus;
mod reads;
mod submit;
mod timers;

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll};

use runtime::{Carrier, Handle, IoClass, PageImage, Rng};

use super::array::NandArray;
use super::channel::Channel;
use super::die::Die;
use super::operation::{OperationId, OperationTable, Outcome, Request};
use super::profile::{Durations, ErrorModel};
use super::stats::FlashStats;
use super::{BlockAddress, FlashProfile, Geometry, PageAddress, ReadError};

pub(crate) use crate::nand::device::array_steps::apply;

/// A drive's flash. Clones are handles to the same flash.
#[derive(Clone)]
pub struct Flash {
    inner: Rc<Inner>,
}

pub(crate) struct Inner {
    me: Weak<Inner>,
    handle: Handle,
    geometry: Geometry,
    durations: Durations,
    errors: Option<ErrorModel>,
    pub(crate) state: RefCell<State>,
}

pub(crate) struct State {
    pub array: NandArray,
    pub dies: Vec<Die>,
    pub operations: OperationTable,
    channels: Vec<Channel>,
    stats: FlashStats,
    error_rng: Rng,
    submitted: u64,
    is_write_stall: bool,
    pub is_off: bool,
}

/// The lane of a read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Lane {
    /// The dies and channels of all other operations.
    #[default]
    Shared,
    /// Separate dies and channels over the same cells, see [`Flash::with_lane_apart`].
    Apart,
}

impl Flash {
    /// Powers up `array`, which must have the geometry of `profile`.
    pub fn new(handle: Handle, profile: &FlashProfile, array: NandArray) -> Self {
        Self::with_lanes(handle, profile, array, 1)
    }

    /// Same as [`Self::new`], with [`Lane::Apart`]: reads in that lane wait only for each other,
    /// which no real flash can do. An upper bound for the gain of isolating reads from writes.
    pub fn with_lane_apart(handle: Handle, profile: &FlashProfile, array: NandArray) -> Self {
        Self::with_lanes(handle, profile, array, 2)
    }

    fn with_lanes(handle: Handle, profile: &FlashProfile, array: NandArray, lanes: u32) -> Self {
        let geometry = profile.geometry.clone();
        let durations = Durations::new(profile);
        assert_eq!(&geometry, array.geometry(), "the array was made with another geometry");
        let state = State {
            array,
            dies: (0..lanes * geometry.dies()).map(|_| Die::new(durations.overlap)).collect(),
            channels: (0..lanes * geometry.channels)
                .map(|_| Channel::new(geometry.dies_per_channel))
                .collect(),
            operations: OperationTable::default(),
            stats: FlashStats::default(),
            error_rng: handle.rng("flash errors"),
            submitted: 0,
            is_write_stall: false,
            is_off: false,
        };
        let inner = Rc::new_cyclic(|me| Inner {
            me: me.clone(),
            handle,
            geometry,
            durations,
            errors: profile.errors.clone(),
            state: RefCell::new(state),
        });
        Self { inner }
    }

    /// Returns the geometry of the array.
    pub fn geometry(&self) -> &Geometry {
        &self.inner.geometry
    }

    /// Reads one page. Occupies the die for tR, then the channel for one page.
    ///
    /// The operation is submitted by the call itself; the result may be awaited later. The same
    /// holds for [`Self::program`] and [`Self::erase`].
    ///
    /// # Errors
    /// Returns [`super::ReadError`] if the page is erased, or if its bit errors exceed the ECC.
    pub fn read(&self, page: PageAddress, class: IoClass) -> PageReading {
        self.read_part(page, self.inner.geometry.page_bytes, class)
    }

    /// Reads `bytes` of one page, with their share of the ECC: the die senses the whole page, the
    /// channel carries that part. The returned image is that of the whole page; the caller selects
    /// its part.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_part(&self, page: PageAddress, bytes: u32, class: IoClass) -> PageReading {
        self.read_in(Lane::Shared, page, bytes, class)
    }

    /// Same as [`Self::read_part`], in a lane that must exist.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_in(
        &self,
        lane: Lane,
        page: PageAddress,
        bytes: u32,
        class: IoClass,
    ) -> PageReading {
        debug_assert!(bytes <= self.inner.geometry.page_bytes);
        PageReading(self.submit_in(lane, Request::Read(page, bytes), class))
    }

    /// Promotes a prefetch of `page` in [`Lane::Shared`] to a demand read, because a client waits
    /// for it now. Does nothing if no such read is in flight.
    pub fn promote(&self, page: PageAddress) {
        let (block, _) = self.inner.geometry.locate(page);
        let die = self.inner.geometry.die_of(block);
        self.inner.promote(&mut self.inner.state.borrow_mut(), die, page);
    }

    /// Sets whether client writes are stalled on background work. During a write stall, background
    /// work gets half of the time of a die that both want, instead of only a turn after its
    /// deadline.
    pub fn set_write_stall(&self, is_on: bool) {
        self.inner.state.borrow_mut().is_write_stall = is_on;
    }

    /// Programs one program unit starting at `first`. It is durable when the future completes.
    ///
    /// Requires: the pages of a block are submitted in order and at one priority; see `NandArray`.
    pub fn program(
        &self,
        first: PageAddress,
        images: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = ()> + use<> {
        let submitted = self.submit(Request::Program(first, images), class);
        async {
            let outcome = submitted.await;
            assert!(outcome.is_ok(), "programs do not fail in this model");
        }
    }

    /// Erases one block.
    pub fn erase(&self, block: BlockAddress, class: IoClass) -> impl Future<Output = ()> + use<> {
        let submitted = self.submit(Request::Erase(block), class);
        async {
            let outcome = submitted.await;
            assert!(outcome.is_ok(), "erases do not fail in this model");
        }
    }

    fn submit(&self, request: Request, class: IoClass) -> InFlight {
        self.submit_in(Lane::Shared, request, class)
    }

    fn submit_in(&self, lane: Lane, request: Request, class: IoClass) -> InFlight {
        let id = self.inner.submit(lane, request, class);
        InFlight { inner: Rc::clone(&self.inner), id, is_taken: false }
    }

    /// Returns the number of operations submitted so far. Crash points are counted in these.
    pub fn submitted(&self) -> u64 {
        self.inner.state.borrow().submitted
    }

    /// Returns the current counters.
    pub fn stats(&self) -> FlashStats {
        let (state, now) = (self.inner.state.borrow(), self.inner.handle.now());
        let mut stats = state.stats.clone();
        // The busy time of a die is added when it comes to rest; busy dies are added here.
        for since in state.dies.iter().filter_map(|die| die.busy_since) {
            stats.die_busy += now - since;
        }
        stats
    }

    /// Returns whether no operation is in flight.
    pub fn is_at_rest(&self) -> bool {
        let state = self.inner.state.borrow();
        let are_idle = state.dies.iter().all(Die::is_at_rest);
        are_idle && state.channels.iter().all(Channel::is_at_rest)
    }

    /// Saves or restores the state of idle flash, except its cells ([`NandArray::carry_block`]).
    pub fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        let state = &mut *self.inner.state.borrow_mut();
        state.dies.iter_mut().try_for_each(|die| die.carry(by))?;
        state.channels.iter_mut().try_for_each(|channel| channel.carry(by))?;
        state.stats.carry(by)?;
        state.error_rng.carry(by)?;
        by.u64(&mut state.submitted)?;
        by.bool(&mut state.is_write_stall)
    }

    /// Accesses the cells without taking time: for format, recovery scans and tests.
    pub fn with_array<T>(&self, look: impl FnOnce(&mut NandArray) -> T) -> T {
        look(&mut self.inner.state.borrow_mut().array)
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

/// The future of a read. Dropping it does not stop the operation.
#[must_use = "the read goes on without it, but nobody learns what it brought"]
pub struct PageReading(InFlight);

impl Future for PageReading {
    type Output = Result<PageImage, ReadError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map_ok(|page| page.expect("a read that did not fail brings a page"))
    }
}

/// The future of an operation. Dropping it does not stop the operation.
struct InFlight {
    inner: Rc<Inner>,
    id: OperationId,
    is_taken: bool,
}

impl Future for InFlight {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let Self { inner, id, is_taken } = &mut *self;
        let operations = &mut inner.state.borrow_mut().operations;
        let operation = operations.get(*id);
        if let Some(outcome) = operation.outcome.take() {
            *is_taken = true;
            operations.remove(*id);
            return Poll::Ready(outcome);
        }
        match &mut operation.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            empty => *empty = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.is_taken {
            return;
        }
        let operations = &mut self.inner.state.borrow_mut().operations;
        let operation = operations.get(self.id);
        if operation.outcome.is_some() {
            operations.remove(self.id);
        } else {
            operation.is_abandoned = true;
        }
    }
}
