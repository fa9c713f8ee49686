//! What each member has of each extent. Pure bookkeeping; no I/O here.

use pages::{ExtentId, Stream};

/// What a member has of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    /// All of it, or the extent is empty.
    Whole,
    /// Nothing that could be relied on.
    Absent,
    /// The first so many stripes, with a hole among the last of them, or with a header that could not be read. They are served until the
    /// member is emptied, to be filled with the extent again.
    Torn {
        /// Stripes it has.
        rows: u32,
    },
    /// It is being filled in: the first so many stripes.
    Filling {
        /// Stripes it has.
        done: u32,
        /// The stripe that is being filled in was written meanwhile.
        again: bool,
    },
}

/// An extent of the volume.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Extent {
    /// Counts how often it was opened or released: whoever waited meanwhile finds out by it.
    pub life: u64,
    pub is_live: bool,
    pub generation: u64,
    pub stream: Stream,
    /// Stripes that may hold anything.
    pub rows: u32,
    /// Whether no more stripes are appended: it counts as full.
    pub is_closed: bool,
    /// Stripes whose appends are under way.
    pub under_way: Vec<u32>,
    /// Headers whose appends are under way.
    pub headers_under_way: usize,
    /// Appends that began or ended.
    pub appends: u64,
    /// As many of them as are durable.
    pub synced: u64,
    /// The run of the volume that opened it.
    pub run: u64,
    /// Of the headers.
    pub revision: u64,
    /// Members that the headers say have not all of it.
    pub noted: u64,
    /// Whether the headers are being written again.
    pub is_noting: bool,
    /// Whether something writes to it that a release has to wait for: headers again, or a filling.
    pub busy: u32,
    /// Headers, and stripes in `plm_cache`, that are on their way to members: a release waits for them as well.
    pub on_their_way: u32,
    /// Headers and chunks that wait for that before they are given to their members.
    pub put_off: u32,
    /// Members that are still being filled with an earlier life of it.
    pub deferred: u64,
    /// Whether a member lacks it that would be noted if anything had been synced.
    pub seems_unsynced: bool,
    /// Whether it may have been opened again by members that do not answer, or were replaced.
    pub may_be_older: bool,
    /// Members in doubt that keep what they have, because others cannot give it.
    pub kept: u64,
    /// Members whose filling with it waits until others can be read again.
    pub put_off_filling: u64,
    /// By member.
    pub on: Vec<Presence>,
    /// Members that have to be emptied before the extent is opened.
    pub left_over: u64,
    /// Members with a header of an opening that does not count, or one that cannot be read.
    pub stray: u64,
    /// Members that are not listed and have their headers of the opening durably before others get theirs. Without: one lost besides, and
    /// nobody could say whether anything of the extent was synced.
    pub first: u64,
}

impl Extent {
    pub(crate) fn empty(members: usize) -> Self {
        Self {
            life: 0,
            is_live: false,
            generation: 0,
            stream: Stream::Objects,
            rows: 0,
            is_closed: false,
            under_way: Vec::new(),
            headers_under_way: 0,
            appends: 0,
            synced: 0,
            run: 0,
            revision: 0,
            noted: 0,
            is_noting: false,
            busy: 0,
            on_their_way: 0,
            put_off: 0,
            deferred: 0,
            seems_unsynced: false,
            may_be_older: false,
            kept: 0,
            put_off_filling: 0,
            on: vec![Presence::Whole; members],
            left_over: 0,
            stray: 0,
            first: 0,
        }
    }

    /// It is opened; those that are `missing` have nothing of it.
    ///
    /// After a power cut an extent may be opened that nothing of was released, because the store knows
    /// nothing in it. A member that is being filled with it is written to when that has been given up.
    pub(crate) fn open(&mut self, generation: u64, stream: Stream, missing: u64) {
        let is_filling = |member: &usize| matches!(self.on[*member], Presence::Filling { .. });
        let filling = bits((0..self.on.len()).filter(is_filling));
        *self = Self {
            life: self.life + 1,
            is_live: true,
            generation,
            stream,
            noted: missing,
            busy: self.busy,
            on_their_way: self.on_their_way,
            deferred: self.deferred | filling,
            left_over: self.left_over & missing,
            ..Self::empty(self.on.len())
        };
        for member in (0..self.on.len()).filter(|member| missing & bit(*member) != 0) {
            self.on[member] = Presence::Absent;
        }
    }

    /// It is empty; those that are `missing` were not told.
    pub(crate) fn release(&mut self, missing: u64) {
        *self = Self {
            life: self.life + 1,
            busy: self.busy,
            on_their_way: self.on_their_way,
            deferred: self.deferred,
            left_over: missing,
            ..Self::empty(self.on.len())
        };
    }

