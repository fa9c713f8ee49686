//! The volume: its members and their conditions.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::mem::replace;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, Shape, Stream};
use runtime::{Cores, Handle, Nanos, Notify};

use crate::error::VolumeError;
use crate::extents::{Extents, Presence, bit, bits};
use crate::layout::Stripes;
use crate::options::{Options, Progress, VolumeStats};
use crate::planted::{Fault, Planted};
use crate::run;
use crate::tenure::{incarnation_of, tenure};
use crate::windows::{Gate, JournalWrites, Pass, State, Windows};

/// The parts of a volume.
pub struct Setup<M> {
    /// The clock and task spawner.
    pub handle: Handle,
    /// The processor whose time parity uses.
    pub cores: Rc<Cores>,
    /// The members, in order, all of one shape.
    pub members: Vec<M>,
    /// The options.
    pub options: Options,
    /// A deliberate bug, to test the tests.
    pub planted: Planted,
}

/// A medium made of several media. Clones share the same volume.
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
    /// The number of this run: see run.rs.
    pub run: Cell<u64>,
    pub stats: Cell<VolumeStats>,
    /// Notified when the state of extents or members changes.
    pub changed: Notify,
    /// Notified when headers have been written or extents opened or released. Separate from
    /// [`Self::changed`], because otherwise each stripe in progress would wake all others.
    pub headers_changed: Notify,
    /// Whether any place of a member can be written at any time.
    pub is_anywhere: bool,
    /// Members with a header that could not be read.
    pub unread: Cell<u64>,
    /// Members that may lack extents without being noted: see [`crate::header::Standing`].
    pub unlisted: Cell<u64>,
    /// Members whose headers of openings that do not count are being overwritten.
    pub tidied: Cell<u64>,
    /// The windows, while they are on.
    pub windows: RefCell<Option<Rc<Windows>>>,
}

/// The operations that a member can be used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// Reads and writes.
    Serving,
    /// Reads of the data that was synced.
    ReadOnly,
    /// No operation.
    Gone,
}

struct Member<M> {
    medium: Rc<Gate<M>>,
    condition: Condition,
    /// The tenure that the other members record: see incarnations.rs.
    tenure: u64,
    /// Streams of which the member has a header of this run, as a bit set.
    headers: u8,
    /// Whether one of these headers is durable.
    takes_part: bool,
    /// Whether a task is filling the member.
    is_filling: bool,
    /// The extent it is being filled with.
    filled_with: Option<ExtentId>,
    filled_rows: u64,
}

/// A member at the time a command was submitted to it. It may be replaced before the command ends.
pub(crate) struct Taker<M> {
    pub index: usize,
    pub incarnation: u32,
    pub medium: Rc<Gate<M>>,
}

impl<M> Taker<M> {
    /// Submits a command to the member. Returns the member with the command, to identify it when
    /// the command ends.
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
    /// Creates a volume on empty members.
    ///
    /// # Errors
    /// Returns [`VolumeError`] if the members do not fit together.
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

    /// Returns the statistics.
    pub fn stats(&self) -> VolumeStats {
        self.inner.stats.get()
    }

    /// Returns the indexes of members that are lost, or take no more writes.
    pub fn failed_members(&self) -> Vec<usize> {
        let members = self.inner.members.borrow();
        let failed = members.iter().enumerate().filter(|(_, m)| m.condition != Condition::Serving);
        failed.map(|(index, _)| index).collect()
    }

    /// Returns the indexes of members that answer and lack some of the written data. A filled
    /// member has an extent only once its own header records that durably. A replacement member is
    /// behind until it is listed.
    pub fn members_behind(&self) -> Vec<usize> {
        let (extents, members) = (self.inner.extents.borrow(), self.inner.members.borrow());
        let is_behind = |(index, member): &(usize, &Member<M>)| {
            let lacks = member.filled_with.is_some() || extents.rows_to_fill(*index) > 0;
            let waits = (self.inner.unlisted.get() | self.inner.tidied.get()) & bit(*index) != 0;
            member.condition != Condition::Gone && (lacks || waits)
        };
        members.iter().enumerate().filter(is_behind).map(|(index, _)| index).collect()
    }

    /// Returns the indexes of members with a header that could not be read when the volume was
    /// assembled.
    pub fn unread_members(&self) -> Vec<usize> {
        let unread = self.inner.unread.get();
        (0..self.inner.stripes.members()).filter(|member| unread & bit(*member) != 0).collect()
    }

    /// Replaces `member`, which need not have failed, by a fresh one. The fresh member is filled in
    /// the background; extents that are opened from now on use it from the start.
    ///
    /// # Errors
    /// Returns [`VolumeError::Unlike`] if the shape or kind of `medium` differs.
    ///
    /// # Panics
    /// If the member does not exist.
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
                // A member outside its window has the next slot.
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

    /// Returns the progress of filling `member`; `None` if it is not being filled.
    pub fn progress(&self, member: usize) -> Option<Progress> {
        let members = self.inner.members.borrow();
        let slot = &members[member];
        let left = self.inner.extents.borrow().rows_to_fill(member);
        let done = slot.filled_rows;
        let extent = slot.filled_with;
        slot.is_filling.then_some(Progress { extent, done, of: done + left })
    }

    /// Waits until no member is being filled, and headers of openings that do not count have been
    /// overwritten.
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

    /// Returns a member, to submit commands to.
    pub(crate) fn taker(&self, index: usize) -> Taker<M> {
        let member = &self.members.borrow()[index];
        let incarnation = incarnation_of(member.tenure);
        Taker { index, incarnation, medium: Rc::clone(&member.medium) }
    }

