//! The volume: its members, and who of them is lost.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::mem::replace;
use std::rc::Rc;

use pages::{ExtentId, Medium, MediumError, Shape, Stream};
use runtime::{Cores, Handle, Nanos, Notify};

use crate::error::VolumeError;
use crate::extents::{Extents, Presence, bit, bits};
use crate::incarnations::{incarnation_of, tenure};
use crate::layout::Stripes;
use crate::options::{Options, Progress, VolumeStats};
use crate::planted::{Fault, Planted};
use crate::run;
use crate::windows::{Gate, State, Windows};

/// What a volume is made of.
pub struct Setup<M> {
    /// Clock and tasks.
    pub handle: Handle,
    /// The processor that pays for parity.
    pub cores: Rc<Cores>,
    /// The members, in their order, all of one shape.
    pub members: Vec<M>,
    /// What it is told.
    pub options: Options,
    /// A deliberate bug, for tests of the tests.
    pub planted: Planted,
}

/// A medium made of media. Clones are handles to the same.
pub struct Volume<M> {
    pub(crate) inner: Rc<Inner<M>>,
}

impl<M> Clone for Volume<M> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

pub(crate) struct Inner<M> {
    pub handle: Handle,
    cores: Rc<Cores>,
    pub options: Options,
    pub stripes: Stripes,
    pub planted: Planted,
    members: RefCell<Vec<Member<M>>>,
    pub extents: RefCell<Extents>,
    /// This run of the volume: see run.rs.
    pub run: Cell<u64>,
    pub stats: Cell<VolumeStats>,
    /// Something about extents has changed.
    pub changed: Notify,
    /// Headers have been written, or their extents are others: apart from [`Self::changed`], because each stripe
    /// under way would be woken by every other one.
    pub headers_changed: Notify,
    /// Any place can be written at any time.
    pub is_anywhere: bool,
    /// Members that had a header which could not be read.
    pub unread: Cell<u64>,
    /// Members that lack extents without being noted, perhaps: see [`crate::header::Standing`].
    pub unlisted: Cell<u64>,
    /// Members with headers of openings that do not count, while these are being overwritten.
    pub tidied: Cell<u64>,
    /// While members are taken through windows.
    pub windows: RefCell<Option<Rc<Windows>>>,
}

/// Whether a member can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// For everything.
    Serving,
    /// For reads of what it was synced with.
    ReadOnly,
    /// For nothing.
    Gone,
}

struct Member<M> {
    medium: Rc<Gate<M>>,
    condition: Condition,
    /// As others are told it: see incarnations.rs.
    tenure: u64,
    /// Streams of which it has headers of this run, a bit each.
    headers: u8,
    /// Whether one of them is durable.
    takes_part: bool,
    /// Whether a task fills it.
    is_filling: bool,
    /// With which extent.
    filled_with: Option<ExtentId>,
    filled_rows: u64,
}

/// A member as it was when a command was submitted to it: it may be replaced before that has ended.
pub(crate) struct Taker<M> {
    pub index: usize,
    pub incarnation: u32,
    pub medium: Rc<Gate<M>>,
}

impl<M> Taker<M> {
    /// Submits a command to the member, which is known by it when that ends.
    pub(crate) fn submit<F>(self, command: impl FnOnce(&Gate<M>) -> F) -> (Self, F) {
        let under_way = command(&self.medium);
        (self, under_way)
    }
}

impl<M> Clone for Taker<M> {
    fn clone(&self) -> Self {
        Self { medium: Rc::clone(&self.medium), ..*self }
    }
}