    /// A header or a chunk of the life `of` is given to its member now.
    pub(crate) fn end_put_off(&mut self, of: u64) {
        self.put_off -= u32::from(self.life == of);
    }

    /// A member's header of an opening is there, or the member has turned out to be lost.
    pub(crate) fn end_header(&mut self, life: u64, member: usize) {
        self.on_their_way -= 1;
        if self.life == life {
            self.headers_under_way -= 1;
            self.first &= !bit(member);
        }
    }

    /// Whether something is on its way that a release must not overtake.
    pub(crate) fn holds_up_release(&self) -> bool {
        self.busy + self.on_their_way > 0
    }

    /// A stripe is going to be written: which members have to have it now.
    pub(crate) fn begin_row(&mut self, row: u32) -> u64 {
        self.rows = self.rows.max(row + 1);
        self.under_way.push(row);
        self.appends += 1;
        let takers = self.takers(row);
        for presence in &mut self.on {
            match presence {
                Presence::Filling { done, again } => *again |= row == *done,
                Presence::Torn { rows } => *rows = row.min(*rows),
                Presence::Whole | Presence::Absent => {}
            }
        }
        takers
    }

    /// Members that a stripe would go to.
    pub(crate) fn takers(&self, row: u32) -> u64 {
        bits((0..self.on.len()).filter(|member| match self.on[*member] {
            Presence::Whole => true,
            Presence::Filling { done, .. } => row < done,
            Presence::Torn { .. } | Presence::Absent => false,
        }))
    }

    pub(crate) fn end_row(&mut self, row: u32) {
        let at = self.under_way.iter().position(|other| *other == row);
        self.under_way.swap_remove(at.expect("the stripe is under way"));
        self.appends += 1;
    }

    pub(crate) fn needs_filling(&self, member: usize) -> bool {
        let lacks = matches!(self.on[member], Presence::Absent | Presence::Torn { .. });
        self.is_live && lacks && (self.kept | self.put_off_filling) & bit(member) == 0
    }

    pub(crate) fn is_unsynced(&self) -> bool {
        self.appends > self.synced
    }

    /// Whether a member has a stripe.
    pub(crate) fn has(&self, member: usize, row: u32) -> bool {
        match self.on[member] {
            Presence::Whole => true,
            Presence::Absent => false,
            Presence::Filling { done: rows, .. } | Presence::Torn { rows } => row < rows,
        }
    }

    /// Members that have not all of it.
    pub(crate) fn missing(&self) -> u64 {
        let lacks = |member: &usize| self.on[*member] != Presence::Whole;
        bits((0..self.on.len()).filter(lacks))
    }

    /// Whether the headers have to say more than they do.
    pub(crate) fn has_unnoted_absence(&self) -> bool {
        self.missing() & !self.noted != 0
    }

    /// What the filling of a member has to do next.
    pub(crate) fn next_fill(&mut self, member: usize, life: u64) -> Fill {
        let Presence::Filling { done, again } = &mut self.on[member] else {
            return Fill::GivenUp;
        };
        let row = *done;
        if self.life != life {
            Fill::GivenUp
        } else if row >= self.rows {
            self.on[member] = Presence::Whole;
            Fill::Done
        } else if self.under_way.contains(&row) {
            Fill::Wait
        } else {
            *again = false;
            Fill::Row(row)
        }
    }

    /// A stripe was filled in. False if it has to be filled in again.
    pub(crate) fn end_fill(&mut self, member: usize, checks: bool) {
        if let Presence::Filling { done, again } = &mut self.on[member]
            && (!*again || !checks)
        {
            *done += 1;
        }
    }
}

/// What the filling of a member has to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fill {
    /// Fill in this stripe.
    Row(u32),
    /// Wait until the next stripe has been appended to the others.
    Wait,
    /// The member has all of the extent.
    Done,
    /// The extent is another, or the member is lost.
    GivenUp,
}

/// A member as a set of bits.
pub(crate) const fn bit(member: usize) -> u64 {
    1 << member
}

/// Members as a set of bits.
pub(crate) fn bits(members: impl IntoIterator<Item = usize>) -> u64 {
    members.into_iter().fold(0, |all, member| all | bit(member))
}

/// The extents of a volume.
pub(crate) struct Extents(Vec<Extent>);

impl Extents {
    pub(crate) fn new(extents: u32, members: usize) -> Self {
        Self(vec![Extent::empty(members); extents as usize])
    }