    /// Returns the tenures of all members, as the other members record them.
    pub(crate) fn tenures(&self) -> Vec<u64> {
        self.members.borrow().iter().map(|member| member.tenure).collect()
    }

    pub(crate) fn set_tenures(&self, tenures: &[u64]) {
        for (member, tenure) in self.members.borrow_mut().iter_mut().zip(tenures) {
            member.tenure = *tenure;
        }
    }

    /// Records that a member has a header of this run.
    pub(crate) fn remember_header(&self, taker: &Taker<M>, stream: Stream) {
        if self.is_current(taker) {
            self.members.borrow_mut()[taker.index].headers |= 1 << stream as u8;
        }
    }

    /// Whether a sync that is submitted now makes a header of this run durable.
    pub(crate) fn covers_header(&self, member: usize, stream: Stream) -> bool {
        self.members.borrow()[member].headers & 1 << stream as u8 != 0
    }

    /// Records that a member has a durable header of this run.
    pub(crate) fn remember_part(&self, taker: &Taker<M>) {
        if self.is_current(taker) {
            self.members.borrow_mut()[taker.index].takes_part = true;
        }
    }

    /// Updates the tenures of the members that take part in this run, for the headers of the
    /// others. Returns whether any changed.
    pub(crate) fn tell_tenures(&self) -> bool {
        let before = self.tenures();
        for taker in self.takers() {
            let now = self.tenure_now(&taker);
            let member = &mut self.members.borrow_mut()[taker.index];
            member.tenure = if member.takes_part { now } else { member.tenure };
        }
        before != self.tenures()
    }

    /// Returns a member's tenure in this run, for its own headers.
    pub(crate) fn tenure_now(&self, taker: &Taker<M>) -> u64 {
        tenure(taker.incarnation, run::count(self.run.get()))
    }

    /// Returns all members, in order.
    pub(crate) fn takers(&self) -> Vec<Taker<M>> {
        (0..self.stripes.members()).map(|index| self.taker(index)).collect()
    }

    /// Returns the set of members that take writes.
    pub(crate) fn writable(&self) -> u64 {
        let members = self.members.borrow();
        let writable =
            members.iter().enumerate().filter(|(_, m)| m.condition == Condition::Serving);
        bits(writable.map(|(index, _)| index))
    }

    /// Returns the set of all members, including lost ones.
    pub(crate) fn all(&self) -> u64 {
        bits(0..self.stripes.members())
    }

    /// Whether the member that a command was submitted to has not been replaced.
    pub(crate) fn is_current(&self, taker: &Taker<M>) -> bool {
        Rc::ptr_eq(&self.members.borrow()[taker.index].medium, &taker.medium)
    }

    /// Records that a member has failed, and restricts its use accordingly.
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

    /// Returns the windows, while they are on.
    pub(crate) fn windows(&self) -> Option<Rc<Windows>> {
        self.windows.borrow().clone()
    }

    /// Whether writes of a stream wait for the slots of the members.
    pub(crate) fn pass(&self, stream: Stream) -> Pass {
        let windows = self.windows.borrow();
        let is_at_once =
            windows.as_ref().is_some_and(|it| it.options.journal == JournalWrites::AtOnce);
        if is_at_once && stream.is_journal() { Pass::AtOnce } else { Pass::InSlot }
    }

    /// Notifies waiters that an extent was opened or released, or has its header.
    pub(crate) fn tell_of_headers(&self) {
        self.headers_changed.notify_all();
        self.changed.notify_all();
    }

    /// Notifies waiters that a member failed or was replaced.
    fn tell_of_members(&self) {
        self.changed.notify_all();
        if let Some(windows) = self.windows() {
            windows.changed.notify_all();
        }
    }

    /// Whether a stripe can be read from a member.
    pub(crate) fn serves(&self, member: usize, extent: engine::ExtentId, row: u32) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(extent);
        let is_filling = matches!(extent.on[member], Presence::Filling { .. });
        let believes = is_filling && self.planted.has(Fault::ServeBeforeFilled);
        self.condition(member) != Condition::Gone && (extent.has(member, row) || believes)
    }

    /// Whether a member's chunk of a stripe can be combined with the others in a rebuild.
    pub(crate) fn serves_rebuilds(
        &self,
        member: usize,
        extent: engine::ExtentId,
        row: u32,
    ) -> bool {
        let mixes = self.planted.has(Fault::MixGenerations);
        self.serves(member, extent, row) || mixes && self.condition(member) != Condition::Gone
    }

    /// Books processor time for the exclusive or of `pages` pages.
    pub(crate) fn spend_on_parity(&self, pages: u32) -> impl Future<Output = ()> + use<M> {
        let bytes = u64::from(pages) * u64::from(self.stripes.member_shape().page_bytes);
        let until = self.cores.book(self.options.xor_cost(bytes));
        // No timer is needed if the time has passed already.
        let sleep = (until > self.handle.now()).then(|| self.handle.sleep_until(until));
        async move {
            if let Some(sleep) = sleep {
                sleep.await;
            }
        }
    }

    /// Starts or ends the filling of a member. Returns whether that changed its state.
    pub(crate) fn set_filling(&self, member: usize, is_on: bool) -> bool {
        let before = replace(&mut self.members.borrow_mut()[member].is_filling, is_on);
        self.changed.notify_all();
        before != is_on
    }

    /// Sets the extent that a member is being filled with, or `None`.
    pub(crate) fn set_filled_with(&self, member: usize, extent: Option<ExtentId>) {
        self.members.borrow_mut()[member].filled_with = extent;
    }

    /// Counts one more filled stripe of a member. Returns the time at which the next one is due.
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