impl<M: Medium> Volume<M> {
    /// A new volume of members on which there is nothing.
    ///
    /// # Errors
    /// [`VolumeError`] if they do not fit together.
    pub fn create(setup: Setup<M>) -> Result<Self, VolumeError> {
        let Setup { handle, cores, members, options, planted } = setup;
        let shapes: Vec<Shape> = members.iter().map(Medium::shape).collect();
        let first = *shapes.first().ok_or(VolumeError::Members { least: 1, found: 0 })?;
        if let Some(member) = shapes.iter().position(|shape| *shape != first) {
            return Err(VolumeError::Unlike { member });
        }
        assert!(options.refill_bytes_per_second > 0, "a member is filled at some rate");
        let stripes = Stripes::new(options.layout, members.len(), first)?;
        let is_anywhere = members[0].is_written_anywhere();
        let extents = RefCell::new(Extents::new(first.extents, members.len()));
        let member = |medium| Member {
            medium: Rc::new(Gate::new(&handle, medium)),
            condition: Condition::Serving,
            tenure: 0,
            headers: 0,
            takes_part: false,
            is_filling: false,
            filled_with: None,
            filled_rows: 0,
        };
        let members = RefCell::new(members.into_iter().map(member).collect());
        let run = Cell::new(run::after(0, &handle));
        let inner = Inner {
            handle,
            cores,
            options,
            stripes,
            planted,
            members,
            extents,
            run,
            stats: Cell::default(),
            changed: Notify::default(),
            headers_changed: Notify::default(),
            is_anywhere,
            unread: Cell::default(),
            unlisted: Cell::default(),
            tidied: Cell::default(),
            windows: RefCell::default(),
        };
        Ok(Self { inner: Rc::new(inner) })
    }

    /// What it did.
    pub fn stats(&self) -> VolumeStats {
        self.inner.stats.get()
    }

    /// Members that are lost, or take no more writes, by their numbers.
    pub fn failed_members(&self) -> Vec<usize> {
        let members = self.inner.members.borrow();
        let failed = members.iter().enumerate().filter(|(_, m)| m.condition != Condition::Serving);
        failed.map(|(index, _)| index).collect()
    }

    /// Members that answer and lack something that was written, by their numbers. A member has an extent that it
    /// was filled with once a header of its own says so durably; one in the place of another is behind until it is listed.
    pub fn members_behind(&self) -> Vec<usize> {
        let (extents, members) = (self.inner.extents.borrow(), self.inner.members.borrow());
        let is_behind = |(index, member): &(usize, &Member<M>)| {
            let lacks = member.filled_with.is_some() || extents.rows_to_fill(*index) > 0;
            let waits = (self.inner.unlisted.get() | self.inner.tidied.get()) & bit(*index) != 0;
            member.condition != Condition::Gone && (lacks || waits)
        };
        members.iter().enumerate().filter(is_behind).map(|(index, _)| index).collect()
    }

    /// Members of which a part could not be read when the volume was put together, by their numbers.
    pub fn unread_members(&self) -> Vec<usize> {
        let unread = self.inner.unread.get();
        (0..self.inner.stripes.members()).filter(|member| unread & bit(*member) != 0).collect()
    }

    /// A fresh member takes the place of `member`, which need not have failed. It is filled in the
    /// background; extents that are opened from now on lie on it from their beginning.
    ///
    /// # Errors
    /// [`VolumeError::Unlike`].
    ///
    /// # Panics
    /// If there is no such member.
    pub fn replace(&self, member: usize, medium: M) -> Result<(), VolumeError> {
        let inner = &self.inner;
        if medium.shape() != inner.stripes.member_shape()
            || medium.is_written_anywhere() != inner.is_anywhere
        {
            return Err(VolumeError::Unlike { member });
        }
        let before = {
            let slot = &mut inner.members.borrow_mut()[member];
            let gate = Gate::new(&inner.handle, medium);
            if inner.windows.borrow().is_some() {
                // It comes next.
                gate.flow().set_state(State::Und);
            }
            let before = replace(&mut slot.medium, Rc::new(gate));
            (slot.condition, slot.filled_rows) = (Condition::Serving, 0);
            let next = incarnation_of(slot.tenure).saturating_add(1);
            (slot.tenure, slot.headers, slot.takes_part) = (tenure(next, 0), 0, false);
            before
        };
        before.give_up(MediumError::Gone);
        {
            let mut extents = inner.extents.borrow_mut();
            extents.lose(member);
            extents.forget_left_over(member);
        }
        inner.unlist(bit(member));
        inner.tell_of_members();
        inner.start_filling(member);
        Ok(())
    }

