//! State of each extent on each member. Bookkeeping only, no I/O.

use engine::{ExtentId, Stream};

/// The part of an extent that a member has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Presence {
    /// All of it, or the extent is empty.
    Whole,
    /// Nothing that can be relied on.
    Absent,
    /// The first `rows` stripes, with a hole among the last of them or with an unreadable header.
    /// They are served until the member is emptied to be filled with the extent again.
    Torn {
        /// Number of stripes it has.
        rows: u32,
    },
    /// The first `done` stripes; the member is being filled.
    Filling {
        /// Number of stripes it has.
        done: u32,
        /// Whether the stripe being filled in was written meanwhile, so that it must be filled in
        /// again.
        again: bool,
    },
}

/// An extent of the volume.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Extent {
    /// Counts openings and releases. A task that waited compares it to detect a change.
    pub life: u64,
    pub is_live: bool,
    pub generation: u64,
    pub stream: Stream,
    /// Number of stripes that may hold data.
    pub rows: u32,
    /// Whether the extent counts as full: no more stripes are appended.
    pub is_closed: bool,
    /// Stripes being appended.
    pub under_way: Vec<u32>,
    /// Number of headers being appended.
    pub headers_under_way: usize,
    /// Number of appends begun plus appends ended.
    pub appends: u64,
    /// The value of `appends` up to which everything is durable.
    pub synced: u64,
    /// The run of the volume that opened it.
    pub run: u64,
    /// Revision of the headers.
    pub revision: u64,
    /// Members that the headers note as lacking some of the extent.
    pub noted: u64,
    /// Whether the headers are being rewritten.
    pub is_noting: bool,
    /// Number of header rewrites and fillings in progress. A release waits for them.
    pub busy: u32,
    /// Number of headers, and of stripes in `plm_cache`, not yet written to the members. A release
    /// waits for them too.
    pub on_their_way: u32,
    /// Number of headers and chunks of this life that wait before they are submitted to their
    /// members.
    pub put_off: u32,
    /// Members that are still being filled with an earlier life of the extent.
    pub deferred: u64,
    /// Whether a member lacks the extent although it would be noted if anything had been synced.
    pub seems_unsynced: bool,
    /// Whether members that do not answer, or were replaced, may have a later opening.
    pub may_be_older: bool,
    /// Doubted members that keep their data of the extent, because the others cannot replace it.
    pub kept: u64,
    /// Members whose filling with the extent waits until the others can be read again.
    pub put_off_filling: u64,
    /// The part that each member has.
    pub on: Vec<Presence>,
    /// Members that must be emptied before the extent is opened.
    pub left_over: u64,
    /// Members with an unreadable header, or with a header of an opening that does not count.
    pub stray: u64,
    /// Members that are not listed and whose headers of the opening must be durable before the
    /// other members get theirs. Otherwise, after the loss of one more member, it would be unknown
    /// whether anything of the extent was synced.
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

    /// Opens the extent; the `missing` members have nothing of it.
    ///
    /// After a power cut an extent may be opened without a release, because the store does not know
    /// any data in it. A member that is being filled with the extent gets writes only once that
    /// filling has ended.
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

    /// Empties the extent; the `missing` members did not get the release.
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

    /// Records that a put-off header or chunk of life `of` is now submitted to its member.
    pub(crate) fn end_put_off(&mut self, of: u64) {
        self.put_off -= u32::from(self.life == of);
    }

    /// Records that a member's header of an opening has been written, or that the member is lost.
    pub(crate) fn end_header(&mut self, life: u64, member: usize) {
        self.on_their_way -= 1;
        if self.life == life {
            self.headers_under_way -= 1;
            self.first &= !bit(member);
        }
    }

    /// Whether a write is pending that a release must not overtake.
    pub(crate) fn holds_up_release(&self) -> bool {
        self.busy + self.on_their_way > 0
    }

    /// Begins the write of a stripe. Returns the members that must have it.
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

    /// Returns the members that a stripe would be written to.
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

    /// Returns the members that lack some of the extent.
    pub(crate) fn missing(&self) -> u64 {
        let lacks = |member: &usize| self.on[*member] != Presence::Whole;
        bits((0..self.on.len()).filter(lacks))
    }

    /// Whether a member lacks some of the extent and is not noted in its headers.
    pub(crate) fn has_unnoted_absence(&self) -> bool {
        self.missing() & !self.noted != 0
    }

    /// Returns the next step of filling a member.
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

    /// Ends the filling of a stripe. If the stripe was written meanwhile (and `checks` is set), it
    /// is not counted and will be filled in again.
    pub(crate) fn end_fill(&mut self, member: usize, checks: bool) {
        if let Presence::Filling { done, again } = &mut self.on[member]
            && (!*again || !checks)
        {
            *done += 1;
        }
    }
}

/// The next step of filling a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fill {
    /// Fill in this stripe.
    Row(u32),
    /// Wait until the next stripe has been appended to the others.
    Wait,
    /// The member now has all of the extent.
    Done,
    /// The extent has another life, or the member is lost.
    GivenUp,
}

/// Returns the bit set of one member.
pub(crate) const fn bit(member: usize) -> u64 {
    1 << member
}

/// Returns the bit set of several members.
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

    /// Whether some filling of a member is put off.
    pub(crate) fn is_filling_put_off(&self, member: usize) -> bool {
        self.0.iter().any(|extent| extent.put_off_filling & bit(member) != 0)
    }

    /// Allows the put-off fillings of a member again.
    pub(crate) fn take_up_filling(&mut self, member: usize) {
        self.0.iter_mut().for_each(|extent| extent.put_off_filling &= !bit(member));
    }

    /// Records the loss of a member with all its data.
    pub(crate) fn lose(&mut self, member: usize) {
        for extent in &mut self.0 {
            if extent.is_live {
                extent.on[member] = Presence::Absent;
            }
        }
    }

    /// Forgets leftovers of a member that was replaced by a fresh, empty one.
    pub(crate) fn forget_left_over(&mut self, member: usize) {
        for extent in &mut self.0 {
            extent.left_over &= !bit(member);
            extent.kept &= !bit(member);
        }
    }

    /// Records that a member takes no more writes: extents that it has not synced completely are
    /// not relied on.
    pub(crate) fn lose_unsynced(&mut self, member: usize) {
        for extent in self.0.iter_mut().filter(|extent| extent.is_live) {
            let is_kept = match extent.on[member] {
                Presence::Whole => !extent.is_unsynced() && extent.under_way.is_empty(),
                // Its stripes were written before the last power cut.
                Presence::Torn { .. } => true,
                Presence::Absent | Presence::Filling { .. } => false,
            };
            if !is_kept {
                extent.on[member] = Presence::Absent;
            }
        }
    }

    /// Returns the number of stripes that a member has to be filled with.
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