    pub(crate) fn get(&self, id: ExtentId) -> &Extent {
        &self.0[id.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, id: ExtentId) -> &mut Extent {
        &mut self.0[id.0 as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ExtentId, &Extent)> {
        (0..).map(ExtentId).zip(&self.0)
    }

    /// Whether a member waits to be filled with an extent.
    pub(crate) fn is_filling_put_off(&self, member: usize) -> bool {
        self.0.iter().any(|extent| extent.put_off_filling & bit(member) != 0)
    }

    /// A member may be filled again with what was put off.
    pub(crate) fn take_up_filling(&mut self, member: usize) {
        self.0.iter_mut().for_each(|extent| extent.put_off_filling &= !bit(member));
    }

    /// A member is lost with all it held.
    pub(crate) fn lose(&mut self, member: usize) {
        for extent in &mut self.0 {
            if extent.is_live {
                extent.on[member] = Presence::Absent;
            }
        }
    }

    /// A fresh member has taken its place, on which there is nothing.
    pub(crate) fn forget_left_over(&mut self, member: usize) {
        for extent in &mut self.0 {
            extent.left_over &= !bit(member);
            extent.kept &= !bit(member);
        }
    }

    /// A member takes no more writes: what it was not synced with is not to be relied on.
    pub(crate) fn lose_unsynced(&mut self, member: usize) {
        for extent in self.0.iter_mut().filter(|extent| extent.is_live) {
            let is_kept = match extent.on[member] {
                Presence::Whole => !extent.is_unsynced() && extent.under_way.is_empty(),
                // It was written before the last power cut.
                Presence::Torn { .. } => true,
                Presence::Absent | Presence::Filling { .. } => false,
            };
            if !is_kept {
                extent.on[member] = Presence::Absent;
            }
        }
    }

    /// Stripes that a member has to be filled with.
    pub(crate) fn rows_to_fill(&self, member: usize) -> u64 {
        let left = |extent: &Extent| match extent.on[member] {
            Presence::Whole => 0,
            Presence::Absent | Presence::Torn { .. } => extent.rows,
            Presence::Filling { done, .. } => extent.rows.saturating_sub(done),
        };
        self.0.iter().filter(|extent| extent.is_live).map(|extent| u64::from(left(extent))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> Extent {
        let mut extent = Extent::empty(3);
        extent.open(5, Stream::Index, bit(1));
        extent
    }

    #[test]
    fn a_stripe_goes_to_who_keeps_up_and_is_filled_in_for_others() {
        let mut extent = opened();
        assert_eq!(extent.begin_row(0), bit(0) | bit(2));
        extent.on[1] = Presence::Filling { done: 0, again: false };
        assert_eq!(extent.next_fill(1, extent.life), Fill::Wait);
        extent.end_row(0);
        assert_eq!(extent.next_fill(1, extent.life), Fill::Row(0));
        assert_eq!(extent.begin_row(0), bit(0) | bit(2), "it is being filled in");
        extent.end_fill(1, true);
        assert_eq!(extent.next_fill(1, extent.life), Fill::Wait, "it has to be filled in again");
        extent.end_row(0);
        assert_eq!(extent.next_fill(1, extent.life), Fill::Row(0));
        extent.end_fill(1, true);
        assert!(extent.has(1, 0) && !extent.has(1, 1));
        assert_eq!(extent.next_fill(1, extent.life), Fill::Done);
        assert_eq!(extent.begin_row(1), bit(0) | bit(1) | bit(2));
    }

    #[test]
    fn a_filling_ends_with_the_life_of_the_extent() {
        let mut extent = opened();
        let life = extent.life;
        extent.on[1] = Presence::Filling { done: 0, again: false };
        extent.release(0);
        assert_eq!(extent.next_fill(1, life), Fill::GivenUp);
    }

    #[test]
    fn headers_are_written_again_when_more_is_missing() {
        let mut extent = opened();
        assert!(!extent.has_unnoted_absence(), "it was opened without that member");
        extent.on[2] = Presence::Absent;
        assert!(extent.has_unnoted_absence());
        assert_eq!(extent.missing(), bit(1) | bit(2));
    }

    #[test]
    fn a_member_that_takes_no_writes_keeps_what_was_synced() {
        let mut extents = Extents::new(3, 2);
        for id in [0, 1] {
            extents.get_mut(ExtentId(id)).open(1, Stream::Objects, 0);
        }
        extents.get_mut(ExtentId(1)).begin_row(0);
        extents.lose_unsynced(0);
        let on = |id| extents.get(ExtentId(id)).on[0];
        assert_eq!([on(0), on(1), on(2)], [Presence::Whole, Presence::Absent, Presence::Whole]);
        assert_eq!(extents.rows_to_fill(0), 1);
        assert!(!extents.get(ExtentId(0)).needs_filling(0));
    }
}