    /// How far `member` is filled; `None` if nothing is left to do, or nothing can be done.
    pub fn progress(&self, member: usize) -> Option<Progress> {
        let members = self.inner.members.borrow();
        let slot = &members[member];
        let left = self.inner.extents.borrow().rows_to_fill(member);
        let done = slot.filled_rows;
        let extent = slot.filled_with;
        slot.is_filling.then_some(Progress { extent, done, of: done + left })
    }

    /// Waits until no member is being filled, and headers of openings that do not count are gone.
    pub async fn filled(&self) {
        let is_filling = || self.inner.members.borrow().iter().any(|member| member.is_filling);
        let is_idle = || self.inner.tidied.get() == 0 && !is_filling();
        self.inner.changed.wait_until(is_idle).await;
    }
}

impl<M: Medium> Inner<M> {
    pub(crate) fn count(&self, change: impl FnOnce(&mut VolumeStats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }

    pub(crate) fn condition(&self, member: usize) -> Condition {
        self.members.borrow()[member].condition
    }

    /// A member, to be given commands.
    pub(crate) fn taker(&self, index: usize) -> Taker<M> {
        let member = &self.members.borrow()[index];
        let incarnation = incarnation_of(member.tenure);
        Taker { index, incarnation, medium: Rc::clone(&member.medium) }
    }

    /// The tenures of all members, as they are told by others.
    pub(crate) fn tenures(&self) -> Vec<u64> {
        self.members.borrow().iter().map(|member| member.tenure).collect()
    }

    pub(crate) fn set_tenures(&self, tenures: &[u64]) {
        for (member, tenure) in self.members.borrow_mut().iter_mut().zip(tenures) {
            member.tenure = *tenure;
        }
    }

    /// A member has a header of this run.
    pub(crate) fn remember_header(&self, taker: &Taker<M>, stream: Stream) {
        if self.is_current(taker) {
            self.members.borrow_mut()[taker.index].headers |= 1 << stream as u8;
        }
    }

    /// Whether a sync that is submitted now makes a header of this run durable.
    pub(crate) fn covers_header(&self, member: usize, stream: Stream) -> bool {
        self.members.borrow()[member].headers & 1 << stream as u8 != 0
    }

    /// A member has a header of this run durably.
    pub(crate) fn remember_part(&self, taker: &Taker<M>) {
        if self.is_current(taker) {
            self.members.borrow_mut()[taker.index].takes_part = true;
        }
    }

    /// From now on others are told which members take part in this run. False if they were.
    pub(crate) fn tell_tenures(&self) -> bool {
        let before = self.tenures();
        for taker in self.takers() {
            let now = self.tenure_now(&taker);
            let member = &mut self.members.borrow_mut()[taker.index];
            member.tenure = if member.takes_part { now } else { member.tenure };
        }
        before != self.tenures()
    }

    /// A member's tenure as it says itself.
    pub(crate) fn tenure_now(&self, taker: &Taker<M>) -> u64 {
        tenure(taker.incarnation, run::count(self.run.get()))
    }

    /// All members, in order.
    pub(crate) fn takers(&self) -> Vec<Taker<M>> {
        (0..self.stripes.members()).map(|index| self.taker(index)).collect()
    }

    /// Members that take writes.
    pub(crate) fn writable(&self) -> u64 {
        let members = self.members.borrow();
        let writable =
            members.iter().enumerate().filter(|(_, m)| m.condition == Condition::Serving);
        bits(writable.map(|(index, _)| index))
    }

    /// The set of all members, lost ones included.
    pub(crate) fn all(&self) -> u64 {
        bits(0..self.stripes.members())
    }

    /// Whether a member that was given a command is still there.
    pub(crate) fn is_current(&self, taker: &Taker<M>) -> bool {
        Rc::ptr_eq(&self.members.borrow()[taker.index].medium, &taker.medium)
    }

    /// A member has failed: what it can be used for from now on.
    pub(crate) fn fail(&self, taker: &Taker<M>, error: MediumError) {
        if !self.is_current(taker) {
            return;
        }
        let condition = match error {
            MediumError::Gone => Condition::Gone,
            _ => Condition::ReadOnly,
        };
        {
            let known = &mut self.members.borrow_mut()[taker.index].condition;
            if *known == condition || *known == Condition::Gone {
                return;
            }
            *known = condition;
        }
        self.count(|stats| stats.lost_members += 1);
        let mut extents = self.extents.borrow_mut();
        match condition {
            Condition::Gone => extents.lose(taker.index),
            _ => extents.lose_unsynced(taker.index),
        }
        drop(extents);
        taker.medium.give_up(error);
        self.tell_of_members();
    }

    /// An extent was opened or released, or has its header.
    pub(crate) fn tell_of_headers(&self) {
        self.headers_changed.notify_all();
        self.changed.notify_all();
    }

    /// Others than before are there.
    fn tell_of_members(&self) {
        self.changed.notify_all();
        if let Some(windows) = self.windows() {
            windows.changed.notify_all();
        }
    }

    /// Whether a member can be asked for a stripe.
    pub(crate) fn serves(&self, member: usize, extent: pages::ExtentId, row: u32) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(extent);
        let is_filling = matches!(extent.on[member], Presence::Filling { .. });
        let believes = is_filling && self.planted.has(Fault::ServeBeforeFilled);
        self.condition(member) != Condition::Gone && (extent.has(member, row) || believes)
    }

    /// Whether a member's chunk of a stripe can be joined with others.
    pub(crate) fn serves_rebuilds(&self, member: usize, extent: pages::ExtentId, row: u32) -> bool {
        let mixes = self.planted.has(Fault::MixGenerations);
        self.serves(member, extent, row) || mixes && self.condition(member) != Condition::Gone
    }

    /// Takes the processor for the exclusive or of so many pages.
    pub(crate) fn spend_on_parity(&self, pages: u32) -> impl Future<Output = ()> + use<M> {
        let bytes = u64::from(pages) * u64::from(self.stripes.member_shape().page_bytes);
        let until = self.cores.book(self.options.xor_cost(bytes));
        // No timer for what is done at once.
        let sleep = (until > self.handle.now()).then(|| self.handle.sleep_until(until));
        async move {
            if let Some(sleep) = sleep {
                sleep.await;
            }
        }
    }

    /// Begins or ends the filling of a member; false if it is as it should be.
    pub(crate) fn set_filling(&self, member: usize, is_on: bool) -> bool {
        let before = replace(&mut self.members.borrow_mut()[member].is_filling, is_on);
        self.changed.notify_all();
        before != is_on
    }

    /// A member is being filled with an extent, or with none at the moment.
    pub(crate) fn set_filled_with(&self, member: usize, extent: Option<ExtentId>) {
        self.members.borrow_mut()[member].filled_with = extent;
    }

    /// A member was filled with one more stripe; returns when the next one is due.
    pub(crate) fn count_filled(&self, member: usize, due: Nanos) -> Nanos {
        let chunk = self.stripes.chunk_pages();
        let bytes = u64::from(chunk) * u64::from(self.stripes.member_shape().page_bytes);
        self.members.borrow_mut()[member].filled_rows += 1;
        self.count(|stats| stats.refilled_bytes += bytes);
        let nanos =
            u128::from(bytes) * 1_000_000_000 / u128::from(self.options.refill_bytes_per_second);
        due.max(self.handle.now()) + Nanos(nanos as u64)
    }
}
